package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/store/locks"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema. A step is never edited once it was released: databases remember its checksum.
type migration struct {
	number   int
	name     string
	sql      string
	checksum string
	// since is the number of the oldest step whose programs work with the schema after this one. Processes of two
	// releases run at the same time while one is replaced by the other, so a release only adds to the schema; what its
	// predecessor used goes with the release after it. A file says so with a line "-- since: NUMBER"; without it, only
	// programs that have the step work with it.
	since int
}

var sinceLine = regexp.MustCompile(`(?m)^-- since: ([0-9]+)$`)

// migrationsIn reads the files NNNN_name.sql, whose numbers must have no gaps.
func migrationsIn(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // in order of name
	if err != nil {
		return nil, err
	}
	var steps []migration
	last := 0
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".sql")
		digits, _, ok := strings.Cut(name, "_")
		number, err := strconv.Atoi(digits)
		if !ok || err != nil || number != last+1 {
			return nil, fmt.Errorf("migration %s should begin with the number %04d and _", file, last+1)
		}
		last = number
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		since := number
		if m := sinceLine.FindSubmatch(text); m != nil {
			if since, err = strconv.Atoi(string(m[1])); err != nil || since > number {
				return nil, fmt.Errorf("migration %s: its line %q does not name an earlier one", file, m[0])
			}
		}
		steps = append(steps, migration{
			number: number, name: name, sql: string(text), checksum: hex.EncodeToString(sum[:]), since: since,
		})
	}
	return steps, nil
}

// migrate brings the schema up to date, one server at a time, all or nothing.
func migrate(ctx context.Context, cfg *pgx.ConnConfig, logger *slog.Logger) error {
	const op = "store.migrate"
	steps, err := migrationsIn(migrationFiles)
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return translate(op, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the transaction has ended by then
	var server int
	if err := conn.QueryRow(ctx, statements.ServerVersion).Scan(&server); err != nil {
		return translate(op, err)
	}
	if server < oldestServer {
		return fault.New(op, fault.Invalid,
			fmt.Sprintf("the database is PostgreSQL %d; %d or newer is needed", server/10000, oldestServer/10000))
	}
	return translate(op, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return apply(ctx, tx, steps, logger)
	}))
}

type migrationRow struct {
	Number   int
	Name     string
	Checksum string
	Since    *int // nil: a step of before that was recorded
}

func apply(ctx context.Context, tx pgx.Tx, steps []migration, logger *slog.Logger) error {
	const op = "store.migrate"
	if _, err := tx.Exec(ctx, statements.MigrationLock, locks.Migrations); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.MigrationTable); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.MigrationSince); err != nil {
		return err
	}
	done, err := many[migrationRow](ctx, tx, statements.MigrationList)
	if err != nil {
		return err
	}
	for i, d := range done {
		switch {
		case i >= len(steps) && d.Since != nil && *d.Since <= len(steps):
			logger.Info("a newer Ordain uses the database too", "its schema change", d.Name)
		case i >= len(steps):
			return fault.New(op, fault.Conflict,
				"the database was used by a newer Ordain: it has the schema change "+d.Name).
				Hint("run that version of Ordain, or a newer one")
		case d.Number != steps[i].number || d.Checksum != steps[i].checksum:
			return fault.New(op, fault.Conflict,
				"the schema change "+steps[i].name+" is not the one that made this database").
				Hint("run the Ordain that made it; schema changes are never edited, only added")
		}
	}
	for _, step := range steps[min(len(done), len(steps)):] {
		logger.Info("changing the schema of the database", "step", step.name)
		if _, err := tx.Exec(ctx, step.sql); err != nil {
			return fmt.Errorf("schema change %s: %w", step.name, err)
		}
		if _, err := tx.Exec(ctx, statements.MigrationDone, step.number, step.name, step.checksum,
			step.since); err != nil {
			return err
		}
	}
	return nil
}
