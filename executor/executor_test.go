package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/layout"
)

// store is a store of files in memory.
type store struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (s *store) File(_ context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if content, ok := s.files[hash]; ok {
		return content, nil
	}
	return nil, fault.New("store.File", fault.NotFound, "no file has the hash "+hash)
}

func (s *store) PutFile(_ context.Context, content []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := digest(content)
	s.files[hash] = content
	return hash, nil
}

// bench is a manager with all that it needs.
type bench struct {
	*Manager
	t     *testing.T
	files *store
	env   intent.EnvironmentID
	paths *layout.Layout
	log   *journal
}

// journal keeps the log of the manager.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Write(p)
	return len(p), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newBench(t *testing.T, change func(*Config), python ...string) *bench {
	t.Helper()
	b := newBenchOf(t, change, python...)
	b.t = t
	return b
}

// newBenchOf is newBench for benchmarks too.
func newBenchOf(t testing.TB, change func(*Config), python ...string) *bench {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	cache = filepath.Join(cache, "ordain-test") // wheels and uv are fetched once per machine
	l, err := layout.New(layout.Config{StateDir: t.TempDir(), CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	maker, err := venv.New(
		venv.Config{CacheDir: cache, ToolsDir: filepath.Join(cache, "tools"), Python: strings.Join(python, "")},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maker.Interpreter(t.Context(), ""); err != nil {
		tool.Missing(t, "%v", err)
	}
	b := &bench{files: &store{files: map[string][]byte{}}, env: uuid.New(), paths: l, log: &journal{}}
	c := Config{
		Layout:      l,
		Environment: b.env,
		Maker:       maker,
		Files:       b.files,
		Logger:      slog.New(slog.NewTextHandler(b.log, nil)),
		HangGrace:   5 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	if b.Manager, err = NewManager(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(b.log.String())
		}
	})
	return b
}

// interpreters returns one Python of each version that is installed on this machine.
func interpreters(t *testing.T) []venv.Interpreter {
	t.Helper()
	names := []string{"python3", "python3.11", "python3.12", "python3.13"}
	if home, err := os.UserHomeDir(); err == nil { // where pyenv keeps those that are not active
		found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[1-9]*/bin/python3"))
		names = append(names, found...)
	}
	var out []venv.Interpreter
	for _, name := range names {
		i, err := venv.Find(t.Context(), name)
		known := slices.ContainsFunc(out, func(o venv.Interpreter) bool { return o.Minor == i.Minor })
		if err == nil && i.HasVenv && !known {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		tool.Missing(t, "there is no Python 3.11 or newer with venv on this machine")
	}
	return out
}

// serving returns the processes that take tasks.
func (b *bench) serving() []intent.ExecutorProcess {
	return slices.DeleteFunc(b.Processes(), func(p intent.ExecutorProcess) bool { return p.Ending })
}

// module stores a handler module and returns its blueprint.
func (b *bench) module(name, source string) intent.Blueprint {
	hash, err := b.files.PutFile(context.Background(), []byte(source))
	if err != nil {
		panic(err)
	}
	return intent.Blueprint{Environment: b.env, Sources: []intent.SourceFile{
		{Module: "inmanta_plugins." + name, Path: "inmanta_plugins/" + name + "/__init__.py", Hash: hash},
	}}
}

// task makes a task for a resource lab::Thing of one agent.
func task(b intent.Blueprint, agent, name string, attributes map[string]any) Task {
	full := map[string]any{
		"agent": agent, "name": name, "what": "", "purged": false, "purge_on_delete": false, "send_event": false,
		"receive_events": true, "report_only": false, "references": []any{}, "mutators": []any{},
	}
	maps.Copy(full, attributes)
	text, err := json.Marshal(full)
	if err != nil {
		panic(err)
	}
	return Task{
		ID: uuid.New(), Action: Deploy, Blueprint: b, Reason: "a test",
		Resource: intent.Resource{
			ID:      intent.ResourceID{Type: "lab::Thing", Agent: agent, Attribute: "name", Value: name},
			Version: 3, Attributes: text,
		},
	}
}

// lines returns the log of a result as text.
func lines(r Result) string {
	var out strings.Builder
	for _, l := range r.Messages {
		fmt.Fprintf(&out, "%s %s %s\n", l.Level, l.Message, l.Arguments)
	}
	return out.String()
}

func expect(t *testing.T, r Result, status intent.Status, words ...string) {
	t.Helper()
	log := lines(r)
	if r.Status != status {
		t.Errorf("%s is %s, want %s\n%s", r.Resource, r.Status, status, log)
	}
	for _, w := range words {
		if !strings.Contains(log, w) {
			t.Errorf("the log of %s misses %q:\n%s", r.Resource, w, log)
		}
	}
	if r.Finished.Before(r.Started) || r.Started.IsZero() {
		t.Errorf("from %s to %s", r.Started, r.Finished)
	}
}

// lab is a module whose handler does what an attribute of its resource says.
const lab = `
import os, sys, time, json, subprocess, threading, ctypes
from inmanta.agent.handler import provider, CRUDHandler, SkipResource, ResourcePurged, cache
from inmanta.resources import PurgeableResource, resource
from inmanta.references import Reference, reference

@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("name", "agent", "what")

@reference("lab::Secret")
class Secret(Reference[str]):
    def __init__(self, name):
        super().__init__()
        self.name = name
    def resolve(self, logger):
        logger.info("looking up hunter2-%(name)s", name=self.name)
        return "hunter2-" + self.name

state, tricks = {}, {}

@provider("lab::Thing", name="thing")
class ThingHandler(CRUDHandler):
    @cache(ignore=["when"], call_on_delete=lambda v: print("dropped", v))
    def kept(self, key, when):
        return object()

    def read_resource(self, ctx, resource):
        what = resource.what
        if what == "raise": raise ValueError("no such luck")
        if what == "exit": sys.exit("leaving")
        if what == "hang": time.sleep(3600)
        if what == "print":
            print("hello from a handler")
            for i in range(20000): print("x" * 50, i)
        if what == "noise": os.write(1, b"raw words\n" * 100000)
        if what == "kill": print("about to die"); os.kill(os.getpid(), 9)
        if what == "segfault": ctypes.string_at(0)
        if what == "fork":
            if os.fork() == 0: time.sleep(3600)
        if what == "skip": raise SkipResource("not today")
        if what == "env": ctx.set_fact("env", json.dumps(sorted(os.environ)))
        if what == "pid": ctx.set_fact("pid", str(os.getpid()))
        if what == "client": self.run_sync(lambda: self.get_client().get_version())
        if what == "cache": ctx.set_fact("same", str(self.kept("a", 1) is self.kept("a", when=2)))
        if what == "file":
            self.upload_file("4e1243bd22c66e76c2ba9eddc1f91394e57f9f83", b"test\n")
            content = self.get_file("4e1243bd22c66e76c2ba9eddc1f91394e57f9f83")
            ctx.set_fact("file", "%s %s %s" % (content, self.get_file("0" * 40), self.stat_file("0" * 40)))
        if what.startswith("hunter2"):
            ctx.info("the password is %(password)s", password=what, inner={"deep": [what]})
            print("printing", what)
            resource.what = "old-" + what
            return
        if what in tricks: tricks[what](self, ctx, resource)
        if what == "nap": time.sleep(0.03 + 0.017 * len(resource.agent))
        if what == "meet":
            gate.wait(30)
        if resource.name not in state: raise ResourcePurged()
        resource.what = state[resource.name]

    def create_resource(self, ctx, resource):
        state[resource.name] = resource.what
        ctx.set_created()
    def update_resource(self, ctx, changes, resource):
        state[resource.name] = resource.what
        ctx.set_updated()
    def delete_resource(self, ctx, resource):
        del state[resource.name]
        ctx.set_purged()
    def facts(self, ctx, resource):
        return {"known": str(resource.name in state)}

gate = threading.Barrier(2)
`

// The life of a resource: dry run, create, nothing to do, update, facts, purge.
func TestLifeOfAResource(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	dry := task(blue, "host", "a", map[string]any{"what": "1"})
	dry.Action = DryRun
	r := b.Run(t.Context(), dry)
	expect(t, r, intent.StatusDry, "Calling read_resource")
	if r.Change != intent.NoChange || r.Changes["purged"].Current != true {
		t.Errorf("dry run: %s %v", r.Change, r.Changes)
	}
	r = b.Run(t.Context(), task(blue, "host", "a", map[string]any{"what": "1"}))
	expect(t, r, intent.StatusDeployed, "Calling create_resource")
	if r.Change != intent.Created {
		t.Errorf("created: %s", r.Change)
	}
	r = b.Run(t.Context(), task(blue, "host", "a", map[string]any{"what": "1"}))
	if expect(t, r, intent.StatusDeployed); r.Change != intent.NoChange || len(r.Changes) != 0 {
		t.Errorf("again: %s %v", r.Change, r.Changes)
	}
	r = b.Run(t.Context(), task(blue, "host", "a", map[string]any{"what": "2"}))
	if expect(t, r, intent.StatusDeployed, "Calling update_resource"); r.Change != intent.Updated ||
		r.Changes["what"] != (intent.AttributeChange{Current: "1", Desired: "2"}) {
		t.Errorf("update: %s %v", r.Change, r.Changes)
	}
	r = b.Run(t.Context(), task(blue, "host", "a", map[string]any{"what": "3", "report_only": true}))
	if expect(t, r, intent.StatusNonCompliant); r.Change != intent.NoChange || r.Changes["what"].Current != "2" {
		t.Errorf("report only: %s %v", r.Change, r.Changes)
	}
	facts := task(blue, "host", "a", nil)
	facts.Action = GetFacts
	if r = b.Run(t.Context(), facts); len(r.Facts) != 1 || r.Facts[0].Value != "True" {
		t.Errorf("facts: %v\n%s", r.Facts, lines(r))
	}
	r = b.Run(t.Context(), task(blue, "host", "a", map[string]any{"purged": true}))
	if expect(t, r, intent.StatusDeployed, "Calling delete_resource"); r.Change != intent.Purged {
		t.Errorf("purge: %s", r.Change)
	}
	waiting := task(blue, "host", "b", nil)
	waiting.Requires = map[intent.ResourceID]intent.Status{waiting.Resource.ID: intent.StatusFailed}
	expect(t, b.Run(t.Context(), waiting), intent.StatusSkippedForDependency, "what it needs is not deployed")
	for i, l := range r.Messages {
		if l.Time.IsZero() || l.Level == "" || l.Message == "" || (i > 0 && l.Time.Before(r.Messages[i-1].Time)) {
			t.Errorf("line %d: %+v", i, l)
		}
	}
}

// Each kind of misbehaviour fails its own task and says why, and the next task works.
func TestHandlersMisbehave(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	for _, tc := range []struct {
		what   string
		status intent.Status
		words  []string
	}{
		{"raise", intent.StatusFailed, []string{"ValueError", "no such luck", "Traceback"}},
		{"exit", intent.StatusFailed, []string{"SystemExit", "leaving"}},
		{"skip", intent.StatusSkipped, []string{"not today"}},
		{"print", intent.StatusDeployed, []string{"hello from a handler", "19501 more lines were printed"}},
		{"noise", intent.StatusDeployed, nil},
		{"client", intent.StatusFailed, []string{"get_version"}},
		{"kill", intent.StatusFailed, []string{"about to die", "signal 9", "started again"}},
		{"segfault", intent.StatusFailed, []string{"signal 11", "Segmentation fault"}},
		{"fork", intent.StatusDeployed, nil},
		{"fine", intent.StatusDeployed, nil},
	} {
		t.Run(tc.what, func(t *testing.T) {
			r := b.Run(t.Context(), task(blue, "host", tc.what, map[string]any{"what": tc.what}))
			expect(t, r, tc.status, tc.words...)
			if size := len(lines(r)); size > 200<<10 {
				t.Errorf("a log of %d bytes", size)
			}
		})
	}
}

// The output of a process outside of its tasks is logged, up to a limit.
func TestFloodOfOutput(t *testing.T) {
	log := &journal{}
	o := &output{log: slog.New(slog.NewTextHandler(log, nil))}
	for range 5 * floodLines {
		o.line("stdout", "again")
	}
	o.since = time.Now().Add(-time.Minute)
	o.line("stderr", "and later")
	text := log.String()
	if n := strings.Count(text, "msg=again"); n != floodLines || !strings.Contains(text, "lines=4000") ||
		!strings.Contains(text, "and later") {
		t.Errorf("%d lines, and\n%s", n, text[len(text)-300:])
	}
}

// A hanging handler fails after its time. Its process is replaced after the other
// tasks in it have finished, and the agent goes on.
func TestHandlerHangs(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	pid := func() string {
		t.Helper()
		r := b.Run(t.Context(), task(blue, "other", "p", map[string]any{"what": "pid"}))
		if expect(t, r, intent.StatusDeployed); len(r.Facts) != 1 {
			t.Fatalf("facts %v", r.Facts)
		}
		return r.Facts[0].Value
	}
	first := pid()
	hung := task(blue, "host", "h", map[string]any{"what": "hang"})
	hung.Timeout = 100 * time.Millisecond
	r := b.Run(t.Context(), hung)
	expect(t, r, intent.StatusFailed, "did not finish within 100ms", "Calling read_resource")
	expect(t, b.Run(t.Context(), task(blue, "host", "h", nil)), intent.StatusDeployed)
	if second := pid(); second == first {
		t.Error("the process with the hung handler still takes tasks")
	}
}

// Handlers of two agents run in the same process at the same time: each waits for the other.
func TestAgentsShareAProcess(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	var both sync.WaitGroup
	for _, agent := range []string{"one", "two"} {
		both.Go(func() {
			expect(t, b.Run(t.Context(), task(blue, agent, "m", map[string]any{"what": "meet"})), intent.StatusDeployed)
		})
	}
	both.Wait()
	if stats := b.serving(); len(stats) != 1 || stats[0].RSS < 1<<20 || stats[0].PID == 0 {
		t.Errorf("processes: %+v", stats)
	}
}

// An agent with two lanes runs two tasks at once in one process, each in a thread
// of its own.
func TestLanesOfAnAgent(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	var both sync.WaitGroup
	for _, name := range []string{"m", "n"} {
		both.Go(func() {
			one := task(blue, "one", name, map[string]any{"what": "meet"})
			one.Lanes = 2
			expect(t, b.Run(t.Context(), one), intent.StatusDeployed)
		})
	}
	both.Wait()
	if stats := b.serving(); len(stats) != 1 || stats[0].Running != 0 || stats[0].Agents != 1 {
		t.Errorf("processes: %+v", stats)
	}
}

// Only the handler sees the value of a reference: it appears neither in messages,
// values, changes and output, nor in the log of its resolution.
func TestSecretsStayInTheExecutor(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	id := uuid.New().String()
	r := b.Run(t.Context(), task(blue, "host", "s", map[string]any{
		"what": nil,
		"references": []any{
			map[string]any{
				"id":   id,
				"type": "lab::Secret",
				"args": []any{map[string]any{"type": "literal", "name": "name", "value": "abc"}},
			},
		},
		"mutators": []any{map[string]any{"type": "core::Replace", "args": []any{
			map[string]any{"type": "resource", "name": "resource", "id": "lab::Thing[host,name=s]"},
			map[string]any{"type": "reference", "name": "value", "id": id},
			map[string]any{"type": "literal", "name": "destination", "value": "what"},
		}}},
	}))
	expect(t, r, intent.StatusDeployed, "the password is ***", "printing ***", "looking up ***")
	all, err := json.Marshal(r)
	if err != nil || strings.Contains(string(all), "hunter2") {
		t.Errorf("%v\n%s", err, all)
	}
	if r.Changes["what"] != (intent.AttributeChange{Current: intent.Secret, Desired: intent.Secret}) {
		t.Errorf("changes %v", r.Changes)
	}
}

// Handlers reach the file store and their cache, and nothing of the server's environment.
func TestWhatHandlersSee(t *testing.T) {
	t.Setenv("ORDAIN_DATABASE_PASSWORD", "hunter2")
	b := newBench(t, func(c *Config) { c.Variables = given(Variable{Name: "LAB", Value: "yes"}) })
	blue := b.module("lab", lab)
	for what, want := range map[string]string{"file": "b'test\\n' None False", "cache": "True"} {
		r := b.Run(t.Context(), task(blue, "host", what, map[string]any{"what": what}))
		if expect(t, r, intent.StatusDeployed); len(r.Facts) != 1 || r.Facts[0].Value != want {
			t.Errorf("%s: %v", what, r.Facts)
		}
	}
	r := b.Run(t.Context(), task(blue, "host", "env", map[string]any{"what": "env"}))
	if len(r.Facts) != 1 || !strings.Contains(r.Facts[0].Value, "LAB") ||
		strings.Contains(r.Facts[0].Value, "ORDAIN_DATABASE") {
		t.Errorf("environment: %v", r.Facts)
	}
}

// The log of each resource says why its handler could not start.
func TestNoExecutor(t *testing.T) {
	b := newBench(t, nil)
	t.Run("no such package", func(t *testing.T) {
		blue := b.module("lab", lab)
		blue.Requirements = []string{"ordain-no-such-package-at-all"}
		for range 2 { // the second learns it at once
			expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable,
				"cannot install the Python packages", "ordain-no-such-package-at-all")
		}
	})
	t.Run("source not stored", func(t *testing.T) {
		blue := b.module("lab", lab)
		blue.Sources[0].Hash = strings.Repeat("0", 40)
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "inmanta_plugins.lab",
			"no file has the hash")
	})
	t.Run("path outside", func(t *testing.T) {
		blue := b.module("lab", lab)
		blue.Sources[0].Path = "../../evil.py"
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "evil.py")
	})
	t.Run("import error", func(t *testing.T) {
		expect(t, b.Run(t.Context(), task(b.module("lab", "import no_such_thing"), "host", "a", nil)),
			intent.StatusUnavailable, "no_such_thing", "lab::Thing")
	})
	t.Run("module ends the process", func(t *testing.T) {
		blue := b.module("lab", "import os; print('leaving'); os._exit(4)")
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "exit status 4",
			"leaving")
	})
	t.Run("no handler", func(t *testing.T) {
		source, _, _ := strings.Cut(lab, `@provider`)
		expect(t, b.Run(t.Context(), task(b.module("lab", source), "host", "a", nil)), intent.StatusUnavailable,
			"lab::Thing")
	})
	t.Run("field missing", func(t *testing.T) {
		broken := task(b.module("lab", lab), "host", "a", nil)
		broken.Resource.Attributes = json.RawMessage(`{"name": "a"}`)
		expect(t, b.Run(t.Context(), broken), intent.StatusUnavailable, "field")
	})
	t.Run("no such python", func(t *testing.T) {
		blue := b.module("lab", lab)
		blue.PythonVersion = "3.99"
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "python3.99")
	})
}

