package store

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
)

// checkMigrations: a database that was made by an edited schema change, or by
// a newer program, is refused in words; a new change is applied once.
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
	longer := append(append([]migration(nil), steps...), migration{number: len(steps) + 1, name: "more", sql: "CREATE TABLE more (x int)", checksum: "c"})
	for range 2 {
		if err := try(longer); err != nil {
			t.Fatalf("a new step: %v", err)
		}
	}
	if err := try(steps); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a database of a newer program: %v", err)
	}
}
