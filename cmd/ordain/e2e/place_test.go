package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server/control"
)

// place is an environment of a scenario, with its repository.
type place struct {
	*world
	t    *testing.T
	env  intent.EnvironmentID
	bare string
	work string
	site string // the folder that its notes are deployed to
	// last is the compile that was waited for last.
	last intent.CompileID
	// suffix tells the places of a test with several apart.
	suffix string
	// author is who makes the commits; Eve, if empty.
	author string
}

// labModule is a module with one resource type, the note: a file with a text. Its
// mood makes the handler misbehave.
var labModule = map[string]string{
	"libs/lab/module.yml": "name: lab\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/lab/model/_init.cf": `entity Note extends std::PurgeableResource:
    string agent = "desk"
    string path
    string text
    string mood = "calm"
end
index Note(path)
implement Note using std::none
`,
	"libs/lab/plugins/__init__.py": `import ctypes
import os
import signal
import time

from inmanta.agent.handler import CRUDHandler, ResourcePurged, SkipResource, provider
from inmanta.plugins import plugin
from inmanta.resources import PurgeableResource, resource


@plugin
def shout(text: "string") -> "string":
    if text == "quiet":
        raise ValueError("this plug-in cannot shout quietly")
    return text.upper()


@resource("lab::Note", agent="agent", id_attribute="path")
class Note(PurgeableResource):
    fields = ("agent", "path", "text", "mood")


@provider("lab::Note", name="note")
class NoteHandler(CRUDHandler[Note]):
    def read_resource(self, ctx, resource):
        if resource.mood == "hang":
            time.sleep(3600)
        if resource.mood == "raise":
            raise RuntimeError("the pencil broke")
        if resource.mood == "away":
            raise ConnectionRefusedError("no route to desk")
        if resource.mood == "babble":
            for _ in range(16384):
                print("x" * 63)
        if resource.mood == "die":
            print("goodbye, cruel world", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if resource.mood == "crash":
            ctypes.string_at(0)
        if resource.mood == "skip":
            raise SkipResource("not today")
        if not os.path.exists(resource.path):
            raise ResourcePurged()
        with open(resource.path) as note:
            resource.text = note.read()

    def _write(self, resource):
        with open(resource.path, "w") as note:
            note.write(resource.text)

    def create_resource(self, ctx, resource):
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        os.remove(resource.path)
        ctx.set_purged()
`,
	"requirements.txt": "inmanta-module-std; python_version >= \"3.12\"\ninmanta-module-std<8; python_version < " +
		"\"3.12\"\n",
	"project.yml": "name: lab\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// newPlace makes a repository. It has no environment until bind is called.
func (w *world) newPlace(t *testing.T) *place {
	t.Helper()
	t.Cleanup(func() { racedetector.Check(t) })
	dir := t.TempDir()
	site, err := siteIn(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{
		world: w,
		t:     t,
		bare:  filepath.Join(dir, "repo.git"),
		work:  filepath.Join(dir, "work"),
		site:  site,
	}
	if err := os.Mkdir(p.work, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "--bare", "-b", "main", p.bare)
	p.git("init", "-q", "-b", "main")
	p.git("remote", "add", "origin", p.bare)
	return p
}

// bind makes an environment that follows source.
func (p *place) bind(source intent.Source, secrets map[string]string) {
	p.t.Helper()
	ctx := p.t.Context()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name()) + p.suffix
	project, err := p.control.CreateProject(ctx, intent.Project{Name: name})
	if err != nil {
		p.t.Fatal(err)
	}
	env, err := p.control.CreateEnvironment(ctx, control.NewEnvironment{
		Environment: intent.Environment{ProjectID: project.ID, Name: name, Source: source}, Secrets: secrets,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.env = env.ID
}

// model returns a main.cf with these notes; each has a name, a text and a mood.
func (p *place) model(notes ...[3]string) map[string]string {
	var b strings.Builder
	b.WriteString("import lab\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "lab::Note(path=%q, text=%q, mood=%q)\n", filepath.Join(p.site, n[0]), n[1], n[2])
	}
	return map[string]string{"main.cf": b.String()}
}

// push writes the files, commits and pushes.
func (p *place) push(message string, files map[string]string) {
	p.t.Helper()
	p.commit(message, files)
	p.git("push", "-q", "origin", "main")
}

func (p *place) commit(message string, files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		file := filepath.Join(p.work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	p.git("add", "-A")
	p.git("commit", "-q", "--allow-empty", "-m", message)
}

// head returns the hash of the last commit.
func (p *place) head() string { p.t.Helper(); return strings.TrimSpace(p.git("rev-parse", "HEAD")) }

func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.work
	author := cmp.Or(p.author, "Eve")
	mail := strings.ToLower(author) + "@example.org"
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME="+author, "GIT_AUTHOR_EMAIL="+mail, "GIT_COMMITTER_NAME="+author, "GIT_COMMITTER_EMAIL="+mail)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// until waits until done reports true. It asks whenever the server publishes an
// event of the environment, and now and then.
func (p *place) until(what string, done func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	moves := p.server.Bus().Subscribe(func(e bus.Event) bool { return e.Environment == p.env })
	defer moves.Close()
	ticker := time.NewTicker(200 * time.Millisecond) // events may be lost, and files change without one
	defer ticker.Stop()
	for !done() {
		select {
		case <-moves.Events():
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				p.t.Fatalf("waited in vain for %s\n%s", what, p.story())
			}
			p.t.Fatal(ctx.Err())
		}
	}
}

// compiled waits until the environment's next compile has ended, and returns its
// report. Compiles of previews and dry runs do not count.
func (p *place) compiled() (intent.Compile, []intent.Stage) {
	p.t.Helper()
	var c intent.Compile
	var stages []intent.Stage
	p.until("the next compile", func() bool {
		page, err := p.store.Compiles(p.t.Context(), p.env, intent.ListQuery{Sort: "requested"})
		if err != nil {
			p.t.Fatal(err)
		}
		own := slices.DeleteFunc(page.Items, func(c intent.Compile) bool { return c.Trigger.Type == "dryrun" })
		next := 1 + slices.IndexFunc(own, func(c intent.Compile) bool { return c.ID == p.last })
		if next >= len(own) || own[next].Completed == nil {
			return false
		}
		c, stages, err = p.store.Compile(p.t.Context(), own[next].ID)
		if err != nil {
			p.t.Fatal(err)
		}
		return true
	})
	p.last = c.ID
	return c, stages
}

// compiledWell waits like compiled, and fails the test if the compile failed.
func (p *place) compiledWell() intent.Compile {
	p.t.Helper()
	c, stages := p.compiled()
	if c.Success == nil || !*c.Success {
		p.t.Fatalf("the compile failed:\n%s", report(stages))
	}
	return c
}

// failsIn waits for a compile that has to fail in this stage, and returns the
// stage's error output. The failure must not change what is deployed.
func (p *place) failsIn(stage string) string {
	p.t.Helper()
	before := p.deployedState()
	c, stages := p.compiled()
	if c.Success == nil || *c.Success {
		p.t.Fatalf("the compile succeeded:\n%s", report(stages))
	}
	if c.Version != nil {
		p.t.Errorf("the failed compile left version %d", *c.Version)
	}
	last := stages[len(stages)-1]
	if last.Name != stage || last.ReturnCode == nil || *last.ReturnCode == 0 {
		p.t.Fatalf("the compile failed in %q, want %q:\n%s", last.Name, stage, report(stages))
	}
	if after := p.deployedState(); after != before {
		p.t.Errorf("a failed compile changed what is deployed:\n%s\nbecame\n%s", before, after)
	}
	return last.ErrOutput
}

// settled waits until no resource is being deployed or waits for that, and
// returns the resources by the name of their note.
func (p *place) settled() map[string]intent.ResourceRow {
	p.t.Helper()
	rows := map[string]intent.ResourceRow{}
	p.until("the deployment", func() bool {
		page, err := p.store.Resources(p.t.Context(), p.env, intent.ListQuery{})
		if err != nil {
			p.t.Fatal(err)
		}
		clear(rows)
		for _, r := range page.Items {
			s := r.State.Status()
			if s == intent.StatusDeploying || s == intent.StatusAvailable {
				return false
			}
			rows[filepath.Base(r.State.ID.Value)] = r
		}
		return true
	})
	return rows
}

// deployedState describes what is deployed: the active version, the states of its
// resources, and the files.
func (p *place) deployedState() string {
	p.t.Helper()
	var b strings.Builder
	if v, err := p.store.ActiveVersion(p.t.Context(), p.env); err != nil {
		p.t.Fatal(err)
	} else if v != nil {
		fmt.Fprintf(&b, "version %d\n", v.Number)
	}
	for _, name := range slices.Sorted(maps.Keys(p.settled())) {
		r := p.settled()[name]
		fmt.Fprintf(&b, "%s %s %v\n", name, r.State.Status(), r.State.LastRunAt)
	}
	entries, err := os.ReadDir(p.site)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "%s: %q\n", e.Name(), p.note(e.Name()))
	}
	return b.String()
}

// note returns the text of a deployed note, or why it cannot be read.
func (p *place) note(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.site, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// attempts returns the deployments of a note, newest first.
func (p *place) attempts(name string) []intent.Action {
	p.t.Helper()
	row, ok := p.settled()[name]
	if !ok {
		p.t.Fatalf("there is no note %s", name)
	}
	actions, err := p.store.Actions(p.t.Context(), p.env, row.State.ID, intent.ActionDeploy, 100)
	if err != nil {
		p.t.Fatal(err)
	}
	return actions
}

// logOf returns the log of the newest deployment of a note.
func (p *place) logOf(name string) string {
	p.t.Helper()
	var b strings.Builder
	for _, m := range p.attempts(name)[0].Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Level, m.Message)
	}
	return b.String()
}