// When the disk of the state directory is full, the resource's log says so and
// what to do about it.
func TestDiskFull(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	l, err := layout.New(layout.Config{StateDir: small, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *Config) { c.Layout = l })
	blue := b.module("lab", lab)
	if err := os.WriteFile(filepath.Join(small, "ballast"), make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "free space")
}

// When there are more blueprints than places, each blueprint gets its turn.
func TestCap(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Cap = 1 })
	var all sync.WaitGroup
	for n := range 3 {
		blue := b.module("lab", lab+fmt.Sprintf("# variant %d\n", n))
		all.Go(func() {
			expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusDeployed)
		})
	}
	all.Wait()
	if n := len(b.serving()); n > 1 {
		t.Errorf("%d processes", n)
	}
}

// Unused folders are removed. Used and recent ones stay, and are made again if a
// person deletes them.
func TestClean(t *testing.T) {
	b := newBench(t, func(c *Config) { c.IdleRetention, c.VenvRetention = time.Nanosecond, time.Hour })
	blue := b.module("lab", lab)
	expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusDeployed)
	e := b.paths.Environment(b.env)
	venv, code := e.Venv(blue.VenvHash()), e.Code(blue.Hash())
	if err := b.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(b.serving()); n != 0 {
		t.Errorf("%d idle processes are left", n)
	}
	for _, dir := range []string{venv, code} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("deleted too early: %v", err)
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	marker, _ := filepath.Glob(filepath.Join(venv, ".ordain*"))
	leftover := venv + ".new-123"
	if err := os.Mkdir(leftover, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(marker, code, leftover) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{venv, code, leftover} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
	if len(b.executors) != 0 {
		t.Errorf("%d executors are remembered", len(b.executors))
	}
	expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusDeployed)
	if dirs := slices.Concat(folders(e.Venvs()), folders(e.Codes())); len(dirs) != 2 {
		t.Errorf("folders: %v", dirs)
	}
}

