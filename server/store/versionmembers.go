package store

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type memberRow struct {
	ID                 string
	Type, Agent, Value string
	Standing           string
}

func (r memberRow) value() (out intent.VersionMember, err error) {
	out.Standing = intent.Status(r.Standing)
	out.ID, err = intent.ParseResourceID(r.ID)
	return out, err
}

// VersionMembers lists the resources of a version with what became of them, a page at a time.
func (s *Store) VersionMembers(
	ctx context.Context, env intent.EnvironmentID, number int, q intent.ListQuery,
) (intent.Page[intent.VersionMember], error) {
	const op = "store.VersionMembers"
	var contents []int64
	err := s.read(ctx, op, func(q querier) (err error) {
		contents, err = versionContents(ctx, q, env, number)
		return err
	})
	if err != nil {
		return intent.Page[intent.VersionMember]{}, err
	}
	return page(ctx, s, op, VersionMemberList, q, memberRow.value, env, contents)
}

// versionContents returns the keys of what a version says of its resources.
func versionContents(
	ctx context.Context, q querier, env intent.EnvironmentID, number int,
) (contents []int64, err error) {
	err = q.QueryRow(ctx, statements.VersionContents, env, number).Scan(&contents)
	if isNoRows(err) {
		err = fault.New("store.Version", fault.NotFound, "there is no such version")
	}
	return contents, err
}

// MemberCount is how many resources of a type have one standing.
type MemberCount struct {
	Type     string
	Standing intent.Status
	Count    int
}

// VersionMemberCounts counts the resources of a version by type and standing, in no order.
func (s *Store) VersionMemberCounts(
	ctx context.Context, env intent.EnvironmentID, number int,
) (out []MemberCount, err error) {
	err = s.read(ctx, "store.VersionMemberCounts", func(q querier) error {
		contents, err := versionContents(ctx, q, env, number)
		if err == nil {
			out, err = many[MemberCount](ctx, q, statements.VersionMemberCounts, plannedAnew, env, contents)
		}
		return err
	})
	return out, err
}
