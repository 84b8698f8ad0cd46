package deploys

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// labModuleWithFacts is labModule with a handler that reports the length of a note as
// a fact.
func labModuleWithFacts() map[string]string {
	files := map[string]string{}
	for name, text := range lab.Module {
		files[name] = text
	}
	files["libs/lab/plugins/__init__.py"] += `
    def facts(self, ctx, resource):
        with open(resource.path) as note:
            return {"length": str(len(note.read()))}
`
	return files
}

// dryRunOf makes a dry run, waits for its end, and returns the result by note.
func dryRunOf(p *lab.Place, q control.DryRunRequest) (intent.DryRun, map[string]intent.ResourceDiff) {
	p.T.Helper()
	id, err := p.Control.StartDryRun(p.T.Context(), p.Env, q)
	if err != nil {
		p.T.Fatal(err)
	}
	var run intent.DryRun
	by := map[string]intent.ResourceDiff{}
	p.Until("the dry run", func() bool {
		var diffs []intent.ResourceDiff
		if run, diffs, err = p.Store.DryRun(p.T.Context(), p.Env, id); err != nil {
			p.T.Fatal(err)
		}
		for _, d := range diffs {
			by[filepath.Base(d.ID.Value)] = d
		}
		return run.Ended != nil
	})
	return run, by
}

// A dry run changes something, or hides what it could not find out. A commit on an
// unmerged branch is dry-run with the real handlers. The result shows what it would
// create, change and leave behind, and what is unknown. Nothing is deployed.
func TestDryRunOfAnUnmergedCommit(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	p.Push(
		"main",
		lab.MergeFiles(
			lab.Module,
			p.Model([3]string{"kept", "one", "calm"}, [3]string{"changed", "one", "calm"},
				[3]string{"left", "one", "calm"}),
		),
	)
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	before := p.DeployedState()
	p.Git("checkout", "-q", "-b", "feature")
	p.Commit(
		"a feature",
		p.Model([3]string{"kept", "one", "calm"}, [3]string{"changed", "two", "calm"},
			[3]string{"new", "one", "calm"}, [3]string{"sore", "one", "raise"}),
	)
	p.Git("push", "-q", "origin", "feature")
	p.Git("checkout", "-q", "main")
	run, by := dryRunOf(p, control.DryRunRequest{Commit: "feature"})
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
	gone, err := p.Control.NoLongerManaged(t.Context(), run)
	if err != nil || len(gone) != 1 || filepath.Base(gone[0].Value) != "left" {
		t.Errorf("no longer managed: %v, %v", gone, err)
	}
	if after := p.DeployedState(); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	if run, by := dryRunOf(p, control.DryRunRequest{Version: 1,
		Filter: intent.DryRunFilter{Resources: []intent.ResourceID{by["kept"].ID}}}); len(by) != 1 ||
		!run.Complete() {
		t.Errorf("%+v %+v", run, by)
	}
}

// A model waits for a fact of a note for ever. When the note is deployed, the server
// asks its handler for the fact, compiles the model again, and deploys the rest.
func TestAMissingFactIsFetched(t *testing.T) {
	t.Parallel()
	tool.Long(t, "two pushes, and facts of another deployment")
	p := lab.SharedWorld(t).NewPlace(t)
	p.Push("two notes", lab.MergeFiles(labModuleWithFacts(), map[string]string{"main.cf": `import lab
a = lab::Note(path="` + p.Site + `/a", text="four")
lab::Note(path="` + p.Site + `/b", text=std::getfact(a, "length"))
`}))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Until("the fact in the second note", func() bool { return p.Note("b") == "4" })
	if c := p.CompiledWell(); c.Trigger.Type != "param" {
		t.Errorf("%+v", c.Trigger)
	}
	a := intent.ResourceID{Type: "lab::Note", Agent: "desk", Attribute: "path", Value: filepath.Join(p.Site, "a")}
	actions, err := p.Store.Actions(t.Context(), p.Env, a, intent.ActionGetFact, 10)
	if err != nil || len(actions) == 0 {
		t.Errorf("%+v, %v", actions, err)
	}
}

// The server is killed in the middle of a dry run. The next server finishes it: it
// keeps what was found and examines the rest.
func TestADryRunSurvivesAKilledServer(t *testing.T) {
	t.Parallel()
	tool.Long(t, "starts a server twice")
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&lab.World{Dir: dir}).NewPlace(t)
	files := map[string]string{}
	for name, text := range lab.Module {
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
	p.Push("notes", lab.MergeFiles(files, p.Model(notes...)))
	c := lab.StartChild(t, dir)
	env := c.Bind("file://" + p.Bare)
	c.WaitDeployed(env, len(notes))
	var id string
	if err := c.Client.Call(t.Context(), http.MethodPost, "/api/v2/dryrun/1", env, nil, &id); err != nil {
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
	wait := func(server *client.Client, done func(report) bool) report {
		t.Helper()
		var r report
		lab.WaitFor(t, func() bool {
			r = report{}
			err := server.Call(t.Context(), http.MethodGet, "/api/v2/dryrun-report/"+id, env, nil, &r)
			return err == nil && done(r)
		}, func() string { return fmt.Sprintf("%+v", r) })
		return r
	}
	at := filepath.Join(p.Site, "n4")
	wait(c.Client, func(r report) bool {
		_, err := os.Stat(at + ".waits")
		return err == nil && r.Summary.Todo < len(notes)
	})
	c.Kill()
	if err := os.WriteFile(at+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c = lab.StartChild(t, dir)
	r := wait(c.Client, func(r report) bool { return r.Summary.State == "done" })
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
