package store

import (
	"context"

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
	if err := s.read(ctx, op, func(q querier) error { return requireVersion(ctx, q, env, number) }); err != nil {
		return intent.Page[intent.VersionMember]{}, err
	}
	return page(ctx, s, op, VersionMemberList, q, memberRow.value, env, number)
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
		out, err = many[MemberCount](ctx, q, statements.VersionMemberCounts, env, number)
		return err
	})
	return out, err
}
