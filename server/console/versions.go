package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// versionsPage lists the versions of an environment.
type versionsPage struct {
	frame
	List    versionList
	DryRuns dryRunList
}

type versionList struct {
	Rows   []versionRow
	Pager  pager
	EnvURL string
}

type versionRow struct {
	Number     int
	URL        string
	State      state
	Commit     string
	Subject    string
	Author     string
	Created    time.Time
	Released   *time.Time
	Total      int
	DiffURL    string
	CanRelease bool
	Held       bool   // waits for a confirmation
	Why        string // it is held
	Preview    bool   // made for a dry run
}

func versionRowOf(v intent.Version) versionRow {
	row := versionRow{
		Number: v.Number, URL: versionURL(v.Environment, v.Number), State: versionState(v),
		Commit: short(v.Provenance.Commit), Subject: v.Provenance.Subject, Author: v.Provenance.Author,
		Created: v.Created, Released: v.Released, Total: v.Total,
		CanRelease: releasable(v), Held: v.Held(), Preview: v.Preview,
	}
	if row.Held {
		row.Why = v.Hold.Text
	}
	if v.Number > 1 {
		row.DiffURL = compareURL(v.Environment, v.Number-1, v.Number)
	}
	return row
}

// releasable reports whether a person may release a version.
func releasable(v intent.Version) bool {
	return v.Status == intent.VersionCandidate && !v.Held() && !v.Preview
}

func compareURL(env uuid.UUID, from, to int) string {
	return envURL(env) + "/compare?from=" + strconv.Itoa(from) + "&to=" + strconv.Itoa(to)
}

