package store

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
)

// Numbers have no gaps: two changes that were written under one number, or one that was lost in a merge, are noticed
// at once.
func TestNumbersOfSchemaChanges(t *testing.T) {
	change := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, c := range map[string]struct {
		files fstest.MapFS
		says  string
	}{
		"in order": {fstest.MapFS{"migrations/0001_a.sql": change, "migrations/0002_b.sql": change}, ""},
		"a gap": {fstest.MapFS{"migrations/0001_a.sql": change, "migrations/0003_b.sql": change},
			"0003_b.sql should begin with the number 0002"},
		"twice": {fstest.MapFS{"migrations/0001_a.sql": change, "migrations/0001_b.sql": change},
			"0001_b.sql should begin with the number 0002"},
		"late start": {fstest.MapFS{"migrations/0002_a.sql": change}, "0001"},
		"no number":  {fstest.MapFS{"migrations/first_a.sql": change}, "0001"},
	} {
		steps, err := migrationsIn(c.files)
		switch {
		case c.says == "" && (err != nil || len(steps) != 2):
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkMigrations: a database that was made by an edited schema change, or by a newer program, is refused with an
// explanation; a new change is applied once.
func checkMigrations(t *testing.T, url string) {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	steps, err := migrationsIn(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	try := func(steps []migration) error {
		return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error { return apply(t.Context(), tx, steps, quiet) })
	}
	if err := try(steps); err != nil {
		t.Fatalf("the same steps again: %v", err)
	}
	edited := append([]migration(nil), steps...)
	edited[0].checksum = "edited"
	if err := try(edited); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), steps[0].name) {
		t.Errorf("an edited step: %v", err)
	}
	last := steps[len(steps)-1].number
	added := append(slices.Clone(steps), migration{
		number: last + 1, name: "added", sql: "CREATE TABLE added (x int)", checksum: "a", since: last,
	})
	for range 2 {
		if err := try(added); err != nil {
			t.Fatalf("a new step: %v", err)
		}
	}
	if err := try(steps); err != nil {
		t.Errorf("the program of before, with a step that only adds: %v", err)
	}
	removed := append(added, migration{
		number: last + 2, name: "removed", sql: "DROP TABLE added", checksum: "r", since: last + 1,
	})
	if err := try(removed); err != nil {
		t.Fatalf("another new step: %v", err)
	}
	if err := try(added); err != nil {
		t.Errorf("the program that used it no longer: %v", err)
	}
	if err := try(steps); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a database of a newer program: %v", err)
	}
}