// A cancelled task returns at once. Its handler finishes, and the next task of
// the agent waits for it.
func TestCancelledHandlerFinishes(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	if err := b.Prepare(t.Context(), []intent.Blueprint{blue}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, b.Run(ctx, task(blue, "one", "a", nil)), intent.StatusUnavailable, "cancelled before")

	ctx, cancel = context.WithCancel(t.Context())
	cancelled := make(chan Result)
	go func() { cancelled <- b.Run(ctx, task(blue, "one", "a", map[string]any{"what": "meet"})) }()
	for b.serving()[0].Running == 0 {
		time.Sleep(time.Millisecond) // the manager signals ends, not beginnings
	}
	cancel()
	expect(t, <-cancelled, intent.StatusFailed, "left to finish")
	// The handler still waits at the gate; this one lets it through.
	expect(t, b.Run(t.Context(), task(blue, "two", "b", map[string]any{"what": "meet"})), intent.StatusDeployed)
	r := b.Run(t.Context(), task(blue, "one", "a", map[string]any{"what": "meeting is over"}))
	if expect(t, r, intent.StatusDeployed); r.Changes["what"].Current != "meet" {
		t.Errorf("the cancelled handler did not finish: %v", r.Changes)
	}
	if n := len(b.serving()); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// The same is true while the handler waits for an answer of the server.
func TestCancelledWhileItIsAnswered(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	if err := b.Prepare(t.Context(), []intent.Blueprint{blue}); err != nil {
		t.Fatal(err)
	}
	b.c.Files = slowFiles{b.files, asked, answer}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan Result)
	go func() { cancelled <- b.Run(ctx, task(blue, "one", "a", map[string]any{"what": "file"})) }()
	<-asked
	cancel()
	expect(t, <-cancelled, intent.StatusFailed, "left to finish", "Calling read_resource")
	close(answer)
	expect(t, b.Run(t.Context(), task(blue, "one", "b", nil)), intent.StatusDeployed)
}

// slowFiles reports when a file is asked for and holds the answer back.
type slowFiles struct {
	Files
	asked  chan<- struct{}
	answer <-chan struct{}
}

func (f slowFiles) File(ctx context.Context, hash string) ([]byte, error) {
	select {
	case f.asked <- struct{}{}:
	case <-f.answer:
	}
	<-f.answer
	return f.Files.File(ctx, hash)
}

// A manager that is being closed lets running tasks finish for a while. Afterwards
// there is no process and no waiting task.
func TestClose(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	if err := b.Prepare(t.Context(), []intent.Blueprint{blue}); err != nil {
		t.Fatal(err)
	}
	pid := b.serving()[0].PID
	results := make(chan Result)
	go func() {
		results <- b.Run(context.Background(), task(blue, "two", "a", map[string]any{"what": "hang"}))
	}()
	for b.serving()[0].Running == 0 {
		time.Sleep(time.Millisecond) // the manager signals ends, not beginnings
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, <-results, intent.StatusFailed, "closed")
	expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusUnavailable, "stopped")
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the process is still there")
	}
}

// given returns variables of handlers.
func given(variables ...Variable) func(context.Context) ([]Variable, error) {
	return func(context.Context) ([]Variable, error) { return variables, nil }
}
