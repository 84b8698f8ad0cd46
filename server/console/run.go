package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/weblink"
)

// runPage is the story of one commit, from the request to the deployment.
type runPage struct {
	frame
	Head  runHead
	Diags diagnostics
	Steps []step
}

type runHead struct {
	runRow
	EnvURL   string
	Email    string
	Branch   string
	Full     string // the whole commit
	Hash     commitView
	Update   bool
	DiffURL  string // the address of what changed since the version before
	Merged   string // the address of the run that answered this request
	Newer    string // the address of the run of the newer commit, for which this one was cancelled
	Finished bool
	By       *intent.Actor // who cancelled it, or is cancelling it
	MayEnd   bool          // it waits or runs, and can be cancelled
	CancelTo string        // the address of the form that cancels it
}

// step is one line of the story.
type step struct {
	ID     string
	Title  string
	State  state
	Note   string
	NoteAt *time.Time
	Took   time.Duration
	Since  *time.Time // when it began, while it runs
	Stages []stageView
	Link   string
	Text   string // of the link
	Bar    *bar
	Show   bool
}

// stageView is what one stage ran and printed.
type stageView struct {
	Command string
	Output  string
	Errors  string
	Code    int // of a stage that failed; 0 otherwise
	Cut     bool
	URL     string // of the whole output
	Open    bool
	Key     string
	Live    bool // it runs: the page follows what it prints
}

// runSteps are the steps of every run, with the stages that belong to each.
var runSteps = []struct {
	id, title string
	stages    []string
}{
	{"prepared", "Prepared", []string{intent.StageInit}},
	{"fetched", "Fetched", []string{intent.StageClone, intent.StageFetch}},
	{"checkout", "Checked out", []string{intent.StageCheckout}},
	{"clusters", "Clusters read", []string{intent.StageClusters}},
	{"venv", "Virtual environment", []string{intent.StageVenv}},
	{"installed", "Modules installed", []string{intent.StageInstall}},
	{"compiled", "Compiled", []string{intent.StageCompile}},
	{"exported", "Exported", []string{intent.StageExport}},
	{"released", "Released", []string{intent.StageRelease}},
}

// rareSteps are the steps that only some runs take: a run shows them once it took them.
var rareSteps = []string{"prepared", "clusters"}

// shownOutput is how much of the output of a stage a page shows; the rest is a click away.
const shownOutput = 64 << 10

func (c *console) run(r *http.Request) (view, error) {
	e, run, stages, err := c.findRun(r)
	if err != nil {
		return view{}, err
	}
	row := c.runRow(run)
	f, err := c.frame(r, row.Headline(), "runs",
		crumb{Text: "Runs", URL: envURL(e.ID) + "/runs"}, crumb{Text: row.Headline(), Live: true})
	if err != nil {
		return view{}, err
	}
	p := runPage{frame: f, Head: runHead{
		runRow: row, EnvURL: envURL(e.ID), Update: run.Update, Finished: run.Completed != nil,
	}}
	if run.Revision != nil {
		p.Head.Email, p.Head.Branch, p.Head.Full = run.Revision.Email, run.Revision.Branch, run.Revision.Commit
		p.Head.Hash = commitOf(weblink.OfEnvironment(e), run.Revision.Commit)
	}
	p.Head.By, p.Head.CancelTo = run.Cancelled, runURL(e.ID, run.ID)+"/cancel"
	p.Head.MayEnd = run.Completed == nil && run.Cancelled == nil && run.Substitute == nil
	waits, err := c.control.Waits(r.Context(), e, run)
	if err != nil {
		return view{}, err
	}
	if run.Substitute != nil {
		p.Head.Merged = runURL(e.ID, *run.Substitute)
	}
	if run.SupersededBy != nil {
		p.Head.Newer = runURL(e.ID, *run.SupersededBy)
	}
	if run.Version != nil && *run.Version > 1 {
		p.Head.DiffURL = changesURL(e.ID, *run.Version)
	}
	p.Diags = readDiagnostics(run.Diagnostics)
	sourceLinksOf(e, p.Head.Full).places(p.Diags.List)
	p.Steps = c.story(run, stages)
	if waits != nil {
		p.Steps[0].waitsFor(e.ID, waits)
	}
	last, err := c.deployedStep(r, run)
	if err != nil {
		return view{}, err
	}
	p.Steps = append(p.Steps, last)
	v := view{template: "run", data: p, fragments: []fragment{
		{"run-head", "run-head", p.Head}, {"crumb", "crumb", p.Crumbs[len(p.Crumbs)-1]},
		{"diagnostics", "diagnostics", p.Diags},
	}}
	for _, s := range p.Steps {
		v.fragments = append(v.fragments, fragment{"step-" + s.ID, "step", s})
	}
	return v, nil
}

