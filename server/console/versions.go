package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/weblink"
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
	if p := v.Provenance.Pushed; p != nil {
		row.Subject, row.Author = "Not from a commit: "+p.From()+", "+p.Tree(), p.By
	}
	if row.Held {
		row.Why = v.Hold.Text
	}
	if v.Number > 1 {
		row.DiffURL = changesURL(v.Environment, v.Number)
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
	Views   savedViews
	Head    versionHead
	Facts   []attribute // provenance
	Hold    *holdView
	DryRuns dryRunList
	List    memberTable
	// Standing says what stands between this version and the newest commit.
	Standing standingView
	// CanRollBack is set when the version was deployed before, and can be again.
	CanRollBack bool
}

type versionHead struct {
	versionRow
	EnvURL string
	RunURL string
	Full   string // the whole commit
	Hash   commitView
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
		Hash: commitOf(weblink.OfEnvironment(e), v.Provenance.Commit),
	}}
	if v.Provenance.Compile != uuid.Nil {
		p.Head.RunURL = runURL(e.ID, v.Provenance.Compile)
	}
	p.Hold, p.Facts, p.CanRollBack = holdOf(v), versionFacts(v.Provenance), v.Status == intent.VersionRetired
	now, err := c.control.Standing(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	p.Standing = c.standingOf(e.ID, ofVersion(now, v))
	runs, err := c.store.DryRuns(r.Context(), e.ID, v.Number)
	if err != nil {
		return view{}, err
	}
	p.DryRuns = dryRunsOf(runs)
	if p.List, err = c.membersOf(r, v); err != nil {
		return view{}, err
	}
	if p.Views, err = c.savedViews(r, e, intent.ViewsOfVersions, versionURL(e.ID, v.Number), nil); err != nil {
		return view{}, err
	}
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
	if p.Pushed != nil {
		words := p.Pushed.Words()
		add("Origin", strings.ToUpper(words[:1])+words[1:])
		add("Message", p.Pushed.Message)
		add("Client", p.Pushed.Client)
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
