package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ReleaseVersion makes a version the intent; see control.VersionStore.
func (s *Store) ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error {
	const op = "store.ReleaseVersion"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		v, err := one[versionRow](ctx, tx, statements.VersionGet, env, number)
		if err != nil {
			return err
		}
		if v.Released != nil {
			return fault.New(op, fault.Conflict, "the version is released already")
		}
		active, err := one[versionRow](ctx, tx, statements.VersionActive, env)
		if err != nil && !isNoRows(err) {
			return err
		}
		if err == nil && active.Number > number {
			return fault.New(op, fault.Conflict, "the version is older than the active one").Hint("compile the commit that you want again")
		}
		for _, sql := range []string{statements.VersionRetire, statements.VersionSkip} {
			if _, err := tx.Exec(ctx, sql, env, number); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, statements.VersionActivate, env, number, at); err != nil {
			return err
		}
		blocked := []int64{}
		if v.Undefined > 0 {
			if blocked, err = blockedResources(ctx, tx, env, number); err != nil {
				return err
			}
		}
		return releaseStates(ctx, tx, env, number, blocked)
	})
}

func releaseStates(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, number int, blocked []int64) error {
	if _, err := tx.Exec(ctx, statements.ReleaseStates, env, number, blocked); err != nil {
		return err
	}
	added, err := tx.Exec(ctx, statements.ReleaseNewStates, env, number, blocked)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.ReleaseOrphans, env, number); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.ReleaseBlocked, env, blocked); err != nil {
		return err
	}
	if added.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, statements.ReleaseAgents, env)
	}
	return err
}

type edgeRow struct {
	Resource  int64
	ID        string
	Requires  []string
	Undefined bool
}

// blockedResources gives the keys of the resources of a version that are
// undefined or, through any number of requires, behind one that is.
func blockedResources(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, number int) ([]int64, error) {
	blocked := []int64{}
	edges, err := many[edgeRow](ctx, tx, statements.VersionEdges, env, number)
	if err != nil {
		return nil, err
	}
	behind := make(map[string][]*edgeRow)
	var wave []*edgeRow
	for i := range edges {
		e := &edges[i]
		for _, id := range e.Requires {
			behind[id] = append(behind[id], e)
		}
		if e.Undefined {
			wave = append(wave, e)
		}
	}
	seen := make(map[int64]bool)
	for len(wave) > 0 {
		e := wave[len(wave)-1]
		wave = wave[:len(wave)-1]
		if seen[e.Resource] {
			continue
		}
		seen[e.Resource] = true
		blocked = append(blocked, e.Resource)
		wave = append(wave, behind[e.ID]...)
	}
	return blocked, nil
}
