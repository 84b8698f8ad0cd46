package store

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// A page of resources and what stands beside it are two statements, which the database runs at the same time:
//
//	the rows of the page ─▶ in the order of an index, where there is one
//	all rows, read once ──▶ groups of equal type, agent, state and parking ─┬─▶ counts by each of these
//	                                                                        └─▶ all rows, those beside the page

// FacetList is how many values of a property there are, and those that most resources have.
type FacetList struct {
	Values []intent.Facet // those that are chosen, too, however few have them; most first
	Total  int            // of values that any resource has
}

// FacetedPage is a page of resources, with the counts of all that the filter matches.
type FacetedPage struct {
	intent.Page[intent.ResourceRow]
	Facets map[intent.FacetOf]FacetList
}

// FilteredResources lists the resources that a filter matches, among those of the query, with their states, and counts
// all that the filter matches by type, agent, state, and whether they are parked. What the filter chooses of a property
// does not limit the counts of that property, so that they say what choosing another value would show. Of each it
// returns at most so many values beside those that are chosen. The query has no filters of its own.
func (s *Store) FilteredResources(
	ctx context.Context, env intent.EnvironmentID, f intent.ResourceFilter, q intent.ListQuery, most int,
) (out FacetedPage, err error) {
	const op = "store.FilteredResources"
	if err := checkFilter(f); err != nil {
		return out, err
	}
	switch {
	case f.Version != 0:
		return out, fault.New(op, fault.Invalid, "a list of states has no version to filter on")
	case len(q.Filters) > 0:
		return out, fault.New(op, fault.Internal, "the query of a filtered list has filters of its own")
	}
	if q, err = ResourceList.Normalize(q); err != nil {
		return out, err
	}
	rows, err := ResourceList.buildWhere(q, func(b *sqlBuilder) []string {
		c := b.resources(f)
		return append(c.all(""), c.rest...)
	}, env)
	if err != nil {
		return out, err
	}
	counts, args, err := facetSQL(env, f, q, most)
	if err != nil {
		return out, err
	}
	// Either has lists of values, of which a plan that is kept would take no account.
	rows.args, args = slices.Insert(rows.args, 0, plannedAnew), slices.Insert(args, 0, plannedAnew)
	var found []facetRow
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		return s.read(ctx, op, func(db querier) (err error) {
			out.Items, err = collect(ctx, db, listedRow.value, rows.page, rows.args...)
			return err
		})
	})
	both.Go(func() error {
		return s.read(ctx, op, func(db querier) (err error) {
			found, err = many[facetRow](ctx, db, counts, args...)
			return err
		})
	})
	if err := both.Wait(); err != nil {
		return out, err
	}
	side := 0
	out.Facets = map[intent.FacetOf]FacetList{}
	for _, r := range found {
		if r.Facet == everyRow {
			out.Total, side = r.Count, r.Side
			continue
		}
		of := intent.FacetOf(r.Facet)
		list := out.Facets[of]
		list.Total = r.Total
		list.Values = append(list.Values, intent.Facet{Of: of, Value: r.Value, Count: r.Count})
		out.Facets[of] = list
	}
	out.Before, out.After = around(q, len(out.Items), out.Total, side)
	if facesAway(q) {
		slices.Reverse(out.Items)
	}
	return out, nil
}

type facetRow struct {
	Facet string // everyRow, or one of intent.FacetOf
	Value string
	Count int
	Side  int // of everyRow: the rows on the side of the place on which the page lies
	Total int // of values of the facet
}

// everyRow is the name of the counts of all rows that the filter matches.
const everyRow = "all"

// facetSQL returns the statement that counts.
func facetSQL(
	env intent.EnvironmentID, f intent.ResourceFilter, q intent.ListQuery, most int,
) (sql string, args []any, err error) {
	b := &sqlBuilder{list: ResourceList, args: []any{env}}
	place, err := b.place(q)
	if err != nil {
		return "", nil, err
	}
	c := b.resources(f)
	// The conditions on properties hold for groups as they do for rows.
	sum := func(of intent.FacetOf, what string) string {
		conditions := c.all(of)
		if len(conditions) == 0 {
			return "sum(" + what + ")"
		}
		return "sum(" + what + ") FILTER (WHERE " + strings.Join(conditions, " AND ") + ")"
	}
	groups := "SELECT l.type, l.agent, l.status, CASE WHEN l.parked <> '' THEN 'parked' ELSE '' END AS parked, " +
		"count(*) AS n, count(*) FILTER (WHERE " + place + ") AS side" +
		from(statements.ResourceCounted, c.rest) + " GROUP BY 1, 2, 3, 4"
	// GROUPING has a bit for each column that is not grouped by, the last one lowest.
	const which = "CASE GROUPING(l.type, l.agent, l.status, (l.parked <> '')) "
	counts := "SELECT " + which + "WHEN 7 THEN '" + string(intent.FacetType) + "' WHEN 11 THEN '" +
		string(intent.FacetAgent) + "' WHEN 13 THEN '" + string(intent.FacetStatus) + "' WHEN 14 THEN '" +
		string(intent.FacetParked) + "' ELSE '" + everyRow + "' END AS facet, " +
		"coalesce(l.type, l.agent, l.status, (l.parked <> '')::text, '') AS value, coalesce(" +
		which + "WHEN 7 THEN " + sum(intent.FacetType, "n") + " WHEN 11 THEN " + sum(intent.FacetAgent, "n") +
		" WHEN 13 THEN " + sum(intent.FacetStatus, "n") + " WHEN 14 THEN " + sum(intent.FacetParked, "n") +
		" ELSE " + sum("", "n") + " END, 0)::bigint AS count, coalesce(" + sum("", "side") + ", 0)::bigint AS side" +
		" FROM (" + groups + ") AS l" +
		" GROUP BY GROUPING SETS ((), (l.type), (l.agent), (l.status), ((l.parked <> '')))"
	chosen := func(of intent.FacetOf, values []string) string {
		return "(facet = '" + string(of) + "' AND value = ANY(" + b.arg(values) + "::text[]))"
	}
	picked := strings.Join([]string{
		chosen(intent.FacetType, cleanTexts(f.Type.In)), chosen(intent.FacetAgent, cleanTexts(f.Agent.In)),
	}, " OR ")
	sql = "SELECT facet, value, count, side, total FROM (SELECT facet, value, count, side, " +
		"row_number() OVER (PARTITION BY facet ORDER BY count DESC, value) AS place, " +
		"count(*) FILTER (WHERE count > 0) OVER (PARTITION BY facet) AS total FROM (" + counts + ") AS c) AS p " +
		"WHERE count > 0 AND place <= " + b.arg(most) + " OR facet = '" + everyRow + "' OR " + picked +
		" ORDER BY facet, place"
	return sql, b.args, nil
}
