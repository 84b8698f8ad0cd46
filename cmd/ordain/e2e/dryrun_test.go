package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// factual lets the handler of notes tell how long its note is.
func factual() map[string]string {
	files := map[string]string{}
	for name, text := range labModule {
		files[name] = text
	}
	files["libs/lab/plugins/__init__.py"] += `
    def facts(self, ctx, resource):
        with open(resource.path) as note:
            return {"length": str(len(note.read()))}
`
	return files
}

// dryRunOf waits for the end of a dry run, and gives what it found by note.
func (p *place) dryRunOf(q control.DryRunRequest) (intent.DryRun, map[string]intent.ResourceDiff) {
	p.t.Helper()
	id, err := p.control.StartDryRun(p.t.Context(), p.env, q)
	if err != nil {
		p.t.Fatal(err)
	}
	var run intent.DryRun
	by := map[string]intent.ResourceDiff{}
	p.until("the dry run", func() bool {
		var diffs []intent.ResourceDiff
		if run, diffs, err = p.store.DryRun(p.t.Context(), p.env, id); err != nil {
			p.t.Fatal(err)
		}
		for _, d := range diffs {
			by[filepath.Base(d.ID.Value)] = d
		}
		return run.Ended != nil
	})
	return run, by
}

// A commit on a branch that nobody merged is dry-run with the real handlers:
// what it would make, change and leave behind; what cannot be told is told
// apart. Nothing is deployed, and main's next push is not disturbed.
func TestDryRunOfACommitThatNobodyMerged(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).unbound(t)
	p.push(
		"main",
		merge(
			labModule,
			p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "one", "calm"},
				[3]string{"left", "one", "calm"}),
		),
	)
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	before := p.deployedState()
	p.git("checkout", "-q", "-b", "feature")
	p.commit(
		"a feature",
		p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "two", "calm"},
			[3]string{"new", "one", "calm"}, [3]string{"sore", "one", "raise"}),
	)
	p.git("push", "-q", "origin", "feature")
	p.git("checkout", "-q", "main")
	run, by := p.dryRunOf(control.DryRunRequest{Commit: "feature"})
	kinds := map[string]intent.DiffKind{
		"kept":    intent.DiffUnmodified,
		"changed": intent.DiffModified,
		"new":     intent.DiffAdded,
		"sore":    intent.DiffUnknown,
	}
	for name, kind := range kinds {
		if by[name].Kind != kind {
			t.Errorf("%s: %+v, want %s", name, by[name], kind)
		}
	}
	if d := by["changed"].Attributes["text"]; d.Current != "one" || d.Desired != "two" {
		t.Errorf("%+v", by["changed"])
	}
	if !strings.Contains(by["sore"].Reason, "pencil") || run.Ending != intent.DryRunDone || run.Unknown != 1 ||
		run.Complete() {
		t.Errorf("%+v %+v", by["sore"], run)
	}
	gone, err := p.control.NoLongerManaged(t.Context(), run)
	if err != nil || len(gone) != 1 || filepath.Base(gone[0].Value) != "left" {
		t.Errorf("no longer managed: %v, %v", gone, err)
	}
	if after := p.deployedState(); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	if run, by := p.dryRunOf(control.DryRunRequest{Version: 1, Filter: intent.DryRunFilter{Resources: []intent.ResourceID{by["kept"].ID}}}); len(
		by,
	) != 1 ||
		!run.Complete() {
		t.Errorf("%+v %+v", run, by)
	}
}

// A model waits for a fact of a note. When the note was written its handler is
// asked, the model is compiled again with what it told, and the rest is deployed.
func TestAMissingFactIsAskedFor(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).unbound(t)
	p.push("two notes", merge(factual(), map[string]string{"main.cf": `import lab
a = lab::Note(path="` + p.site + `/a", text="four")
lab::Note(path="` + p.site + `/b", text=std::getfact(a, "length"))
`}))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.until("the fact in the second note", func() bool { return p.note("b") == "4" })
	if c := p.compiledWell(); c.Trigger.Type != "param" {
		t.Errorf("%+v", c.Trigger)
	}
	a := intent.ResourceID{Type: "lab::Note", Agent: "desk", Attribute: "path", Value: filepath.Join(p.site, "a")}
	actions, err := p.store.Actions(t.Context(), p.env, a, intent.ActionGetFact, 10)
	if err != nil || len(actions) == 0 {
		t.Errorf("%+v, %v", actions, err)
	}
}

// The server is killed in the middle of a dry run whose looks wait for a
// signal. The next server finishes it: what was found stays, the rest is looked at.
func TestADryRunOutlivesAKilledServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&world{dir: dir}).unbound(t)
	files := map[string]string{}
	for name, text := range labModule {
		files[name] = strings.ReplaceAll(
			text,
			"    def read_resource(self, ctx, resource):\n",
			`    def read_resource(self, ctx, resource):
        if ctx.is_dry_run() and resource.mood == "wait":
            open(resource.path + ".waits", "w").close()
            while not os.path.exists(resource.path + ".go"):
                time.sleep(0.02)
`,
		)
	}
	var notes [][3]string
	for i := range 8 {
		mood := "calm"
		if i == 4 {
			mood = "wait"
		}
		notes = append(notes, [3]string{"n" + strconv.Itoa(i), "one", mood})
	}
	p.push("notes", merge(files, p.model(notes...)))
	c := startChild(t, dir)
	env := c.bind("file://" + p.bare)
	c.waitDeployed(env, len(notes))
	var id string
	if err := c.client.Call(t.Context(), http.MethodPost, "/api/v2/dryrun/1", env, nil, &id); err != nil {
		t.Fatal(err)
	}
	type report struct {
		Summary struct {
			State string
			Todo  int
		}
		Diff []struct {
			Status string
		}
	}
	look := func(server *client.Client, done func(report) bool) report {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			var r report
			if err := server.Call(t.Context(), http.MethodGet, "/api/v2/dryrun-report/"+id, env, nil, &r); err == nil &&
				done(r) {
				return r
			}
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain: %+v", r)
			}
		}
	}
	at := filepath.Join(p.site, "n4")
	look(c.client, func(r report) bool {
		_, err := os.Stat(at + ".waits")
		return err == nil && r.Summary.Todo < len(notes)
	})
	c.kill()
	if err := os.WriteFile(at+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c = startChild(t, dir)
	r := look(c.client, func(r report) bool { return r.Summary.State == "done" })
	if r.Summary.Todo != 0 || len(r.Diff) != len(notes) {
		t.Errorf("%+v", r)
	}
	for _, d := range r.Diff {
		if d.Status != "unmodified" {
			t.Errorf("%+v", r.Diff)
			break
		}
	}
}
