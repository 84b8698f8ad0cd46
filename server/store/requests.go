package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// Asking returns a store whose next change also records a request to the owner of an environment, in the same
// transaction: either both are recorded or neither. detail is stored as JSON.
func (s *Store) Asking(env intent.EnvironmentID, kind intent.RequestKind, detail any) *Store {
	asking := *s
	asking.asks = &intent.Request{Environment: env, Kind: kind, Detail: json.RawMessage(toJSON(detail))}
	return &asking
}

// Ask records a request to the owner of an environment.
func (s *Store) Ask(ctx context.Context, env intent.EnvironmentID, kind intent.RequestKind, detail any) error {
	return s.Asking(env, kind, detail).write(ctx, "store.Ask", func(pgx.Tx) error { return nil })
}

// ask records the request of Asking.
func (s *Store) ask(ctx context.Context, tx pgx.Tx) error {
	if s.asks == nil {
		return nil
	}
	_, err := tx.Exec(ctx, statements.RequestAdd, s.asks.Environment, string(s.asks.Kind), string(s.asks.Detail))
	return err
}

type requestRow struct {
	ID          int64
	Environment uuid.UUID
	Kind        string
	Detail      json.RawMessage
	Made        time.Time
	Taken       *time.Time
}

func (r requestRow) value() (intent.Request, error) {
	return intent.Request{
		ID: r.ID, Environment: r.Environment, Kind: intent.RequestKind(r.Kind), Detail: r.Detail, Made: r.Made.UTC(),
		Taken: utc(r.Taken),
	}, nil
}

// Requests returns the requests to the owner of an environment that came after one of them, oldest first, at most a
// thousand.
func (s *Store) Requests(ctx context.Context, env intent.EnvironmentID, after int64) ([]intent.Request, error) {
	return listed(ctx, s, "store.Requests", requestRow.value, statements.RequestList, env, after)
}

// RequestsWait lists the environments that have requests, and if compiles is set also those whose compiles wait.
func (s *Store) RequestsWait(ctx context.Context, compiles bool) (out []intent.EnvironmentID, err error) {
	err = s.read(ctx, "store.RequestsWait", func(q querier) error {
		rows, err := q.Query(ctx, statements.RequestWaiting, compiles)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return out, err
}

// TakeRequest records that the owner begins with a request. What it records first stays.
func (s *Store) TakeRequest(ctx context.Context, r intent.Request, at time.Time) error {
	return s.writeOwned(ctx, r.Environment, "store.TakeRequest", func(b *pgx.Batch) {
		b.Queue(statements.RequestTaken, r.Environment, r.ID, at)
	}, nil)
}

// FinishRequests deletes requests that the owner has done.
func (s *Store) FinishRequests(ctx context.Context, env intent.EnvironmentID, ids []int64) error {
	return s.writeOwned(ctx, env, "store.FinishRequests", func(b *pgx.Batch) {
		b.Queue(statements.RequestDone, env, ids)
	}, nil)
}

// DropRequest deletes a request, also when this process does not own the environment any more.
func (s *Store) DropRequest(ctx context.Context, r intent.Request) error {
	return s.state(ctx, "store.DropRequest", func(q querier) error {
		_, err := q.Exec(ctx, statements.RequestDone, r.Environment, []int64{r.ID})
		return err
	})
}
