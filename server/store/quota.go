package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type quotaRow struct {
	Kind string
	Most int64
}

// Quota returns how much a project may use.
func (s *Store) Quota(ctx context.Context, id intent.ProjectID) (intent.Quota, error) {
	q := intent.Quota{}
	err := s.read(ctx, "store.Quota", func(from querier) error {
		rows, err := many[quotaRow](ctx, from, statements.QuotaOf, id)
		for _, r := range rows {
			q[intent.QuotaKind(r.Kind)] = r.Most
		}
		return err
	})
	return q, err
}

// SetQuota replaces how much a project may use. What it has already stays.
func (s *Store) SetQuota(ctx context.Context, id intent.ProjectID, q intent.Quota) error {
	return s.write(ctx, "store.SetQuota", func(tx pgx.Tx) error {
		kinds := []string{}
		for _, kind := range intent.QuotaKinds { // in one order, so that two writers do not block each other
			most, limited := q[kind]
			if !limited {
				continue
			}
			kinds = append(kinds, string(kind))
			if _, err := tx.Exec(ctx, statements.QuotaSet, id, kind, most); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, statements.QuotaClear, id, kinds)
		return err
	})
}

type usageRow struct{ Environments, Resources, Compiles int64 }

// ProjectUse returns what a project uses of environments, resources and compiles.
func (s *Store) ProjectUse(ctx context.Context, id intent.ProjectID) (intent.Usage, error) {
	var use intent.Usage
	err := s.read(ctx, "store.ProjectUse", func(from querier) (err error) {
		use, err = projectUse(ctx, from, id)
		return err
	})
	return use, err
}

func projectUse(ctx context.Context, from querier, id intent.ProjectID) (intent.Usage, error) {
	r, err := one[usageRow](ctx, from, statements.QuotaUse, id)
	return intent.Usage{
		intent.QuotaEnvironments: r.Environments, intent.QuotaResources: r.Resources, intent.QuotaCompiles: r.Compiles,
	}, err
}

// QuotaExceeded makes the error of a call that a quota refuses.
func QuotaExceeded(op string, e *intent.QuotaError) error {
	return fault.Wrap(op, fault.Forbidden, e).Hint(e.Advice())
}

// quota is a limit that no other transaction changes or counts against until this one ends.
type quota struct {
	Most    int64
	Project string
	ID      uuid.UUID
}

// growProject fails when a project may not have so many more of something. It locks the quota.
func growProject(
	ctx context.Context, tx pgx.Tx, op string, id intent.ProjectID, kind intent.QuotaKind, more int64,
) error {
	q := quota{ID: id}
	err := tx.QueryRow(ctx, statements.QuotaLock, id, kind).Scan(&q.Most, &q.Project)
	if isNoRows(err) || err == nil && more <= 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return q.allow(ctx, tx, op, kind, more)
}

// growResources fails when an environment may not have so many resources. An environment that gets fewer than it has is
// never refused, so that a project that has too many can get rid of them. The caller holds the lock of the environment.
func growResources(ctx context.Context, tx pgx.Tx, op string, env intent.EnvironmentID, total int) error {
	var q quota
	err := tx.QueryRow(ctx, statements.QuotaLockOf, env, intent.QuotaResources).Scan(&q.Most, &q.Project, &q.ID)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	present, err := resourcesOf(ctx, tx, env)
	if err != nil || int64(total) <= present {
		return err
	}
	return q.allow(ctx, tx, op, intent.QuotaResources, int64(total)-present)
}

func (q quota) allow(ctx context.Context, tx pgx.Tx, op string, kind intent.QuotaKind, more int64) error {
	use, err := projectUse(ctx, tx, q.ID)
	if err != nil || use[kind]+more <= q.Most {
		return err
	}
	return QuotaExceeded(op, &intent.QuotaError{
		Project: q.Project, Kind: kind, Use: use[kind], Wanted: use[kind] + more, Limit: q.Most,
	})
}

func resourcesOf(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID) (n int64, err error) {
	err = tx.QueryRow(ctx, statements.QuotaResourcesOf, env).Scan(&n)
	return n, err
}

// mayMove fails when the quotas of a project have no room for an environment of another one.
func mayMove(ctx context.Context, tx pgx.Tx, op string, env intent.EnvironmentID, to intent.ProjectID) error {
	var from uuid.UUID
	if err := tx.QueryRow(ctx, statements.EnvironmentProject, env).Scan(&from); err != nil || from == to {
		return err
	}
	if err := growProject(ctx, tx, op, to, intent.QuotaEnvironments, 1); err != nil {
		return err
	}
	resources, err := resourcesOf(ctx, tx, env)
	if err != nil {
		return err
	}
	return growProject(ctx, tx, op, to, intent.QuotaResources, resources)
}
