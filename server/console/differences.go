package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/comparison"
)

// diffList shows what differs: in numbers, equal changes as one, and a page of resources.
type diffList struct {
	Counts   []diffCount
	Table    diffTable
	Filter   diffFilter
	Groups   []diffGroup
	Folded   int    // how many resources the groups stand for and are not listed
	AllURL   string // lists these, too
	Rows     []diffRow
	Pager    pager
	Filtered bool
	ClearURL string
}

type diffCount struct {
	State state
	N     int
	URL   string
}

// diffTable counts what differs by type and agent.
type diffTable struct {
	Kinds  []string
	Rows   []diffTableRow
	Hidden int
}

type diffTableRow struct {
	Type, Agent, URL string
	Numbers          []int
}

// diffFilter is the form that chooses among the differences.
type diffFilter struct {
	Path                string
	Keep                []attribute // what is compared
	Types, Agents, Kind []choice
	Text                string
	Any                 bool // there is enough to choose from
}

// diffGroup is a change that several resources have in common.
type diffGroup struct {
	Type   string
	Edits  []groupEdit
	Count  int
	Agents int
	URL    string
	Chosen bool
}

type groupEdit struct {
	Name       string
	Was, Now   string
	Part, Plus bool // it is a part of a text; something is only added or, if only Was is set, only taken away
}

type diffRow struct {
	URL       string
	ID        string
	State     state
	Changes   changes
	Open      bool
	Reason    string // why a dry run could not find out
	Behind    string // the resource that would be created first
	BehindURL string
}

const (
	// shownDiffs is how many resources a list of names has at most.
	shownDiffs = 500
	// shownCounts is how many types and agents the table above the differences has.
	shownCounts = 40
	// shownText is how many bytes of changed lines one page of differences shows, and shownEdit how many of a change in
	// a group.
	shownText, shownEdit = 30_000, 120
	// tabled is from how many differences on they are counted by type and agent, and equal ones are one.
	tabled = 10
)

// diffOrder is the order in which a comparison lists what differs.
var diffOrder = []intent.DiffKind{
	intent.DiffDeleted, intent.DiffModified, intent.DiffAdded, intent.DiffUndefined, intent.DiffSkipped,
	intent.DiffUnknown, intent.DiffAgentDown, intent.DiffUnmodified,
}

// diffPlace is where a comparison is shown.
type diffPlace struct {
	path      string
	keep      url.Values // what is compared, in the address
	was, will string     // headings of the two sides
	// dryRun is the address of the dry run, which sends whole values; empty: nothing does.
	dryRun string
	// version is the address of the version that decided the desired values; empty: none is kept.
	version string
	// versions says that two versions are compared: nothing is created by that, and what only the older one has is left
	// as it is, not purged.
	versions bool
}

// state returns the look of a kind of difference at this place.
func (at diffPlace) state(k intent.DiffKind) state {
	switch {
	case at.versions && k == intent.DiffDeleted:
		return unmanaged
	case at.versions && k == intent.DiffAdded:
		return added
	}
	return diffState(k)
}