// findRun returns the run in the path of a request.
func (c *console) findRun(
	r *http.Request,
) (e intent.Environment, run intent.Compile, stages []intent.Stage, err error) {
	if e, err = c.environment(r); err != nil {
		return
	}
	id, err := uuid.Parse(r.PathValue("run"))
	if err == nil {
		run, stages, err = c.store.Compile(r.Context(), id)
	} else {
		err = fault.New("console", fault.NotFound, "there is no run "+r.PathValue("run"))
	}
	if err == nil && run.Environment != e.ID {
		err = fault.New("console", fault.NotFound, "this environment has no such run")
	}
	return
}

// story puts the stages of a run into the steps that every run has.
func (c *console) story(run intent.Compile, stages []intent.Stage) []step {
	received := step{
		ID: "received", Title: "Received", State: finished, NoteAt: &run.Requested, Show: true,
		Note: "from " + triggerWord(run.Trigger.Type),
	}
	if run.Trigger.Message != "" {
		received.Note += ": " + run.Trigger.Message
	}
	if run.Started != nil {
		received.Took = run.Started.Sub(run.Requested)
	}
	if run.Started == nil && run.Completed == nil {
		received.State, received.Since = waiting, &run.Requested
	}
	steps := []step{received}
	taken := map[uuid.UUID]bool{}
	for _, slot := range runSteps {
		s := step{ID: slot.id, Title: slot.title, State: notYet, Show: !slices.Contains(rareSteps, slot.id)}
		if run.Completed != nil {
			s.State = notReached
		}
		for _, stage := range stages {
			for _, name := range slot.stages {
				if stage.Name == name {
					c.addStage(&s, run, stage)
					taken[stage.ID] = true
				}
			}
		}
		// Without an update nothing is fetched, which is no gap in the story.
		if slot.id == "fetched" && (s.State == notReached || s.State == notYet) && !run.Update {
			s.State = state{"none", "not asked for"}
		}
		steps = append(steps, s)
	}
	passOver(steps)
	for _, stage := range stages {
		if !taken[stage.ID] {
			s := step{ID: "stage-" + stage.ID.String(), Title: stage.Name}
			c.addStage(&s, run, stage)
			steps = append(steps, s)
		}
	}
	return steps
}

// passOver marks the steps that a run left out: it took a later one already.
func passOver(steps []step) {
	later := false
	for i := len(steps) - 1; i > 0; i-- {
		s := &steps[i]
		switch {
		case s.State != notReached && s.State != notYet:
			later = later || s.State.Word != "not asked for"
		case later:
			s.State = state{"none", "not needed"}
		}
	}
}

// addStage adds a stage to its step. The last one decides the step's state.
func (c *console) addStage(s *step, run intent.Compile, stage intent.Stage) {
	s.Show = true
	switch {
	case stage.Completed == nil && run.Completed == nil:
		s.State, s.Since = running, &stage.Started
	case stage.Completed == nil:
		s.State = cancelled
	case stage.ReturnCode != nil && *stage.ReturnCode == 0:
		s.State = finished
	default:
		s.State = failed
	}
	if stage.Completed != nil {
		s.Since = nil
		s.Took += stage.Completed.Sub(stage.Started)
	}
	v := stageView{
		Live: s.State == running, Command: stage.Command, Open: s.State == failed || s.State == running,
		URL: runURL(run.Environment, run.ID) + "/output/" + stage.ID.String(), Key: stage.ID.String(),
	}
	if stage.ReturnCode != nil {
		v.Code = *stage.ReturnCode
	}
	var cutOut, cutErr bool
	v.Output, cutOut = tail(stage.Output)
	v.Errors, cutErr = tail(stage.ErrOutput)
	v.Cut = cutOut || cutErr
	if v.Live {
		v.Output, v.Errors, v.Cut = follow(stage)
	}
	if v.Command != "" || v.Output != "" || v.Errors != "" {
		s.Stages = append(s.Stages, v)
	}
}

// tail keeps the end of an output, from the beginning of a line on.
func tail(text string) (string, bool) {
	text = strings.TrimRight(text, "\n")
	if len(text) <= shownOutput {
		return text, false
	}
	text = text[len(text)-shownOutput:]
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return text, true
}