// story describes all compiles and resources of the environment, for failures.
func (p *place) story() string {
	var b strings.Builder
	page, err := p.store.Compiles(context.Background(), p.env, intent.ListQuery{Sort: "requested"})
	if err != nil {
		return err.Error()
	}
	for _, c := range page.Items {
		_, stages, err := p.store.Compile(context.Background(), c.ID)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "compile %s by %s: success %v\n%s", c.ID, c.Trigger.Type, c.Success, report(stages))
	}
	rows, err := p.store.Resources(context.Background(), p.env, intent.ListQuery{})
	if err != nil {
		return err.Error()
	}
	for _, r := range rows.Items {
		fmt.Fprintf(&b, "%s %s\n", r.State.ID, r.State.Status())
	}
	return b.String()
}

func report(stages []intent.Stage) string {
	var b strings.Builder
	for _, s := range stages {
		code := "running"
		if s.ReturnCode != nil {
			code = fmt.Sprint(*s.ReturnCode)
		}
		fmt.Fprintf(&b, "== %s (%s) %s\n%s%s", s.Name, code, s.Command, s.Output, s.ErrOutput)
	}
	return b.String()
}

// newDeployedPlace makes a place with an environment in which one note, a, is
// deployed, so that a failure has something that it must not touch.
func newDeployedPlace(t *testing.T, w *world) *place {
	t.Helper()
	p := w.newPlace(t)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	return p
}

// recompile requests a compile, as a person does.
func (p *place) recompile() {
	p.t.Helper()
	_, _, err := p.control.RequestCompile(p.t.Context(), p.env,
		control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api", Message: "a test"}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// fetch returns what the API answers, or a page of the console, about the environment.
func (p *place) fetch(path string) string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.server.URL()+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-Inmanta-tid", p.env.String())
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
	return string(body)
}

// mergeFiles merges sets of files; a later set wins.
func mergeFiles(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