// differences loads what a page shows of a comparison.
func (c *console) differences(
	r *http.Request, e intent.Environment, of intent.Compared, final bool, at diffPlace,
) (out diffList, index *comparison.Index, err error) {
	if index, err = c.control.Compare(r.Context(), of, final); err != nil {
		return out, nil, err
	}
	q := r.URL.Query()
	f := comparison.Filter{
		Type: q.Get("type"), Agent: q.Get("agent"), Kind: intent.DiffKind(q.Get("kind")),
		Text: strings.TrimSpace(q.Get("q")),
	}
	f.Group, _ = strconv.Atoi(q.Get("group"))
	address := func(pairs ...string) string { return diffAddress(at, f, pairs...) }
	kinds := index.Kinds()
	total := 0
	for _, kind := range diffOrder {
		if n := kinds[kind]; n > 0 {
			one := diffCount{State: at.state(kind), N: n}
			if kind != intent.DiffUnmodified {
				total += n
				one.URL = diffAddress(at, comparison.Filter{Kind: kind})
			}
			out.Counts = append(out.Counts, one)
		}
	}
	out.Filtered = f != comparison.Filter{}
	out.ClearURL = diffAddress(at, comparison.Filter{})
	counts := index.Counts()
	out.Filter = diffFilterOf(at, f, counts, kinds)
	out.Filter.Any = total >= tabled || out.Filtered
	if total >= tabled {
		out.Table = diffTableOf(at, counts, kinds)
		for _, g := range index.Groups(f) {
			if f.Group == 0 || f.Group == g.Number {
				out.Groups = append(out.Groups, diffGroupOf(g, address("group", strconv.Itoa(g.Number)), f.Group > 0))
			}
		}
		f.Folded = f.Group == 0 && q.Get("all") != "yes"
	}
	number, _ := strconv.Atoi(q.Get("page"))
	number = min(max(number, 1), 1_000_000)
	named, n := index.Page(f, (number-1)*perPage, perPage)
	if f.Folded {
		open := f
		open.Folded = false
		_, all := index.Page(open, 0, 0)
		out.Folded, out.AllURL = all-n, address("all", "yes")
	}
	out.Pager = diffPager(number, len(named), n, func(page int) string {
		if q.Get("all") == "yes" {
			return address("all", "yes", "page", strconv.Itoa(page))
		}
		return address("page", strconv.Itoa(page))
	})
	diffs, err := c.store.Diffs(r.Context(), of, named)
	if err != nil {
		return out, nil, err
	}
	out.Rows, err = c.diffRows(r, e, at, diffs)
	return out, index, err
}

// diffAddress returns the address of a comparison with a filter and more parameters.
func diffAddress(at diffPlace, f comparison.Filter, pairs ...string) string {
	values := maps.Clone(at.keep)
	if values == nil {
		values = url.Values{}
	}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("type", f.Type)
	set("agent", f.Agent)
	set("kind", string(f.Kind))
	set("q", f.Text)
	if f.Group > 0 {
		set("group", strconv.Itoa(f.Group))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		set(pairs[i], pairs[i+1])
	}
	if len(values) == 0 {
		return at.path
	}
	return at.path + "?" + values.Encode()
}

func diffPager(number, shown, total int, address func(int) string) pager {
	out := pager{From: (number-1)*perPage + 1, To: (number-1)*perPage + shown, Total: total, Of: "the differences"}
	if shown == 0 {
		out.From, out.To = 0, 0
	}
	if number > 1 {
		out.First, out.Prev = address(1), address(number-1)
	}
	if out.To < total && shown > 0 {
		out.Next = address(number + 1)
	}
	return out
}

func diffFilterOf(
	at diffPlace, f comparison.Filter, counts []comparison.Count, kinds map[intent.DiffKind]int,
) diffFilter {
	out := diffFilter{Path: at.path, Text: f.Text}
	for _, name := range slices.Sorted(maps.Keys(at.keep)) {
		out.Keep = append(out.Keep, attribute{Name: name, Value: at.keep.Get(name)})
	}
	types, agents := map[string]bool{}, map[string]bool{}
	for _, c := range counts {
		types[c.Type], agents[c.Agent] = true, true
	}
	out.Types = []choice{{"", "All types", f.Type == ""}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		out.Types = append(out.Types, choice{name, name, name == f.Type})
	}
	out.Agents = []choice{{"", "All agents", f.Agent == ""}}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if len(out.Agents) <= shownDiffs || name == f.Agent {
			out.Agents = append(out.Agents, choice{name, name, name == f.Agent})
		}
	}
	out.Kind = []choice{{"", "All changes", f.Kind == ""}}
	for _, kind := range diffOrder {
		if kinds[kind] > 0 && kind != intent.DiffUnmodified {
			out.Kind = append(out.Kind, choice{string(kind), at.state(kind).Word, kind == f.Kind})
		}
	}
	return out
}

