package queue_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"ordain.dev/ordain/server/store/storetest"
)

// Our schema has all that the River of this program wants. When this fails after an upgrade of River, add its new
// migrations as one of ours.
func TestTheSchemaIsThatOfRiver(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ours := schema(t, pool, "public")
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA rivers"); err != nil {
		t.Fatal(err)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: "rivers"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	theirs := schema(t, pool, "rivers")
	for what := range theirs {
		if !ours[what] {
			t.Errorf("River has, and we do not: %s", what)
		}
	}
	for what := range ours {
		if !theirs[what] {
			t.Errorf("we have, and River does not: %s", what)
		}
	}
	if len(theirs) < 50 {
		t.Errorf("only %d columns, constraints and indexes were compared", len(theirs))
	}
}

// schema describes the columns, constraints and indexes of River's tables, and its migrations.
func schema(t *testing.T, pool *pgxpool.Pool, name string) map[string]bool {
	t.Helper()
	const describe = `
SELECT table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable || ' ' ||
    replace(coalesce(column_default, ''), $1 || '.', '')
FROM information_schema.columns WHERE table_schema = $1 AND table_name LIKE 'river%'
UNION ALL
SELECT c.conrelid::regclass::text || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid WHERE r.relnamespace = $1::regnamespace AND r.relname LIKE 'river%'
UNION ALL
SELECT indexdef FROM pg_indexes WHERE schemaname = $1 AND tablename LIKE 'river%'
UNION ALL
SELECT 'enum ' || e.enumlabel FROM pg_enum e JOIN pg_type y ON y.oid = e.enumtypid
WHERE y.typnamespace = $1::regnamespace`
	rows, err := pool.Query(t.Context(), describe, name)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			t.Fatal(err)
		}
		found[plain(what, name)] = true
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	var versions int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name+".river_migration").Scan(&versions); err != nil {
		t.Fatal(err)
	}
	found["migrations "+string(rune('0'+versions))] = true
	return found
}

// plain takes the name of the schema out of a description.
func plain(what, schema string) string {
	return strings.NewReplacer(schema+".", "", "pkey1", "pkey").Replace(what)
}
