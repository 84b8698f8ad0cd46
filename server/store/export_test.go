package store

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// These give tests outside the package access to its inside.
var (
	CheckStatements = checkStatements
	CheckMigrations = checkMigrations
	EnvironmentKey  = environmentKey
	// ListedByDatabase lists the resources of a version without package members.
	ListedByDatabase = (*Store).versionMemberPage
)

// AddNotice records a notice in a transaction of its own.
func AddNotice(ctx context.Context, s *Store, env intent.EnvironmentID, n intent.Notice, at time.Time) error {
	return s.write(ctx, "store.AddNotice", func(tx pgx.Tx) error { return addNotice(ctx, tx, env, n, at) })
}

// Judge does the part of a release that decides whether a version is held.
func Judge(ctx context.Context, s *Store, env intent.EnvironmentID, number int) error {
	return s.write(ctx, "store.Judge", func(tx pgx.Tx) error {
		v, _, before, err := releasable(ctx, tx, "store.Judge", env, number)
		if err == nil {
			_, _, err = judge(ctx, tx, env, before, v, v.Created)
		}
		return err
	})
}

// BeforeParkedIsNotCompliant brings a database to the state before the migration of that name, with all that is parked
// compliant and its drift healed, and migrates it again.
func BeforeParkedIsNotCompliant(ctx context.Context, s *Store) error {
	found, err := fs.Glob(migrationFiles, "migrations/*_parked_is_not_compliant.sql")
	if err != nil || len(found) != 1 {
		return fmt.Errorf("found %q, %w", found, err)
	}
	change, err := migrationFiles.ReadFile(found[0])
	if err != nil {
		return err
	}
	return s.write(ctx, "store.BeforeParkedIsNotCompliant", func(tx pgx.Tx) error {
		for _, sql := range []string{
			"ALTER TABLE resource_state DROP CONSTRAINT state_parked_is_not_compliant",
			"UPDATE resource_state SET compliance = 'compliant', deployed_hash = intent_hash, drifted = false " +
				"WHERE parked <> ''",
			"UPDATE drift SET ended = seen, ending = 'healed' WHERE ended IS NULL",
			string(change),
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// AnsweredInMemory reports whether package members answers a query itself.
func AnsweredInMemory(v VersionNow, q intent.ListQuery) bool {
	q, err := VersionMemberList.Normalize(q)
	if err != nil {
		return false
	}
	_, ok := v.now.Page(q)
	return ok
}
