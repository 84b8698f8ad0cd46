package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// This test binary is also the program: the server starts it as the compiler,
// and hooks start it to notify.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"compile", "hook", "up"}, os.Args[1]) {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(racedetector.Main(whole{m}))
}

// whole is the run of all tests, with the end of the server that they share.
type whole struct{ *testing.M }

func (w whole) Run() int {
	defer stopShared()
	return w.M.Run()
}

// patience is how long a scenario waits for anything. It is a bound on
// failure, not a part of any story.
const patience = 4 * time.Minute

// world is a running server.
type world struct {
	dir     string
	server  *server.Server
	control *control.Control
	store   *store.Store
}

// options are a server's, with everything below dir; tools and wheels are
// shared by all tests.
func options(dir string) (config.Config, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return config.Load("", nil, map[string]string{
		"config.state-dir": filepath.Join(dir, "state"), "config.log-dir": filepath.Join(dir, "log"),
		"config.cache-dir": filepath.Join(cache, "ordain-tests"), "server.bind-port": "0", "server.log-level": "debug",
		"agent.handler-timeout": "20",
	})
}

// startWorld starts a server; change may change its options.
func startWorld(dir string, change func(*config.Config)) (*world, error) {
	o, err := options(dir)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	s, err := server.New(server.Config{Options: o, Version: cli.Version})
	if err != nil {
		return nil, err
	}
	if err := s.Start(context.Background()); err != nil {
		return nil, err
	}
	return &world{dir: dir, server: s, control: s.Control(), store: s.Store()}, nil
}

var shared struct {
	once  sync.Once
	world *world
	err   error
}

// sharedWorld is one server for all scenarios that leave it as it was: each
// has an environment of its own.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	shared.once.Do(func() {
		dir, err := worldDir()
		if err == nil {
			shared.world, err = startWorld(dir, nil)
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal("the server does not start: ", shared.err)
	}
	return shared.world
}

func stopShared() {
	if shared.world != nil {
		shared.world.server.Stop()
		if err := os.RemoveAll(shared.world.dir); err != nil {
			log.Print(err)
		}
	}
}

// ownWorld is a server of the test's own.
func ownWorld(t *testing.T, change func(*config.Config)) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() { racedetector.Check(t) })
	w, err := startWorld(dir, change)
	if err != nil {
		t.Fatal("the server does not start: ", err)
	}
	t.Cleanup(func() { w.server.Stop() }) // the one that runs then: a scenario may start it again
	return w
}

// worldDir makes a directory that the database's user may pass through.
func worldDir() (string, error) {
	dir, err := os.MkdirTemp("", "ordain-e2e-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// place is one environment of a scenario with its repository.
type place struct {
	*world
	t    *testing.T
	env  intent.EnvironmentID
	bare string
	work string
	site string // where its notes are deployed
	last intent.CompileID
	// author of the commits that follow; empty: Eve.
	author string
}

// labModule is a module with one resource type, whose handler misbehaves when
// a note asks for it.
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
	"requirements.txt": "inmanta-module-std; python_version >= \"3.12\"\ninmanta-module-std<8; python_version < \"3.12\"\n",
	"project.yml":      "name: lab\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// unbound makes a repository without an environment.
func (w *world) unbound(t *testing.T) *place {
	t.Helper()
	t.Cleanup(func() { racedetector.Check(t) })
	dir := t.TempDir()
	p := &place{
		world: w,
		t:     t,
		bare:  filepath.Join(dir, "repo.git"),
		work:  filepath.Join(dir, "work"),
		site:  filepath.Join(dir, "site"),
	}
	for _, d := range []string{p.work, p.site} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.git("init", "-q", "--bare", "-b", "main", p.bare)
	p.git("init", "-q", "-b", "main")
	p.git("remote", "add", "origin", p.bare)
	return p
}

// bind makes the environment.
func (p *place) bind(source intent.Source, secrets map[string]string) {
	p.t.Helper()
	ctx := p.t.Context()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name())
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

// model is a main.cf with these notes; a note is name, text and mood.
func (p *place) model(notes ...[3]string) map[string]string {
	var b strings.Builder
	b.WriteString("import lab\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "lab::Note(path=%q, text=%q, mood=%q)\n", filepath.Join(p.site, n[0]), n[1], n[2])
	}
	return map[string]string{"main.cf": b.String()}
}

// push writes files, commits and pushes them.
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

// head is the id of the last commit.
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

// until looks again whenever something moves, until done is true.
func (p *place) until(what string, done func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	moves := p.control.Bus().Subscribe(func(e bus.Event) bool { return e.Environment == p.env })
	defer moves.Close()
	again := time.NewTicker(time.Second) // events may be lost
	defer again.Stop()
	for !done() {
		select {
		case <-moves.Events():
		case <-again.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				p.t.Fatalf("waited in vain for %s\n%s", what, p.story())
			}
			p.t.Fatal(ctx.Err())
		}
	}
}

// compiled waits for the end of the environment's next compile, not that of a
// preview, and gives its report.
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

// compiledWell is compiled, for a compile that has to succeed.
func (p *place) compiledWell() intent.Compile {
	p.t.Helper()
	c, stages := p.compiled()
	if c.Success == nil || !*c.Success {
		p.t.Fatalf("the compile failed:\n%s", report(stages))
	}
	return c
}

// failed waits for a compile that has to fail in this stage, and gives that
// stage's error output. What is deployed must not have moved.
func (p *place) failed(stage string) string {
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

// settled waits until nothing is deploying or waits to be, and gives the states.
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

// deployedState is what runs: the active version, its states and the files.
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

// note reads a deployed note.
func (p *place) note(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.site, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// attempts gives the deployments of a note, newest first.
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

// logOf is the text of the newest deployment's log.
func (p *place) logOf(name string) string {
	p.t.Helper()
	var b strings.Builder
	for _, m := range p.attempts(name)[0].Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Level, m.Message)
	}
	return b.String()
}

// story is what the server knows of the environment, for failures.
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

// mentions fails unless the text holds all words.
func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			t.Errorf("this says nothing of %q:\n%s", w, text)
		}
	}
}
