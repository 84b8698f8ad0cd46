package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/comparison"
	"ordain.dev/ordain/server/control"
)

// dryRunPage is the preview of a version or a commit.
type dryRunPage struct {
	frame
	Head dryRunHead
	// Diags say why its commit does not compile.
	Diags diagnostics
	Diff  diffList
	Gone  goneList
}

type dryRunHead struct {
	dryRunRow
	Version    int
	VersionURL string
	EnvURL     string
	RunURL     string // of the run that compiles its commit
	Commit     string
	Limits     string // what it is limited to
	Ended      *time.Time
	Reason     string
	Live       bool
	CanRelease bool
	Sentence   string
}

// goneList are the resources that the active version has and this one does not.
type goneList struct {
	Rows   []edgeRow
	Count  int
	Hidden int
}

type dryRunList struct{ Rows []dryRunRow }

type dryRunRow struct {
	URL     string
	Of      string // the version or the commit that it is of
	Date    time.Time
	Done    int
	Total   int
	Unknown int
	State   state
}

// shownDryRuns is how many dry runs a page lists.
const shownDryRuns = 20

// dryRunsOf lists dry runs, newest first, as a page shows them.
func dryRunsOf(runs []intent.DryRun) (out dryRunList) {
	for _, run := range runs[:min(len(runs), shownDryRuns)] {
		out.Rows = append(out.Rows, dryRunRowOf(run))
	}
	return out
}

func dryRunURL(env intent.EnvironmentID, id intent.ActionID) string {
	return envURL(env) + "/dryruns/" + id.String()
}

func dryRunRowOf(d intent.DryRun) dryRunRow {
	row := dryRunRow{
		URL: dryRunURL(d.Environment, d.ID), Of: fmt.Sprintf("version %d", d.Version), Date: d.Date,
		Done: d.Total - d.Todo, Total: d.Total, Unknown: d.Unknown, State: running,
	}
	if d.Commit != "" {
		row.Of = "commit " + d.Commit
	}
	switch {
	case d.Ending == intent.DryRunDone && d.Unknown > 0:
		row.State = incomplete
	case d.Ending == intent.DryRunDone:
		row.State = ready
	case d.Ending == intent.DryRunFailed:
		row.State = failed
	case d.Ending == intent.DryRunCancelled:
		row.State = state{"none", "cancelled"}
	case d.Version == 0:
		row.State = state{"deploying", "compiling"}
	}
	return row
}

// findDryRun returns the dry run in the path of a request.
func (c *console) findDryRun(
	r *http.Request,
) (e intent.Environment, run intent.DryRun, err error) {
	if e, err = c.environment(r); err != nil {
		return
	}
	id, err := uuid.Parse(r.PathValue("dryrun"))
	if err != nil {
		return e, run, fault.New("console", fault.NotFound, "there is no dry run "+r.PathValue("dryrun"))
	}
	run, err = c.store.DryRunOnly(r.Context(), e.ID, id)
	return
}

func (c *console) dryRun(r *http.Request) (view, error) {
	e, run, err := c.findDryRun(r)
	if err != nil {
		return view{}, err
	}
	row := dryRunRowOf(run)
	crumbs := []crumb{{Text: "Versions", URL: envURL(e.ID) + "/versions"}}
	if run.Version > 0 {
		crumbs = append(crumbs, crumb{Text: fmt.Sprintf("Version %d", run.Version), URL: versionURL(e.ID, run.Version)})
	}
	f, err := c.frame(r, "Dry run of "+row.Of, "versions", append(crumbs, crumb{Text: "Dry run"})...)
	if err != nil {
		return view{}, err
	}
	p := dryRunPage{frame: f}
	diff, index, err := c.dryRunDifferences(r, e, run, dryRunURL(e.ID, run.ID))
	if err != nil {
		return view{}, err
	}
	p.Diff = diff
	p.Head = dryRunHead{
		dryRunRow: row, Version: run.Version, VersionURL: versionURL(e.ID, run.Version), EnvURL: envURL(e.ID),
		Commit: run.Commit, Limits: limitsText(run), Ended: run.Ended, Live: run.Ended == nil,
		Reason: run.Reason, Sentence: blastSentence(index, run),
	}
	if run.Compile != nil {
		p.Head.RunURL = runURL(e.ID, *run.Compile)
	}
	diags, err := c.control.DryRunDiagnostics(r.Context(), run)
	if err != nil {
		return view{}, err
	}
	p.Diags = diagnostics{List: diagnosticsOf(diags)}
	if p.Head.CanRelease, err = c.mayRelease(r.Context(), run); err != nil {
		return view{}, err
	}
	gone, err := c.control.NoLongerManaged(r.Context(), run)
	if err != nil {
		return view{}, err
	}
	p.Gone = goneListOf(e.ID, gone)
	return view{template: "dryrun", data: p, fragments: []fragment{
		{"dryrun-head", "dryrun-head", p.Head}, {"diagnostics", "diagnostics", p.Diags},
		{"diff", "diff", p.Diff}, {"gone", "gone", p.Gone},
	}}, nil
}

func goneListOf(env intent.EnvironmentID, gone []intent.ResourceID) goneList {
	out := goneList{Count: len(gone), Hidden: max(0, len(gone)-shownDiffs)}
	for _, id := range gone[:len(gone)-out.Hidden] {
		out.Rows = append(out.Rows, edgeRow{Text: id.String(), URL: resourceURL(env, id)})
	}
	return out
}

