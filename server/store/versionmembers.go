package store

import (
	"context"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/members"
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

// VersionNow is a version with what has become of its resources, as it was at one moment.
type VersionNow struct {
	store  *Store
	env    intent.EnvironmentID
	number int
	now    *members.Now
}

// VersionNow returns what has become of the resources of a version. Package members explains how.
func (s *Store) VersionNow(ctx context.Context, env intent.EnvironmentID, number int) (VersionNow, error) {
	table, err := s.tables.get(ctx, s, versionKey{env, number})
	if err != nil {
		return VersionNow{}, err
	}
	states, err := s.states.Get(ctx, env, s.statesByStatus)
	if err != nil {
		return VersionNow{}, err
	}
	now := table.Now(states, string(intent.MemberOther), string(intent.MemberAbsent))
	return VersionNow{s, env, number, now}, nil
}

func (s *Store) statesByStatus(ctx context.Context, env intent.EnvironmentID) (out []members.States, err error) {
	err = s.read(ctx, "store.VersionNow", func(q querier) (err error) {
		out, err = many[members.States](ctx, q, statements.StatesByStatus, env)
		return err
	})
	return out, err
}

// Counts counts the resources by type and standing.
func (v VersionNow) Counts() []members.Count { return v.now.Counts() }

// Page lists the resources, a page at a time. The few queries that only the database can answer are of a moment later.
func (v VersionNow) Page(ctx context.Context, q intent.ListQuery) (out intent.Page[intent.VersionMember], err error) {
	if q, err = VersionMemberList.Normalize(q); err != nil {
		return out, err
	}
	part, ok := v.now.Page(q)
	if !ok {
		return v.store.versionMemberPage(ctx, v.env, v.number, q)
	}
	out.Items, err = convert(part.Items, func(i members.Item) (intent.VersionMember, error) {
		return memberRow{ID: i.ID, Standing: i.Standing}.value()
	})
	out.Total = part.Total
	out.Before, out.After = around(q, len(out.Items), part.Total, part.Side)
	if facesAway(q) {
		slices.Reverse(out.Items)
	}
	return out, err
}

// VersionMembers lists the resources of a version with what became of them, a page at a time.
func (s *Store) VersionMembers(
	ctx context.Context, env intent.EnvironmentID, number int, q intent.ListQuery,
) (out intent.Page[intent.VersionMember], err error) {
	v, err := s.VersionNow(ctx, env, number)
	if err != nil {
		return out, err
	}
	return v.Page(ctx, q)
}

// versionMemberPage has the database list them.
func (s *Store) versionMemberPage(
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
