package peer

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Record reads what servers with a common database have on record, beside what they say of
// themselves.
type Record struct {
	URL string // of the database
}

func (r Record) query(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, r.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// Owners returns the id of the process that owns each environment. An environment without
// an owner is missing.
func (r Record) Owners(ctx context.Context) (map[string]int, error) {
	owners := map[string]int{}
	err := r.query(ctx, func(conn *pgx.Conn) error {
		byKey := map[uint32]int{}
		rows, err := conn.Query(ctx, `SELECT l.objid::bigint, r.name FROM pg_locks l
			JOIN pg_stat_activity a ON a.pid = l.pid
			JOIN replica r ON a.application_name = 'ordain locks ' || r.id
			WHERE l.locktype = 'advisory' AND l.granted AND l.classid = x'6f726462'::int::oid`)
		if err != nil {
			return err
		}
		var key int64
		var name string
		if _, err := pgx.ForEachRow(rows, []any{&key, &name}, func() (err error) {
			byKey[uint32(key)], err = strconv.Atoi(name[strings.LastIndexByte(name, ' ')+1:])
			return err
		}); err != nil {
			return err
		}
		if rows, err = conn.Query(ctx, "SELECT id FROM environment"); err != nil {
			return err
		}
		var id uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			if pid := byKey[binary.BigEndian.Uint32(id[12:])^binary.BigEndian.Uint32(id[:4])]; pid != 0 {
				owners[id.String()] = pid
			}
			return nil
		})
		return err
	})
	return owners, err
}

// Unsettled lists what is still under way, or not deployed.
func (r Record) Unsettled(ctx context.Context) (left []string, err error) {
	err = r.query(ctx, func(conn *pgx.Conn) error {
		for _, c := range []struct{ what, sql string }{
			{"resources that are not deployed", `SELECT count(*) FROM resource_state s
				WHERE s.compliance <> 'compliant' OR s.is_deploying OR s.last_run <> 'successful'`},
			{"open compiles", "SELECT count(*) FROM compile WHERE completed IS NULL"},
			{"requests", "SELECT count(*) FROM request"},
		} {
			var n int
			if err := conn.QueryRow(ctx, c.sql).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				left = append(left, fmt.Sprintf("%d %s", n, c.what))
			}
		}
		return nil
	})
	return left, err
}

// ChangedTwice reports whether a resource has more than one change for one version on
// record. A value that was written is recorded as one change, also when the server that
// wrote it died.
func (r Record) ChangedTwice(ctx context.Context) (found []string, err error) {
	err = r.query(ctx, func(conn *pgx.Conn) error {
		var twice int
		err := conn.QueryRow(ctx, `SELECT count(*) FROM (
			SELECT FROM action WHERE kind = 'deploy' AND change IN ('created', 'updated')
			GROUP BY environment, resource, version HAVING count(*) > 1) AS twice`).Scan(&twice)
		if twice > 0 {
			found = append(found, fmt.Sprintf("%d resources have two changes for one version on record", twice))
		}
		return err
	})
	return found, err
}

// SchemaSteps returns the names of the changes that made the schema of the database, oldest first.
func (r Record) SchemaSteps(ctx context.Context) (names []string, err error) {
	err = r.query(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT name FROM migration ORDER BY number")
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}
