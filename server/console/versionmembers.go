package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/members"
)

// memberTable lists the resources of a version with what became of them: a filter, counts by type, and a page.
type memberTable struct {
	Path     string
	Types    []choice
	States   []choice
	Agent    string
	Value    string
	Counts   []memberCountRow
	Hidden   int // types that Counts leaves out
	Rows     []resourceRow
	Sorts    []sortLink
	Pager    pager
	Filtered bool
	Empty    bool // the version has no resources
}

// memberCountRow is how many resources of a type a version has, and how many of them are deployed otherwise.
type memberCountRow struct {
	Type, URL string
	Count     int
	States    []diffCount
}

// memberState is how the standing of a resource in a version is shown.
func memberState(s intent.Status) state {
	switch s {
	case intent.MemberOther:
		return state{"differs", "deployed otherwise"}
	case intent.MemberAbsent:
		return state{"none", "not deployed"}
	}
	return stateOf(s)
}

// memberColumns are the columns by which people can sort the resources of a version.
var memberColumns = []column{
	{"status", "State"}, {"resource_type", "Type"}, {"resource_id_value", "Resource"}, {"agent", "Agent"},
}

// membersOf loads the resources of a version that a request asks for.
func (c *console) membersOf(r *http.Request, v intent.Version) (out memberTable, err error) {
	env, path := v.Environment, versionURL(v.Environment, v.Number)
	l := listingOf(r, store.VersionMemberList, path)
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	out = memberTable{Path: path, Agent: get("agent"), Value: get("value")}
	for name, field := range map[string]string{
		"type": "resource_type", "agent": "agent", "value": "resource_id_value", "status": "status",
	} {
		if text := get(name); text != "" {
			l.filter(field, text, name, text)
		}
	}
	out.Filtered = l.filtered()
	l.sort(get("sort"))
	now, err := c.store.VersionNow(r.Context(), env, v.Number)
	if err != nil {
		return out, err
	}
	page, err := now.Page(r.Context(), l.query)
	if err != nil {
		return out, err
	}
	counts := now.Counts()
	out.Empty = len(counts) == 0
	out.count(counts, get("type"), get("status"))
	for _, x := range page.Items {
		out.Rows = append(out.Rows, resourceRow{
			URL: resourceURL(env, x.ID), Type: x.ID.Type, Agent: x.ID.Agent, Value: x.ID.Value, ID: x.ID.String(),
			State: memberState(x.Standing),
		})
	}
	out.Sorts = l.sortLinks(memberColumns)
	out.Pager = pagerOf(l, page, func(x intent.VersionMember) (string, string) {
		return resourcePlace(l.query.Sort, x.ID, x.Standing)
	})
	return out, nil
}

// count adds what is counted, and the choices of the filter.
func (t *memberTable) count(counts []members.Count, chosenType, chosenState string) {
	slices.SortFunc(counts, func(a, b members.Count) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Standing, b.Standing))
	})
	t.Types, t.States = []choice{{"", "All types", chosenType == ""}}, []choice{{"", "All states", chosenState == ""}}
	known := map[string]bool{}
	for _, one := range counts {
		if last := len(t.Counts) - 1; last < 0 || t.Counts[last].Type != one.Type {
			t.Types = append(t.Types, choice{one.Type, one.Type, one.Type == chosenType})
			t.Counts = append(t.Counts, memberCountRow{
				Type: one.Type, URL: t.Path + "?" + url.Values{"type": {one.Type}}.Encode(),
			})
		}
		row := &t.Counts[len(t.Counts)-1]
		row.Count += one.Count
		row.States = append(row.States, diffCount{
			State: memberState(intent.Status(one.Standing)), N: one.Count,
			URL: t.Path + "?" + url.Values{"status": {one.Standing}, "type": {one.Type}}.Encode(),
		})
		if !known[one.Standing] {
			known[one.Standing] = true
			t.States = append(t.States, choice{
				one.Standing, memberState(intent.Status(one.Standing)).Word, one.Standing == chosenState,
			})
		}
	}
	slices.SortStableFunc(t.Counts, func(a, b memberCountRow) int { return b.Count - a.Count })
	t.Hidden = max(0, len(t.Counts)-shownCounts)
	t.Counts = t.Counts[:len(t.Counts)-t.Hidden]
}
