package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// These give tests outside the package access to its inside.
var (
	CheckStatements = checkStatements
	CheckMigrations = checkMigrations
	EnvironmentLock = environmentLock
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