func (c *console) versions(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Versions", "versions", crumb{Text: "Versions"})
	if err != nil {
		return view{}, err
	}
	l := listingOf(r, store.VersionList, envURL(e.ID)+"/versions")
	page, err := c.store.Versions(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p := versionsPage{frame: f, List: versionList{EnvURL: envURL(e.ID)}}
	for _, v := range page.Items {
		p.List.Rows = append(p.List.Rows, versionRowOf(v))
	}
	p.List.Pager = pagerOf(l, page, func(v intent.Version) (string, string) { return strconv.Itoa(v.Number), "" })
	runs, err := c.store.DryRuns(r.Context(), e.ID, 0)
	if err != nil {
		return view{}, err
	}
	p.DryRuns = dryRunsOf(runs)
	return view{template: "versions", data: p, fragments: []fragment{
		{"versionlist", "versionlist", p.List}, {"dryruns", "dryruns", p.DryRuns},
	}}, nil
}

// versionPage is one version: where it came from and what is in it.
type versionPage struct {
	frame
	Head    versionHead
	Facts   []attribute // provenance
	Hold    *holdView
	DryRuns dryRunList
	List    resourceTable
	// CanRollBack is set when the version was deployed before, and can be again.
	CanRollBack bool
}

type versionHead struct {
	versionRow
	EnvURL string
	RunURL string
	Full   string // the whole commit
}

type resourceTable struct {
	Rows  []resourceRow
	Pager pager
}

// findVersion returns the version in the path of a request.
func (c *console) findVersion(r *http.Request) (e intent.Environment, v intent.Version, err error) {
	if e, err = c.environment(r); err != nil {
		return
	}
	n, err := versionNumber(r)
	if err != nil {
		return
	}
	v, err = c.store.Version(r.Context(), e.ID, n)
	return
}

func (c *console) version(r *http.Request) (view, error) {
	e, v, err := c.findVersion(r)
	if err != nil {
		return view{}, err
	}
	title := "Version " + strconv.Itoa(v.Number)
	f, err := c.frame(r, title, "versions",
		crumb{Text: "Versions", URL: envURL(e.ID) + "/versions"}, crumb{Text: title})
	if err != nil {
		return view{}, err
	}
	p := versionPage{frame: f, Head: versionHead{
		versionRow: versionRowOf(v), EnvURL: envURL(e.ID), Full: v.Provenance.Commit,
	}}
	if v.Provenance.Compile != uuid.Nil {
		p.Head.RunURL = runURL(e.ID, v.Provenance.Compile)
	}
	p.Hold, p.Facts, p.CanRollBack = holdOf(v), versionFacts(v.Provenance), v.Status == intent.VersionRetired
	runs, err := c.store.DryRuns(r.Context(), e.ID, v.Number)
	if err != nil {
		return view{}, err
	}
	p.DryRuns = dryRunsOf(runs)
	l := listingOf(r, store.VersionResourceList, p.Head.URL)
	l.query.Desc = false
	page, err := c.store.VersionResourcePage(r.Context(), e.ID, v.Number, l.query)
	if err != nil {
		return view{}, err
	}
	for _, x := range page.Items {
		p.List.Rows = append(p.List.Rows, resourceRow{
			URL: resourceURL(e.ID, x.ID), Type: x.ID.Type, Agent: x.ID.Agent, Value: x.ID.Value, ID: x.ID.String(),
		})
	}
	p.List.Pager = pagerOf(l, page, func(x intent.Resource) (string, string) {
		return resourcePlace(l.query.Sort, x.ID, "")
	})
	return view{template: "version", data: p, fragments: []fragment{
		{"version-head", "version-head", p.Head}, {"dryruns", "dryruns", p.DryRuns},
	}}, nil
}

// versionFacts lists what is known of where a version came from.
func versionFacts(p intent.Provenance) []attribute {
	var out []attribute
	add := func(name, value string) {
		if value != "" {
			out = append(out, attribute{Name: name, Value: value, Long: isLong(value)})
		}
	}
	add("Commit", p.Commit)
	add("Branch", p.Branch)
	author := p.Author
	if p.Email != "" {
		author += " <" + p.Email + ">"
	}
	add("Author", author)
	if b := p.RolledBack; b != nil {
		add("Rolled back", fmt.Sprintf("from version %d to %d by %s: %s", b.From, b.To, b.By, b.Reason))
	}
	add("Asked for by", triggerWord(p.Trigger.Type))
	add("Compiler's Python", p.CompilerPython)
	add("Ordain", p.Ordain)
	for _, name := range slices.Sorted(maps.Keys(p.Modules)) {
		add("Module "+name, p.Modules[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		add("Variable "+name, p.Variables[name])
	}
	return out
}

// comparePage compares two versions.
type comparePage struct {
	frame
	From, To int
	EnvURL   string
	Choices  []int
	Diff     diffList
	Problem  string
}

// diffList lists what differs, by resource.
type diffList struct {
	Counts []diffCount
	Rows   []diffRow
	Hidden int
}

type diffCount struct {
	State state
	N     int
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

// shownDiffs is how many resources a comparison lists.
const shownDiffs = 500

func (c *console) compare(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Compare versions", "versions",
		crumb{Text: "Versions", URL: envURL(e.ID) + "/versions"}, crumb{Text: "Compare"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := comparePage{frame: f, EnvURL: envURL(e.ID)}
	page, err := c.store.Versions(r.Context(), e.ID, intent.ListQuery{Limit: 200})
	if err != nil {
		return view{}, err
	}
	for _, v := range page.Items {
		p.Choices = append(p.Choices, v.Number)
	}
	from, errFrom := strconv.Atoi(r.URL.Query().Get("from"))
	to, errTo := strconv.Atoi(r.URL.Query().Get("to"))
	if errors.Join(errFrom, errTo) != nil {
		if len(p.Choices) < 2 {
			p.Problem = "There are not two versions to compare yet."
			return view{template: "compare", data: p}, nil
		}
		from, to = p.Choices[1], p.Choices[0]
	}
	if from > to {
		from, to = to, from
	}
	p.From, p.To = from, to
	if from == to {
		p.Problem = "Choose two different versions."
		return view{template: "compare", data: p}, nil
	}
	diffs, err := c.control.DiffVersions(r.Context(), e.ID, from, to)
	if fault.Is(err, fault.NotFound) {
		p.Problem = "One of these versions does not exist any more."
		return view{template: "compare", data: p}, nil
	}
	if err != nil {
		return view{}, err
	}
	p.Diff = diffsOf(e.ID, "Version "+strconv.Itoa(from), "Version "+strconv.Itoa(to), diffs)
	p.Diff.addWho(versionURL(e.ID, to), diffs)
	return view{template: "compare", data: p}, nil
}

// diffOrder is the order in which a comparison lists what differs.
var diffOrder = []intent.DiffKind{
	intent.DiffDeleted, intent.DiffModified, intent.DiffAdded, intent.DiffUndefined, intent.DiffSkipped,
	intent.DiffUnknown, intent.DiffAgentDown, intent.DiffUnmodified,
}

// diffsOf lists differences, with was and will as the headings of the two sides.
func diffsOf(env uuid.UUID, was, will string, diffs []intent.ResourceDiff) diffList {
	numbers := map[intent.DiffKind]int{}
	for _, d := range diffs {
		numbers[d.Kind]++
	}
	var out diffList
	for _, kind := range diffOrder {
		if numbers[kind] > 0 {
			out.Counts = append(out.Counts, diffCount{diffState(kind), numbers[kind]})
		}
	}
	sorted := slices.SortedFunc(slices.Values(diffs), func(a, b intent.ResourceDiff) int {
		if x, y := slices.Index(diffOrder, a.Kind), slices.Index(diffOrder, b.Kind); x != y {
			return x - y
		}
		return compareIDs(a.ID, b.ID)
	})
	for _, d := range sorted {
		if d.Kind == intent.DiffUnmodified {
			continue // it is counted, and there is nothing to show
		}
		if len(out.Rows) == shownDiffs {
			out.Hidden++
			continue
		}
		row := diffRow{
			URL: resourceURL(env, d.ID), ID: d.ID.String(), State: diffState(d.Kind),
			Open: d.Kind == intent.DiffModified && len(out.Rows) < 20,
		}
		row.Changes = changesOf(was, will, d.Attributes)
		if d.Kind.Unknown() { // the reason says more than the attributes that stand for it
			row.Changes, row.Reason = changes{}, d.Reason
			if !d.Behind.IsZero() {
				row.Behind, row.BehindURL = d.Behind.String(), resourceURL(env, d.Behind)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
