package members

import (
	"math"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// The names of the fields of the list.
const (
	fieldType   = "resource_type"
	fieldAgent  = "agent"
	fieldValue  = "resource_id_value"
	fieldID     = "resource_id"
	fieldStatus = "status"
)

// Part is what a query of the list finds.
type Part struct {
	Items []Item // nearest to the bound of the query first
	Total int    // of all rows
	Side  int    // of those on the bound's side of its place; all without a bound
}

// Page returns the rows of a normalized query. It reports false when only the database can tell.
func (n *Now) Page(q intent.ListQuery) (out Part, ok bool) {
	allowed, ok := n.filters(q.Filters)
	if !ok {
		return out, false
	}
	rank := n.ranks(q.Sort)
	bound, above := q.Before, false
	if q.After != nil {
		bound, above = q.After, true
	}
	var at place
	if bound != nil {
		if at, ok = n.place(q.Sort, *bound, above); !ok {
			return out, false
		}
	}
	// A row is one number here: its doubled rank, then its number.
	var side []uint64
	for i := range n.table.ids {
		if !allowed.has(i) {
			continue
		}
		out.Total++
		here := place{2 * rank(i), 2 * i}
		if q.Sort == fieldID {
			here.id = 0
		}
		if bound != nil && (above && here.compare(at) <= 0 || !above && here.compare(at) >= 0) {
			continue
		}
		side = append(side, uint64(here.by)<<32|uint64(i))
	}
	out.Side = len(side)
	slices.Sort(side)
	ascending := !q.Desc
	if bound != nil {
		ascending = above
	}
	if !ascending {
		slices.Reverse(side)
	}
	for _, row := range side[:min(q.Limit, len(side))] {
		out.Items = append(out.Items, n.item(int(uint32(row))))
	}
	return out, true
}

// ranks returns the rank of each row in the order of a field.
func (n *Now) ranks(field string) func(i int) int {
	if field == fieldID {
		return func(i int) int { return i }
	}
	of := n.column(field).of
	return func(i int) int { return int(of[i]) }
}

func (n *Now) column(field string) *column {
	switch field {
	case fieldAgent:
		return &n.table.agents
	case fieldValue:
		return &n.table.values
	case fieldStatus:
		return &n.standings
	}
	return &n.table.types
}

// place returns where a bound lies. The database knows the order of any text; here, only those of the version are
// ranked. Ids are sorted by their bytes, and so are standings, in which no language would sort them otherwise.
func (n *Now) place(field string, bound intent.Bound, above bool) (out place, ok bool) {
	if bound.Value == nil {
		return out, false
	}
	switch field {
	case fieldID:
		out.by, _ = among(n.table.ids, *bound.Value)
		return out, true
	case fieldStatus:
		if !isStanding(*bound.Value) {
			return out, false
		}
		out.by, _ = among(n.standings.texts, *bound.Value)
	default:
		i := slices.Index(n.column(field).texts, *bound.Value)
		if i < 0 {
			return out, false
		}
		out.by = 2 * i
	}
	switch {
	case bound.ID != "":
		out.id, _ = among(n.table.ids, bound.ID)
	case above: // beyond all rows with this value
		out.id = math.MaxInt
	default:
		out.id = math.MinInt
	}
	return out, true
}

var known = []intent.Status{
	intent.MemberOther, intent.MemberAbsent, intent.StatusUnavailable, intent.StatusSkipped, intent.StatusDeployed,
	intent.StatusFailed, intent.StatusDeploying, intent.StatusAvailable, intent.StatusUndefined,
	intent.StatusSkippedForUndefined, intent.StatusNonCompliant, intent.StatusOrphaned,
}

func isStanding(text string) bool { return slices.Contains(known, intent.Status(text)) }

// filter says of each row whether it is shown, by the ranks of its columns.
type filter []struct {
	of      []int32
	allowed []bool
}

func (f filter) has(i int) bool {
	for _, one := range f {
		if !one.allowed[one.of[i]] {
			return false
		}
	}
	return true
}

func (n *Now) filters(filters map[string][]string) (out filter, ok bool) {
	for field, wanted := range filters {
		var match func(text string) bool
		c := n.column(field)
		switch field {
		case fieldType, fieldStatus:
			match = func(text string) bool { return slices.Contains(wanted, text) }
		case fieldAgent, fieldValue:
			if !n.table.lowerable || !c.ascii || !isASCII(strings.Join(wanted, "")) {
				return nil, false
			}
			small := make([]string, len(wanted))
			for i, text := range wanted {
				small[i] = strings.ToLower(text)
			}
			match = func(text string) bool {
				text = strings.ToLower(text)
				return slices.ContainsFunc(small, func(part string) bool { return strings.Contains(text, part) })
			}
		default:
			return nil, false
		}
		allowed := make([]bool, len(c.texts))
		for i, text := range c.texts {
			allowed[i] = match(text)
		}
		out = append(out, struct {
			of      []int32
			allowed []bool
		}{c.of, allowed})
	}
	return out, true
}