// deployedStep shows how far the version of a run is deployed.
func (c *console) deployedStep(r *http.Request, run intent.Compile) (step, error) {
	s := step{ID: "deployed", Title: "Deployed", State: notYet, Show: true}
	if run.Version == nil {
		if run.Completed != nil {
			s.State = notReached
			s.Note = "what was deployed before stays as it is"
		}
		return s, nil
	}
	v, err := c.store.Version(r.Context(), run.Environment, *run.Version)
	if fault.Is(err, fault.NotFound) {
		s.State, s.Note = notReached, "version "+strconv.Itoa(*run.Version)+" was deleted"
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Link, s.Text = versionURL(run.Environment, v.Number), "Version "+strconv.Itoa(v.Number)
	if v.Preview {
		s.State, s.Note = notDeployed, "a dry run deploys nothing"
		return s, nil
	}
	switch v.Status {
	case intent.VersionCandidate:
		s.State, s.Note = waiting, "the version waits to be released"
		return s, nil
	case intent.VersionRetired:
		s.State, s.Note = retired, "a later version took its place"
		return s, nil
	case intent.VersionSkipped:
		s.State, s.Note = notDeployed, "a later version was released instead"
		return s, nil
	}
	counts, err := c.store.ResourceCounts(r.Context(), run.Environment)
	if err != nil {
		return s, err
	}
	b := barOf(envURL(run.Environment), counts)
	s.Bar = &b
	good := counts[intent.StatusDeployed]
	s.Note = of(good, b.Total) + " as intended"
	switch {
	case good == b.Total:
		s.State = finished
	case counts[intent.StatusFailed]+counts[intent.StatusUnavailable] > 0:
		s.State = failed
	case counts[intent.StatusDeploying]+counts[intent.StatusAvailable] > 0:
		s.State = running
	default:
		s.State = waiting
	}
	return s, nil
}

// output sends the whole output of a stage, as text.
func (c *console) output(w http.ResponseWriter, r *http.Request) {
	_, _, stages, err := c.findRun(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	for _, s := range stages {
		if s.ID.String() == r.PathValue("stage") {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			text := "$ " + s.Command + "\n\n" + s.Output
			if s.ErrOutput != "" {
				text += "\n--- standard error ---\n" + s.ErrOutput
			}
			// An error here means that the browser went away.
			_, _ = w.Write([]byte(text))
			return
		}
	}
	c.fail(w, r, fault.New("console", fault.NotFound, "this run has no such stage"))
}

// diagnostics are what the compiler says about the model.
type diagnostics struct {
	List []diagnostic
}

type diagnostic struct {
	Severity string
	Code     string
	Message  string
	Place    string
	PlaceURL string
	file     string
	Line     int
	Before   string // the source line up to the place
	At       string // the place itself
	After    string
	Caret    string // the line that underlines the place
	Hint     string
	Trace    string
	Causes   []diagnostic
}

func readDiagnostics(raw json.RawMessage) diagnostics {
	var given []diag.Diagnostic
	if len(raw) == 0 || json.Unmarshal(raw, &given) != nil {
		return diagnostics{}
	}
	return diagnostics{List: diagnosticsOf(given)}
}

func diagnosticsOf(given []diag.Diagnostic) []diagnostic {
	var out []diagnostic
	for _, d := range given {
		one := diagnostic{
			Severity: string(d.Severity), Code: d.Code, Message: d.Message, Hint: d.Hint,
			Trace: d.Trace, Causes: diagnosticsOf(d.Causes),
		}
		if l := d.Location; l != nil {
			one.Place, one.Line, one.file = l.String(), l.Line, l.File
			one.Before = d.Source
			source := []rune(d.Source)
			if l.Column > 0 && l.Column <= len(source) {
				width := 1
				switch {
				case l.EndLine > l.Line:
					width = len(source) - l.Column + 1
				case l.EndColumn > l.Column:
					width = min(l.EndColumn, len(source)+1) - l.Column
				}
				from := l.Column - 1
				one.Before, one.At = string(source[:from]), string(source[from:from+width])
				one.After = string(source[from+width:])
				one.Caret = blanks(source[:from]) + strings.Repeat("^", width)
			}
		}
		out = append(out, one)
	}
	return out
}

// blanks returns a text as wide as the given one, of blanks and of its tabs.
func blanks(text []rune) string {
	out := make([]rune, len(text))
	for i, r := range text {
		out[i] = ' '
		if r == '\t' {
			out[i] = '\t'
		}
	}
	return string(out)
}
