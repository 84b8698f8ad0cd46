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

// ReleaseVersion makes a version the intent: it becomes active, the one before retired, and older candidates skipped.
// Resource states get the new intent hash; they become has_update where it differs from what was deployed, undefined
// or blocked (transitively) where values are unknown, and orphaned where the resource is gone. Conflict when the
// version was released before or is older than the active one. When it removes too much (intent.Guard) the error
// holds an *HeldError, and the version is recorded as held.
func (s *Store) ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error {
	return s.release(ctx, "store.ReleaseVersion", env, number, at, nil)
}

// ConfirmVersion releases a held version on a person's word. Conflict when it is not held, when it removes something
// protected, or when it removes something else than was recorded; then what it removes now is recorded.
func (s *Store) ConfirmVersion(ctx context.Context, env intent.EnvironmentID, number int, c intent.Confirmation) error {
	return s.release(ctx, "store.ConfirmVersion", env, number, c.At, &c)
}

// release judges a version and makes it the intent, or holds it. What it finds is recorded even where it refuses.
func (s *Store) release(
	ctx context.Context,
	op string,
	env intent.EnvironmentID,
	number int,
	at time.Time,
	c *intent.Confirmation,
) error {
	return s.writeOrRefuse(ctx, op, func(tx pgx.Tx) (refused, err error) {
		if _, err = lockEnvironment(ctx, tx, env); err != nil {
			return nil, err
		}
		return s.releaseIn(ctx, tx, op, env, number, at, c)
	})
}

// writeOrRefuse is write for what may be refused: then what f has written is kept, such as why, but the owner of the
// environment is asked for nothing.
func (s *Store) writeOrRefuse(ctx context.Context, op string, f func(tx pgx.Tx) (refused, err error)) error {
	var refused error
	recording := *s
	recording.asks = nil
	err := recording.write(ctx, op, func(tx pgx.Tx) (err error) {
		if refused, err = f(tx); err == nil && refused == nil {
			err = s.ask(ctx, tx)
		}
		return err
	})
	if err == nil {
		err = refused
	}
	return err
}

// releaseIn is release in a transaction that holds the lock of the environment.
func (s *Store) releaseIn(
	ctx context.Context,
	tx pgx.Tx,
	op string,
	env intent.EnvironmentID,
	number int,
	at time.Time,
	c *intent.Confirmation,
) (refused, err error) {
	v, scope, before, err := releasable(ctx, tx, op, env, number)
	if err != nil {
		return nil, err
	}
	if err := growResources(ctx, tx, op, env, v.Total); err != nil {
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
		held := deployStatus{v.Number, v.Provenance.Commit, string(intent.CommitPending), "Held: it waits for a person"}
		if err := s.queueDeployStatus(ctx, tx, env, held, at); err != nil {
			return refused, err
		}
		return refused, addNotice(ctx, tx, env, heldNotice(v, *hold), at)
	}
	scope.removes = left > 0
	if err := s.activate(ctx, tx, v, scope, c, at); err != nil {
		return nil, err
	}
	return nil, rolledBack(ctx, tx, env, v)
}

// heldNotice is the notice about a version that waits for a confirmation.
func heldNotice(v intent.Version, hold intent.Hold) intent.Notice {
	held := HeldError{Version: v.Number, Hold: hold}
	n := intent.Notice{
		Severity: intent.SeverityWarning, Title: fmt.Sprintf("Version %d is held",
			v.Number), Message: hold.Text + "; " + held.Advice(),
		URI: fmt.Sprintf("/api/v2/desiredstate/%d", v.Number),
	}
	if v.Provenance.Compile != uuid.Nil {
		n.Compile = &v.Provenance.Compile
	}
	return n
}

// releaseScope says what a release has to look at beside contents that changed.
type releaseScope struct {
	undefined    bool // the version has undefined resources
	wasUndefined bool // the version before it has some
	removes      bool // it lacks resources that the version before it has
}

// releasable returns a version that may become the intent, what its release has to look at, and the version that is
// the intent now.
func releasable(
	ctx context.Context,
	tx pgx.Tx,
	op string,
	env intent.EnvironmentID,
	number int,
) (v intent.Version, scope releaseScope, before *intent.Version, err error) {
	row, err := one[versionRow](ctx, tx, statements.VersionGet, env, number)
	if err == nil {
		v, err = row.value()
	}
	if err != nil {
		return v, scope, nil, err
	}
	scope.undefined = row.Undefined > 0
	if v.Preview {
		return v, scope, nil, fault.New(op, fault.Conflict,
			fmt.Sprintf("version %d is a preview of commit %s, made for a dry run", number, v.Provenance.Commit)).
			Hint("previews are never released: bring the commit to the branch of the environment")
	}
	if v.Released != nil {
		return v, scope, nil, fault.New(op, fault.Conflict, fmt.Sprintf("version %d is released already", number))
	}
	if err := refuseBlocked(ctx, tx, op, v); err != nil {
		return v, scope, nil, err
	}
	row, err = one[versionRow](ctx, tx, statements.VersionActive, env)
	if isNoRows(err) {
		return v, scope, nil, nil
	}
	if err != nil {
		return v, scope, nil, err
	}
	scope.wasUndefined = row.Undefined > 0
	active, err := row.value()
	if err == nil && active.Number > number {
		err = fault.New(op, fault.Conflict, fmt.Sprintf("version %d is older than the active one, %d", number,
			active.Number)).
			Hint("roll back to it, or compile the commit that you want again")
	}
	return v, scope, &active, err
}

// activate makes a version the intent.
func (s *Store) activate(ctx context.Context, tx pgx.Tx, v intent.Version, scope releaseScope, c *intent.Confirmation,
	at time.Time) error {
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
	if scope.undefined {
		var err error
		if blocked, err = blockedResources(ctx, tx, env, v.Number); err != nil {
			return err
		}
	}
	begun := deployStatus{v.Number, v.Provenance.Commit, string(intent.CommitPending), "Deploying"}
	if err := s.queueDeployStatus(ctx, tx, env, begun, at); err != nil {
		return err
	}
	return releaseStates(ctx, tx, env, v.Number, scope, blocked, at)
}

func releaseStates(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	number int,
	scope releaseScope,
	blocked []int64,
	at time.Time,
) error {
	added, err := tx.Exec(ctx, statements.ReleaseStates, env, number, blocked)
	if err != nil {
		return err
	}
	if scope.removes {
		if _, err := tx.Exec(ctx, statements.ReleaseOrphans, env, number); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, statements.ReleaseDrift, env, at); err != nil {
		return err
	}
	if scope.undefined || scope.wasUndefined {
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

// blockedResources returns the keys of the resources of a version that are undefined or, through any number of
// requirements, depend on one that is.
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
