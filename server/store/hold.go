package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// judge compares a version with the one that is deployed. It returns why the version must be held, nil when it need
// not be, and how many resources it no longer has.
func judge(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	before *intent.Version,
	v intent.Version,
	at time.Time,
) (hold *intent.Hold, left int, err error) {
	row, err := one[environmentRow](ctx, tx, statements.EnvironmentGet, env)
	if err != nil {
		return nil, 0, err
	}
	e, err := row.value()
	if err != nil {
		return nil, 0, err
	}
	guard := intent.GuardOf(e)
	removal, left, err := removalOf(ctx, tx, guard, before, v)
	if err != nil {
		return nil, 0, err
	}
	return holdOf(guard, removal, at), left, nil
}

// removalRow is one line of the statement Removal.
type removalRow struct {
	Kind   string // type, first, protected or left
	Type   string
	ID     string
	Purged bool
	Total  int // of the type, or of all that are protected or left
	Purges int // of the type
}

func (r removalRow) removed() (intent.Removed, error) {
	id, err := intent.ParseResourceID(r.ID)
	return intent.Removed{ID: id, Purged: r.Purged}, err
}

// removalOf counts what a version takes away, and all resources, purged ones included, that it no longer has. It
// looks into contents only where the two versions differ, unless so much goes that the share matters.
func removalOf(
	ctx context.Context,
	tx pgx.Tx,
	g intent.Guard,
	before *intent.Version,
	v intent.Version,
) (out intent.Removal, left int, err error) {
	out = intent.Removal{
		Total:     v.Total,
		Types:     []intent.RemovedType{},
		First:     []intent.Removed{},
		Protected: []intent.Removed{},
	}
	if before != nil {
		out.Before, out.BeforeTotal = before.Number, before.Total
	} else if len(g.Protected) == 0 {
		return out, 0, nil
	}
	rows, err := many[removalRow](ctx, tx, statements.Removal, v.Environment, v.Number, intent.RemovalShown,
		g.Protected.Like())
	if err != nil {
		return out, 0, err
	}
	for _, r := range rows {
		if r.Kind == "left" {
			left = r.Total
			continue
		}
		if err := addRemoval(&out, r); err != nil {
			return out, 0, err
		}
	}
	slices.SortFunc(out.Types, func(a, b intent.RemovedType) int {
		return cmp.Or(cmp.Compare(b.Gone+b.Purged, a.Gone+a.Purged), cmp.Compare(a.Type, b.Type))
	})
	out.Types = out.Types[:min(len(out.Types), intent.RemovalShown)]
	if out.Count() > 0 && (out.Count() >= g.Minimum || out.ProtectedCount > 0 || out.Total == 0) {
		err = tx.QueryRow(ctx, statements.RemovalLive, v.Environment, out.Before).Scan(&out.Live)
	}
	return out, left, err
}

func addRemoval(out *intent.Removal, r removalRow) error {
	if r.Kind == "type" {
		out.Gone, out.Purged = out.Gone+r.Total-r.Purges, out.Purged+r.Purges
		out.Types = append(out.Types, intent.RemovedType{Type: r.Type, Gone: r.Total - r.Purges, Purged: r.Purges})
		return nil
	}
	one, err := r.removed()
	if r.Kind == "first" {
		out.First = append(out.First, one)
		return err
	}
	out.Protected, out.ProtectedCount = append(out.Protected, one), r.Total
	return err
}

// mayRelease returns the fault that refuses a release, if any. A person confirms what was recorded, and no more.
func mayRelease(op string, v intent.Version, hold *intent.Hold, c *intent.Confirmation) error {
	if hold == nil {
		if c != nil && v.Hold == nil {
			return fault.New(op, fault.Conflict, fmt.Sprintf("version %d is not held", v.Number)).
				Hint("release it instead")
		}
		return nil
	}
	if c == nil || !hold.Confirmable() || v.Hold == nil {
		held := &HeldError{Version: v.Number, Hold: *hold}
		return fault.Wrap(op, fault.Conflict, held).Hint(held.Advice())
	}
	if hold.Count() > v.Hold.Count() || hold.Before != v.Hold.Before {
		return fault.New(op, fault.Conflict,
			fmt.Sprintf("version %d would now take away something else than when it was held, because "+
				"another version was released since: %s", v.Number, hold.Text)).
			Hint("look at it again, then confirm it")
	}
	return nil
}

// setHold records why a version is held. When the reason is the same as before it keeps its time.
func setHold(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, v intent.Version, hold *intent.Hold) error {
	if hold == nil {
		return nil
	}
	if v.Hold != nil && v.Hold.Text == hold.Text && v.Hold.Before == hold.Before {
		hold.Since = v.Hold.Since
	}
	_, err := tx.Exec(ctx, statements.VersionHold, env, v.Number, toJSON(hold))
	return err
}

// HeldVersions lists the candidates that wait for a confirmation, newest first.
func (s *Store) HeldVersions(ctx context.Context, env intent.EnvironmentID) (out []intent.Version, err error) {
	return listed(ctx, s, "store.HeldVersions", versionRow.value, statements.HeldVersions, env)
}
