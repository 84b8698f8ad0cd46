package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ReleaseVersion makes a version the intent; see control.VersionStore.
func (s *Store) ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error {
	return s.release(ctx, "store.ReleaseVersion", env, number, at, nil)
}

// ConfirmVersion releases a version that is held; see control.VersionStore.
func (s *Store) ConfirmVersion(ctx context.Context, env intent.EnvironmentID, number int, c intent.Confirmation) error {
	return s.release(ctx, "store.ConfirmVersion", env, number, c.At, &c)
}

// release judges a version and makes it the intent, or holds it. What it
// finds it records, also where it refuses.
func (s *Store) release(
	ctx context.Context,
	op string,
	env intent.EnvironmentID,
	number int,
	at time.Time,
	c *intent.Confirmation,
) error {
	var refused error
	err := s.write(ctx, op, func(tx pgx.Tx) (err error) {
		if _, err = lockEnvironment(ctx, tx, env); err == nil {
			refused, err = releaseIn(ctx, tx, op, env, number, at, c)
		}
		return err
	})
	if err == nil {
		err = refused
	}
	return err
}

// releaseIn does so in a transaction that holds the lock of the environment.
func releaseIn(
	ctx context.Context,
	tx pgx.Tx,
	op string,
	env intent.EnvironmentID,
	number int,
	at time.Time,
	c *intent.Confirmation,
) (refused, err error) {
	v, way, before, err := releasable(ctx, tx, op, env, number)
	if err != nil {
		return nil, err
	}
	hold, left, err := judge(ctx, tx, env, before, v, at)
	if err != nil {
		return nil, err
	}
	if refused = mayRelease(op, v, hold, c); refused != nil {
		if err := setHold(ctx, tx, env, v, hold); err != nil || hold == nil {
			return refused, err
		}
		held := deployTold{v.Number, v.Provenance.Commit, string(intent.CommitPending), "Held: it waits for a person"}
		if err := tellDeploy(ctx, tx, env, held, at); err != nil {
			return refused, err
		}
		return refused, addNotice(ctx, tx, env, heldNotice(v, *hold), at)
	}
	way.left = left > 0
	if err := activate(ctx, tx, v, way, c, at); err != nil {
		return nil, err
	}
	return nil, rolledBack(ctx, tx, env, v)
}

// heldNotice tells people of a version that waits for them.
func heldNotice(v intent.Version, hold intent.Hold) intent.Notice {
	held := intent.HeldError{Version: v.Number, Hold: hold}
	n := intent.Notice{
		Severity: intent.SeverityWarning, Title: fmt.Sprintf("Version %d is held", v.Number), Message: hold.Text + "; " + held.Advice(),
		URI: fmt.Sprintf("/api/v2/desiredstate/%d", v.Number),
	}
	if v.Provenance.Compile != uuid.Nil {
		n.Compile = &v.Provenance.Compile
	}
	return n
}

// step is what a release has to look for, beside contents that changed.
type step struct {
	undefined    bool // the version has undefined resources
	wasUndefined bool // the one before has
	left         bool // it lacks resources that the one before has
}

// releasable gives a version that may become the intent, what releasing it
// has to look for, and the version that is the intent.
func releasable(
	ctx context.Context,
	tx pgx.Tx,
	op string,
	env intent.EnvironmentID,
	number int,
) (v intent.Version, way step, before *intent.Version, err error) {
	row, err := one[versionRow](ctx, tx, statements.VersionGet, env, number)
	if err == nil {
		v, err = row.value()
	}
	if err != nil {
		return v, way, nil, err
	}
	way.undefined = row.Undefined > 0
	if v.Preview {
		return v, way, nil, fault.New(op, fault.Conflict, fmt.Sprintf("version %d is a preview of commit %s, made for a dry run", number, v.Provenance.Commit)).
			Hint("previews are never released: bring the commit to the branch of the environment")
	}
	if v.Released != nil {
		return v, way, nil, fault.New(op, fault.Conflict, fmt.Sprintf("version %d is released already", number))
	}
	if err := refuseBlocked(ctx, tx, op, v); err != nil {
		return v, way, nil, err
	}
	row, err = one[versionRow](ctx, tx, statements.VersionActive, env)
	if isNoRows(err) {
		return v, way, nil, nil
	}
	if err != nil {
		return v, way, nil, err
	}
	way.wasUndefined = row.Undefined > 0
	active, err := row.value()
	if err == nil && active.Number > number {
		err = fault.New(op, fault.Conflict, fmt.Sprintf("version %d is older than the active one, %d", number, active.Number)).
			Hint("roll back to it, or compile the commit that you want again")
	}
	return v, way, &active, err
}

// activate makes a version the intent.
func activate(ctx context.Context, tx pgx.Tx, v intent.Version, way step, c *intent.Confirmation, at time.Time) error {
	env := v.Environment
	for _, sql := range []string{statements.VersionRetire, statements.VersionSkip} {
		if _, err := tx.Exec(ctx, sql, env, v.Number); err != nil {
			return err
		}
	}
	var confirmed *string
	if c != nil && v.Hold != nil {
		text := toJSON(c)
		confirmed = &text
	}
	if _, err := tx.Exec(ctx, statements.VersionActivate, env, v.Number, at, confirmed); err != nil {
		return err
	}
	blocked := []int64{}
	if way.undefined {
		var err error
		if blocked, err = blockedResources(ctx, tx, env, v.Number); err != nil {
			return err
		}
	}
	if err := tellDeploy(ctx, tx, env, deployTold{v.Number, v.Provenance.Commit, string(intent.CommitPending), "Deploying"}, at); err != nil {
		return err
	}
	return releaseStates(ctx, tx, env, v.Number, way, blocked, at)
}

func releaseStates(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	number int,
	way step,
	blocked []int64,
	at time.Time,
) error {
	added, err := tx.Exec(ctx, statements.ReleaseStates, env, number, blocked)
	if err != nil {
		return err
	}
	if way.left {
		if _, err := tx.Exec(ctx, statements.ReleaseOrphans, env, number); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, statements.ReleaseDrift, env, at); err != nil {
		return err
	}
	if way.undefined || way.wasUndefined {
		if _, err := tx.Exec(ctx, statements.ReleaseBlocked, env, blocked); err != nil {
			return err
		}
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
