package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/shared"
	"ordain.dev/ordain/server/store/locks"
	"ordain.dev/ordain/server/store/members"
	"ordain.dev/ordain/server/store/queue"
)

// Config says which database to use.
type Config struct {
	URL    string // postgres://…
	Logger *slog.Logger
	// Replica identifies this process among those that use the database; zero: a new one.
	Replica uuid.UUID
}

// Store is a pool of connections to the place of record. It is safe for concurrent use by any number of goroutines.
type Store struct {
	pool   *pgxpool.Pool
	logger *slog.Logger
	locks  *locks.Manager
	// replica identifies this process.
	replica uuid.UUID
	// asks is recorded with the next change; see Asking.
	asks *intent.Request
	// queue wakes the workers of processes.
	queue *queue.Queue
	// schedules are recorded with the next change; see Scheduling.
	schedules []intent.NewProcess
	// holds is the process for which changes are made; see Holding.
	holds *intent.ProcessClaim
	// tables are the versions that somebody looks at.
	tables *memberTables
	// states shares the states that those who look at versions load at the same time.
	states *shared.Loads[intent.EnvironmentID, []members.States]
}

const (
	maxConnections = 11 // one of them waits for jobs
	connectTime    = 15 * time.Second
	idleTime       = time.Minute
	// oldestServer is the first PostgreSQL that supports all statements, as server_version_num.
	oldestServer = 130000
)

// Open connects to the database and brings its schema up to date.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	const op = "store.Open"
	if cfg.Logger == nil {
		return nil, fault.New(op, fault.Internal, "store.Config.Logger is missing")
	}
	fillStatements()
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		// pgx masks the password in its message.
		return nil, fault.Wrap(op, fault.Invalid, err).Say("the address of the database cannot be parsed").
			Hint("give it as postgres://USER@HOST:PORT/DATABASE")
	}
	pc.MaxConns, pc.MinConns, pc.MaxConnIdleTime = maxConnections, 1, idleTime
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = connectTime
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "ordain"
	}
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if err := migrate(ctx, pc.ConnConfig, cfg.Logger); err != nil {
		return nil, err
	}
	pc.AfterConnect = registerUUID
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, translate(op, err)
	}
	if cfg.Replica == (uuid.UUID{}) {
		cfg.Replica = uuid.New()
	}
	wakes, err := queue.New(pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{
		queue: wakes,
		pool:  pool, logger: cfg.Logger, replica: cfg.Replica,
		tables: &memberTables{}, states: &shared.Loads[intent.EnvironmentID, []members.States]{},
		locks: locks.New(pc.ConnConfig, "ordain locks "+cfg.Replica.String(), cfg.Logger, translate),
	}, nil
}

// Close releases owned environments and closes all connections, once calls under way have ended.
func (s *Store) Close() {
	s.locks.Close()
	s.pool.Close()
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "store.Ping", func(q querier) error {
		var one int
		return q.QueryRow(ctx, statements.Ping).Scan(&one)
	})
}

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read runs statements that change nothing. When the connection turns out to be dead it tries once more on a fresh
// one.
func (s *Store) read(ctx context.Context, op string, f func(q querier) error) error {
	err := f(s.pool)
	if err != nil && connectionLost(err) && ctx.Err() == nil {
		s.pool.Reset()
		err = f(s.pool)
	}
	return translate(op, err)
}

// state runs one statement that is a transaction of its own, in a single round trip. When the connection turns out to
// be dead the statement may run twice, so repeating it must do no harm.
func (s *Store) state(ctx context.Context, op string, f func(q querier) error) error {
	if s.asks != nil || len(s.schedules) > 0 || s.holds != nil {
		return s.write(ctx, op, func(tx pgx.Tx) error { return f(tx) })
	}
	var err error
	for range attempts {
		err = f(s.pool)
		if err != nil && connectionLost(err) && ctx.Err() == nil {
			s.pool.Reset()
		} else if !lostRace(err) {
			break
		}
	}
	return translate(op, err)
}

// attempts is how often a transaction is tried that loses against others.
const attempts = 4

// write runs f in a transaction. It runs f again when the transaction lost a race against another, or when the
// connection was dead before it began.
func (s *Store) write(ctx context.Context, op string, f func(tx pgx.Tx) error) error {
	var err error
	for try := 1; try <= attempts; try++ {
		var tx pgx.Tx
		if tx, err = s.pool.Begin(ctx); err != nil {
			if try == 1 && connectionLost(err) && ctx.Err() == nil {
				s.pool.Reset()
				continue
			}
			break
		}
		if err = s.stillHolds(ctx, tx); err == nil {
			err = f(tx)
		}
		if err == nil {
			err = s.ask(ctx, tx)
		}
		if err == nil {
			err = s.scheduleAll(ctx, tx)
		}
		if err == nil {
			err = tx.Commit(ctx)
		} else {
			// A rollback that fails closes the connection, which rolls back too.
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
		if !lostRace(err) {
			break
		}
	}
	return translate(op, err)
}

// one scans a single row into T by column names.
func one[T any](ctx context.Context, q querier, sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
}

// many scans rows into values of T by column names.
func many[T any](ctx context.Context, q querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// collect scans rows into values of R by column names and converts each.
func collect[R, V any](
	ctx context.Context,
	q querier,
	convertRow func(R) (V, error),
	sql string,
	args ...any,
) ([]V, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v V, err error) {
		r, err := pgx.RowToStructByName[R](row)
		if err != nil {
			return v, err
		}
		return convertRow(r)
	})
}

// listed is collect with a connection of its own.
func listed[R, V any](
	ctx context.Context,
	s *Store,
	op string,
	convertRow func(R) (V, error),
	sql string,
	args ...any,
) (out []V, err error) {
	err = s.read(ctx, op, func(q querier) error {
		out, err = collect(ctx, q, convertRow, sql, args...)
		return err
	})
	return out, err
}

// convert applies f to each value.
func convert[R, V any](given []R, f func(R) (V, error)) ([]V, error) {
	values := make([]V, 0, len(given))
	for _, r := range given {
		v, err := f(r)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// affected turns "no row was changed" into pgx.ErrNoRows.
func affected(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return pgx.ErrNoRows
	}
	return err
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
