package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ReserveVersion reserves the next version number of an environment, for a version that is compiled on another machine.
// A number stays reserved until a version gets it. It never means another version: when that one is deleted, the number
// is not reserved again.
func (s *Store) ReserveVersion(ctx context.Context, env intent.EnvironmentID) (number int, err error) {
	err = s.write(ctx, "store.ReserveVersion", func(tx pgx.Tx) error {
		last, err := lockEnvironment(ctx, tx, env)
		if err != nil {
			return err
		}
		number = last + 1
		if _, err = tx.Exec(ctx, statements.VersionReserve, env, number); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.VersionReservationsForget, env)
		return err
	})
	return number, err
}

// useReserved takes a reserved number for a version, and fails unless it is reserved. The caller holds the lock of the
// environment.
func useReserved(ctx context.Context, tx pgx.Tx, op string, v intent.NewVersion, last int) error {
	if v.Number > last {
		return fault.New(op, fault.Invalid, fmt.Sprintf(
			"The version number used is %d which is higher than the last outstanding reservation %d", v.Number, last)).
			Hint("reserve a number with POST /api/v2/reserve_version first")
	}
	if v.Number < 0 {
		return fault.New(op, fault.Invalid, fmt.Sprintf("The version number used (%d) is not positive", v.Number))
	}
	_, err := one[versionRow](ctx, tx, statements.VersionGet, v.Environment, v.Number)
	if err == nil {
		return fault.New(op, fault.Conflict, fmt.Sprintf("version %d is stored already", v.Number)).
			Hint("reserve another number and export again")
	}
	if !isNoRows(err) {
		return err
	}
	active, err := activeIn(ctx, tx, v.Environment)
	if err != nil {
		return err
	}
	if active != nil && active.Number > v.Number {
		return fault.New(op, fault.Conflict, fmt.Sprintf(
			"version %d was deployed after number %d was reserved", active.Number, v.Number)).
			Hint("somebody else deployed meanwhile: look at what, and export again")
	}
	err = affected(tx.Exec(ctx, statements.VersionReservationUse, v.Environment, v.Number))
	if isNoRows(err) {
		err = fault.New(op, fault.Conflict, fmt.Sprintf(
			"version number %d is not reserved: a version had it that was deleted, or it was never given out",
			v.Number)).
			Hint("reserve another number and export again")
	}
	return err
}

func activeIn(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID) (*intent.Version, error) {
	row, err := one[versionRow](ctx, tx, statements.VersionActive, env)
	if isNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := row.value()
	return &v, err
}

// pushedAfter notes in a pushed version which commit was deployed before it, and returns the number of the version
// whose clusters it keeps, 0 for none: clusters come from files of commits, so a pushed version says nothing of them.
func pushedAfter(ctx context.Context, tx pgx.Tx, v *intent.NewVersion) (clustersOf int, err error) {
	active, err := activeIn(ctx, tx, v.Environment)
	if err != nil || active == nil {
		return 0, err
	}
	p := *v.Provenance.Pushed
	p.After = active.Provenance.BranchCommit()
	if b := active.Provenance.RolledBack; b != nil && b.Branch != "" {
		p.After = b.Branch
	}
	v.Provenance.Pushed = &p
	return active.Number, nil
}

// inherit gives a partial export the constraints of its base, which a part of a project does not know.
func inherit(v *intent.NewVersion, base intent.Provenance) {
	if v.Provenance.Pushed == nil || base.Pushed == nil {
		return
	}
	p := *v.Provenance.Pushed
	p.Constraints = base.Pushed.Constraints
	v.Provenance.Pushed = &p
	code := make([]intent.ResourceCode, len(v.Code))
	for i, c := range v.Code {
		c.Constraints = base.Pushed.ConstraintLines()
		code[i] = c
	}
	v.Code = code
}

// storeElsewhere stores the report of a compile on another machine.
func storeElsewhere(ctx context.Context, tx pgx.Tx, op string, e intent.Elsewhere, number int, at time.Time) error {
	c := e.Compile
	if err := enqueue(ctx, tx, op, c); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.CompileElsewhere, c.ID, c.Started, at, number); err != nil {
		return err
	}
	for _, s := range e.Stages {
		if _, err := tx.Exec(ctx, statements.StageStart, s.ID, c.ID, s.Name, s.Command, s.Started); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.StageFinish, s.ID, s.Command, 0, s.Completed); err != nil {
			return err
		}
	}
	return nil
}