// mayRelease reports whether a person may release the version of a dry run.
func (c *console) mayRelease(ctx context.Context, run intent.DryRun) (bool, error) {
	if run.Version == 0 {
		return false, nil
	}
	v, err := c.store.Version(ctx, run.Environment, run.Version)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && releasable(v), err
}

// limitsText says what a dry run is limited to; it is empty when the run covers everything.
func limitsText(run intent.DryRun) string {
	if run.ResourceFilter != nil {
		return "what a filter chose"
	}
	f := run.Filter
	var limits []string
	add := func(what string, list []string) {
		if len(list) > 0 {
			limits = append(limits, what+" "+strings.Join(list, ", "))
		}
	}
	add("agents", f.Agents)
	add("types", f.Types)
	var ids []string
	for _, id := range f.Resources {
		ids = append(ids, id.String())
	}
	add("", ids)
	return strings.TrimSpace(strings.Join(limits, "; "))
}

// dryRunDifferences loads what a page shows of what a dry run found.
func (c *console) dryRunDifferences(
	r *http.Request, e intent.Environment, run intent.DryRun, path string,
) (diffList, *comparison.Index, error) {
	of := intent.Compared{Environment: e.ID, DryRun: run.ID}
	at := diffPlace{path: path, was: "Found", will: "Desired", dryRun: dryRunURL(e.ID, run.ID)}
	if run.Version > 0 {
		at.version = versionURL(e.ID, run.Version)
	}
	return c.differences(r, e, of, run.Ended != nil, at)
}

// dryRunValue sends both values of an attribute in full, as text.
func (c *console) dryRunValue(w http.ResponseWriter, r *http.Request) {
	e, run, err := c.findDryRun(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	change, err := c.store.DryRunChange(r.Context(), e.ID, run.ID, r.URL.Query().Get("id"),
		r.URL.Query().Get("attribute"))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "Found:\n\n%s\n\nDesired:\n\n%s\n", valueText(change.Current), valueText(change.Desired))
}

// blastSentence says in numbers what a deployment would touch.
func blastSentence(index *comparison.Index, run intent.DryRun) string {
	touched, unknown := 0, 0
	for kind, n := range index.Kinds() {
		switch {
		case kind == intent.DiffAdded, kind == intent.DiffModified, kind == intent.DiffDeleted:
			touched += n
		case kind.Unknown():
			unknown += n
		}
	}
	soFar := ""
	if run.Ending != intent.DryRunDone {
		soFar = " so far"
	}
	switch {
	case run.Version == 0 && run.Ended == nil:
		return "Its commit is being compiled."
	case run.Version == 0:
		return "Its commit was not compiled."
	case touched == 0 && unknown == 0:
		return "It would change nothing" + soFar + "."
	}
	text := "It would change " + plural(touched, "resource") + " on " + plural(index.Agents(), "agent") + soFar + "."
	if touched == 0 {
		text = "It found nothing to change" + soFar + "."
	}
	if unknown > 0 {
		text += " " + plural(unknown, "resource") + " could not be checked."
	}
	return text
}

func (c *console) doDryRun(r *http.Request, e intent.Environment) (string, error) {
	n, err := versionNumber(r)
	if err != nil {
		return "", err
	}
	q := control.DryRunRequest{Version: n}
	if text := r.PostFormValue("id"); text != "" {
		id, err := intent.ParseResourceID(text)
		if err != nil {
			return "", fault.Wrap("console.dryrun", fault.Invalid, err)
		}
		q.Filter.Resources = []intent.ResourceID{id}
	}
	id, err := c.control.StartDryRun(r.Context(), e.ID, q)
	return dryRunURL(e.ID, id), err
}

func (c *console) doDryRunCommit(r *http.Request, e intent.Environment) (string, error) {
	id, err := c.control.StartDryRun(r.Context(), e.ID, control.DryRunRequest{Commit: r.PostFormValue("commit")})
	return dryRunURL(e.ID, id), err
}

func (c *console) doCancelDryRun(r *http.Request, e intent.Environment) (string, error) {
	id, err := uuid.Parse(r.PathValue("dryrun"))
	if err != nil {
		return "", fault.New("console", fault.NotFound, "there is no dry run "+r.PathValue("dryrun"))
	}
	return dryRunURL(e.ID, id) + "?done=cancelled", c.control.CancelDryRun(r.Context(), e.ID, id)
}

// factTable lists the facts of a resource.
type factTable struct{ Rows []factRow }

type factRow struct {
	Name, Value string
	Long        bool
	Updated     time.Time
	Expires     bool
}

// shownFacts is how many facts a page lists.
const shownFacts = 200

func (c *console) factsOf(
	ctx context.Context, env intent.EnvironmentID, id intent.ResourceID,
) (out factTable, err error) {
	page, err := c.store.Parameters(ctx, env, true, intent.ListQuery{
		Limit: shownFacts, Filters: map[string][]string{"resource_id": {id.String()}},
	})
	for _, f := range page.Items {
		if f.Resource == id { // the filter also matches ids that contain this one
			out.Rows = append(out.Rows, factRow{f.Name, f.Value, isLong(f.Value), f.Updated, f.Expires})
		}
	}
	return out, err
}

func (c *console) doFacts(r *http.Request, e intent.Environment) (string, error) {
	id, err := intent.ParseResourceID(r.PostFormValue("id"))
	if err != nil {
		return "", fault.Wrap("console.facts", fault.Invalid, err)
	}
	_, err = c.control.RefreshFacts(r.Context(), e.ID, []intent.ResourceID{id})
	return resourceURL(e.ID, id) + "&done=facts", err
}