func diffTableOf(at diffPlace, counts []comparison.Count, kinds map[intent.DiffKind]int) diffTable {
	out := diffTable{Hidden: max(0, len(counts)-shownCounts)}
	var columns []intent.DiffKind
	for _, kind := range diffOrder {
		if kinds[kind] > 0 && kind != intent.DiffUnmodified {
			columns = append(columns, kind)
			out.Kinds = append(out.Kinds, at.state(kind).Word)
		}
	}
	for _, c := range counts[:len(counts)-out.Hidden] {
		row := diffTableRow{
			Type: c.Type, Agent: c.Agent, URL: diffAddress(at, comparison.Filter{Type: c.Type, Agent: c.Agent}),
		}
		for _, kind := range columns {
			row.Numbers = append(row.Numbers, c.Kinds[kind])
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func diffGroupOf(g comparison.Group, address string, chosen bool) diffGroup {
	out := diffGroup{Type: g.Type, Count: g.Count, Agents: g.Agents, URL: address, Chosen: chosen}
	shortened := func(text string) string {
		if len(text) > shownEdit {
			return strings.ToValidUTF8(text[:shownEdit], "") + "…"
		}
		return text
	}
	for _, e := range g.Edits {
		one := groupEdit{Name: e.Attribute, Was: shortened(e.Before), Now: shortened(e.After), Part: !e.Whole}
		one.Plus = one.Part && (e.Before == "" || e.After == "")
		out.Edits = append(out.Edits, one)
	}
	return out
}

// diffRows shows differences in full.
func (c *console) diffRows(
	r *http.Request, e intent.Environment, at diffPlace, diffs []intent.ResourceDiff,
) (out []diffRow, err error) {
	var lists []changes
	for _, d := range diffs {
		row := diffRow{
			URL: resourceURL(e.ID, d.ID), ID: d.ID.String(), State: at.state(d.Kind),
			Open: d.Kind == intent.DiffModified && len(out) < 20 || len(diffs) == 1,
		}
		row.Changes = changesOf(at.was, at.will, d.Attributes)
		if d.Kind.Unknown() { // the reason says more than the attributes that stand for it
			row.Changes, row.Reason = changes{}, d.Reason
			if !d.Behind.IsZero() {
				row.Behind, row.BehindURL = d.Behind.String(), resourceURL(e.ID, d.Behind)
			}
		}
		if at.version != "" && (d.Kind == intent.DiffModified || d.Kind == intent.DiffAdded) {
			for k := range row.Changes.Rows {
				row.Changes.Rows[k].Who = decidedURL(at.version, d.ID, row.Changes.Rows[k].Name)
			}
		}
		out, lists = append(out, row), append(lists, row.Changes)
	}
	var attributes []map[string]intent.AttributeChange
	for _, d := range diffs {
		attributes = append(attributes, d.Attributes)
	}
	compare := c.control.LineDiffs
	if at.dryRun != "" { // one side was found on machines
		compare = c.control.FoundDiffs
	}
	if err := addLines(r, e, compare, lists, attributes); err != nil {
		return nil, err
	}
	budget := shownText
	for i, row := range out {
		for j := range row.Changes.Rows {
			change := &row.Changes.Rows[j]
			if change.Lines != nil {
				budget -= shownSize(change.Lines)
				if budget < 0 && len(out) > 1 { // the page of the one resource shows them
					change.Lines = &linediff.Diff{Note: change.Lines.Summary()}
					change.Whole = diffAddress(at, comparison.Filter{Text: row.ID}, "all", "yes")
				}
			}
			cutValue(at, out[i].ID, change, i < 20)
		}
	}
	return out, nil
}

// lineDiffs compares the attributes of resources by line.
type lineDiffs func(
	context.Context, intent.Environment, []map[string]intent.AttributeChange,
) ([]map[string]*linediff.Diff, error)

// addLines adds to changes the lines that differ.
func addLines(
	r *http.Request, e intent.Environment, compare lineDiffs, lists []changes,
	attributes []map[string]intent.AttributeChange,
) error {
	found, err := compare(r.Context(), e, attributes)
	for i, lines := range found {
		for j := range lists[i].Rows {
			row := &lists[i].Rows[j]
			row.Lines = lines[row.Name]
		}
	}
	return err
}

// shownValue is how much of a value a comparison shows.
const shownValue = 4000

// cutValue shortens long values and, on the page of a dry run, links them to the whole.
func cutValue(at diffPlace, id string, change *changeRow, early bool) {
	most := shownValue
	if !early {
		most = 400
	}
	cut := func(s string) string {
		if len(s) <= most {
			return s
		}
		if at.dryRun != "" {
			change.Whole = at.dryRun + "/value?id=" + url.QueryEscape(id) + "&attribute=" + url.QueryEscape(change.Name)
		}
		return strings.ToValidUTF8(s[:most], "") + "\n[cut here]"
	}
	change.Current, change.Desired = cut(change.Current), cut(change.Desired)
}
