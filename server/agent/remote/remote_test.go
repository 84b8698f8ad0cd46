package remote

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/agent/target"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

const module = `
import os
import time

from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource


@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("agent", "name", "file", "do")


@provider("lab::Thing", name="lab")
class Lab(CRUDHandler):
    def read_resource(self, ctx, resource):
        if not resource.file:
            return
        with open(resource.file, "a") as f:
            f.write(resource.name + "\n")
        if resource.do == "package":
            import iniconfig
            ctx.set_fact("package", iniconfig.__name__)
            ctx.info("the token is %(token)s", token=os.environ["TOKEN"])
        if resource.do == "wait":
            while not os.path.exists(resource.file + ".go"):
                time.sleep(0.02)
        resource.do = ""

    def update_resource(self, ctx, changes, resource):
        ctx.set_updated()
`

// files is a store of files in memory.
type files struct{ content map[string][]byte }

func (f files) File(_ context.Context, hash string) ([]byte, error) {
	if content, ok := f.content[hash]; ok {
		return content, nil
	}
	return nil, fault.New("files.File", fault.NotFound, "there is no such file")
}

func (f files) PutFile(context.Context, []byte) (string, error) { return "", nil }

// site is a server with an agent server, and everything that both need.
type site struct {
	t         testing.TB
	store     *store.Store
	key       *secret.Key
	env       intent.Environment
	bus       *bus.Bus
	record    *record.Record
	authority *authority.Service
	layout    *layout.Layout
	maker     *venv.Maker
	files     files
	blueprint intent.Blueprint
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSite starts the parts. agents is the bus of the agent server.
func newSite(t testing.TB, agents *bus.Bus) *site {
	t.Helper()
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	must(t, err)
	s := &site{t: t, store: storetest.Open(t), key: key, bus: &bus.Bus{}}
	if agents == nil {
		agents = s.bus
	}
	project := intent.Project{ID: uuid.New(), Name: "p"}
	must(t, s.store.CreateProject(t.Context(), project))
	s.env = intent.Environment{ID: uuid.New(), ProjectID: project.ID, Name: "e", Created: time.Now()}
	must(t, s.store.CreateEnvironment(t.Context(), s.env, nil))
	_, err = s.store.Beat(
		t.Context(),
		intent.Replica{Name: "r", Roles: []string{"agent"}, Started: time.Now()},
		time.Hour,
	)
	must(t, err)
	s.record, err = record.New(record.Config{Store: s.store, Key: key, Bus: s.bus})
	must(t, err)
	cache, err := os.UserCacheDir()
	must(t, err)
	cache = filepath.Join(cache, "ordain-test") // wheels and uv are fetched once per machine
	s.layout, err = layout.New(layout.Config{StateDir: t.TempDir(), LogDir: t.TempDir(), CacheDir: cache})
	must(t, err)
	s.maker, err = venv.New(venv.Config{CacheDir: cache, ToolsDir: filepath.Join(cache, "tools")})
	must(t, err)
	python, err := s.maker.Interpreter(t.Context(), "")
	if err != nil {
		tool.Missing(t, "%v", err)
	}
	sum := sha1.Sum([]byte(module))
	hash := hex.EncodeToString(sum[:])
	s.files = files{map[string][]byte{hash: []byte(module)}}
	s.blueprint = intent.Blueprint{
		Environment: s.env.ID, PythonVersion: python.Minor, Libc: python.Libc,
		Sources: []intent.SourceFile{
			{Module: "inmanta_plugins.lab", Path: "inmanta_plugins/lab/__init__.py", Hash: hash},
		},
	}
	s.serve(agents)
	return s
}

// serve starts the agent server.
func (s *site) serve(events *bus.Bus) {
	t := s.t
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	url := "https://" + l.Addr().String()
	s.authority, err = authority.New(t.Context(), authority.Config{
		Store: s.store, Key: s.key, Bus: events, Logger: storetest.Logger(t), URL: func() string { return url },
	})
	must(t, err)
	of, err := record.New(record.Config{Store: s.store, Key: s.key, Bus: events})
	must(t, err)
	g, err := gateway.New(gateway.Config{
		Authority: s.authority, Record: of, Store: s.store, Bus: events, Logger: storetest.Logger(t), Version: "test",
		Listener: l, Hosts: []string{"127.0.0.1"}, Sweep: 100 * time.Millisecond,
		Variables: func(context.Context, intent.EnvironmentID) (map[string]string, []string, error) {
			return map[string]string{"TOKEN": "correct horse"}, nil, nil
		},
	})
	must(t, err)
	must(t, g.Start(t.Context()))
	t.Cleanup(g.Stop)
}

// agent lets an agent join and runs it.
func (s *site) agent(name string) (stop func()) {
	t := s.t
	t.Helper()
	_, token, err := s.authority.CreateToken(t.Context(), s.env.ID, name, 0)
	must(t, err)
	c := target.Config{StateDir: t.TempDir(), Program: "test 1", Logger: slog.New(slog.DiscardHandler)}
	must(t, target.Join(t.Context(), c, token))
	a, err := target.New(t.Context(), c)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	eventually(t, "the agent is connected", func() bool {
		all, err := s.record.Agents(t.Context(), s.env.ID)
		must(t, err)
		return slices.ContainsFunc(all, func(a intent.RemoteAgent) bool { return a.Name == name && a.Connected })
	})
	return stop
}

// owner makes an executor, as the owner of the environment does.
func (s *site) owner() *Executor {
	t := s.t
	t.Helper()
	e, err := New(Config{
		Environment: s.env.ID, Record: s.record, Bus: s.bus, Files: s.files, Maker: s.maker, Layout: s.layout,
		Logger: storetest.Logger(
			t,
		), Recorded: s.store.RecordedActions, sweep: 100 * time.Millisecond, grace: 200 * time.Millisecond,
	})
	must(t, err)
	e.Start()
	must(t, e.awaitReady(t.Context()))
	t.Cleanup(e.Stop)
	return e
}

func (s *site) task(agent, name, file, do string) executor.Task {
	attributes, err := json.Marshal(map[string]any{
		"agent": agent, "name": name, "file": file, "do": do, "purged": false, "send_event": false,
		"receive_events": true, "purge_on_delete": false,
	})
	must(s.t, err)
	return executor.Task{
		ID: uuid.New(), Action: executor.Deploy, Blueprint: s.blueprint, Reason: "test", Resource: intent.Resource{
			ID:      intent.ResourceID{Type: "lab::Thing", Agent: agent, Attribute: "name", Value: name},
			Version: 3, Attributes: attributes, AttributeHash: name,
		},
	}
}

func ran(t testing.TB, file, name string) int {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), name+"\n")
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this did not come true: " + what)
		}
	}
}

// A task goes to an agent with all that it needs: a package that the server fetched from an index, a source, the
// runtime, secret variables. Its result is what it would be in the server.
func TestATaskOnARemoteAgent(t *testing.T) {
	tool.Heavy(t, "runs executors of several machines")
	t.Parallel()
	s := newSite(t, nil)
	s.agent("host")
	s.blueprint.Requirements = []string{"iniconfig==2.0.0"}
	e := s.owner()
	file := filepath.Join(t.TempDir(), "ran")
	r := e.Run(t.Context(), s.task("host", "a", file, "package"))
	if r.Status != intent.StatusDeployed || r.Change != intent.Updated || len(r.Facts) != 1 ||
		r.Facts[0].Value != "iniconfig" {
		t.Fatalf("the result is %+v", r)
	}
	var said string
	for _, l := range r.Messages {
		said += l.Message + "\n"
	}
	if !strings.Contains(said, "the token is ***") {
		t.Errorf("the handler said %s", said)
	}
	if r.Changes["do"].Desired != "package" {
		t.Errorf("the changes are %v", r.Changes)
	}
	behind := s.task("host", "b", file, "")
	behind.Behind = true
	got := make(chan executor.Result, 1)
	e.Begin(t.Context(), []executor.Task{behind}, func(r executor.Result) { got <- r })
	if r := <-got; !r.Withdrawn {
		t.Errorf("a task behind another one was not given back: %+v", r)
	}
	e.sweep()
	e.mu.Lock()
	e.ended[uuidOf(t, e)] = time.Time{}
	e.mu.Unlock()
	e.finishOld()
	if left, err := s.record.Unfinished(t.Context(), s.env.ID); err != nil || len(left) != 0 {
		t.Errorf("commands are left: %v %v", left, err)
	}
}

// uuidOf returns the only command that was answered.
func uuidOf(t *testing.T, e *Executor) (id intent.ActionID) {
	t.Helper()
	if len(e.ended) != 1 {
		t.Fatalf("%d commands were answered", len(e.ended))
	}
	for id = range e.ended {
	}
	return id
}

// The owner of an environment ends while a handler runs. The next owner gives the resource another task, and gets the
// answer of the handler that runs: it does not run twice. No event ever reaches anybody.
func TestTheNextOwnerTakesTheAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, &bus.Bus{}) // the agent server and the owner do not hear of each other
	s.agent("host")
	first := s.owner()
	file := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithCancel(t.Context())
	var cut executor.Result
	var done sync.WaitGroup
	done.Go(func() { cut = first.Run(ctx, s.task("host", "a", file, "wait")) })
	eventually(t, "the handler runs", func() bool { return ran(t, file, "a") == 1 })
	cancel()
	done.Wait()
	first.Stop()
	if cut.Status != intent.StatusUnavailable {
		t.Errorf("the task that was cut off ended as %+v", cut)
	}
	second := s.owner()
	again := s.task("host", "a", file, "wait")
	var r executor.Result
	done.Go(func() { r = second.Run(t.Context(), again) })
	must(t, os.WriteFile(file+".go", nil, 0o600))
	done.Wait()
	if r.Status != intent.StatusDeployed || r.Task != again.ID || ran(t, file, "a") != 1 {
		t.Errorf("the result is %+v, and the handler ran %d times", r, ran(t, file, "a"))
	}
	if r := second.Run(t.Context(), s.task("host", "a", file, "wait")); r.Status != intent.StatusDeployed ||
		ran(t, file, "a") != 2 {
		t.Errorf("a repair did not run: %+v", r)
	}
}

// A task whose caller wants it to end is cancelled; without a connection a task is unavailable at once.
func TestCancelledAndUnreachable(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	stop := s.agent("host")
	e := s.owner()
	file := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithCancelCause(t.Context())
	var r executor.Result
	var done sync.WaitGroup
	done.Go(func() { r = e.Run(ctx, s.task("host", "a", file, "wait")) })
	eventually(t, "the handler runs", func() bool { return ran(t, file, "a") == 1 })
	cancel(executor.ErrEnd)
	done.Wait()
	if r.Status != intent.StatusFailed {
		t.Errorf("the result is %+v", r)
	}
	stop()
	eventually(t, "the owner knows that the agent has gone", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.agents["host"].Connected
	})
	r = e.Run(t.Context(), s.task("host", "b", file, ""))
	if r.Status != intent.StatusUnavailable || !r.Unreachable ||
		!strings.Contains(r.Messages[0].Message, "not connected") {
		t.Errorf("the result is %+v", r)
	}
}

// hereOnly notes the tasks that stay in the server.
type hereOnly struct{ names []string }

func (h *hereOnly) Run(_ context.Context, t executor.Task) executor.Result {
	h.names = append(h.names, t.Resource.ID.Agent)
	return executor.Result{Task: t.ID, Status: intent.StatusDeployed}
}

func (h *hereOnly) Begin(_ context.Context, tasks []executor.Task, done func(executor.Result)) {
	for _, t := range tasks {
		done(h.Run(context.Background(), t))
	}
}

func (h *hereOnly) Recall([]intent.ActionID) {}

// Each agent goes where it belongs. One that should be remote and has not joined is unavailable, with a line that says
// how it joins, and goes to its agent as soon as that has joined.
func TestRouting(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.agent("host")
	here := &hereOnly{}
	r := &Router{
		Here: here, Remote: s.owner(), Environment: s.env, Bus: s.bus,
		Unmanaged: func(context.Context, intent.EnvironmentID) (map[string]bool, error) {
			return map[string]bool{"far": true, "internal": true}, nil
		},
	}
	r.Start()
	defer r.Stop()
	file := filepath.Join(t.TempDir(), "ran")
	for _, agent := range []string{"internal", "started"} {
		if got := r.Run(t.Context(), s.task(agent, "a", "", "")); got.Status != intent.StatusDeployed {
			t.Errorf("%s: %+v", agent, got)
		}
	}
	if strings.Join(here.names, " ") != "internal started" {
		t.Errorf("these stayed here: %v", here.names)
	}
	got := r.Run(t.Context(), s.task("far", "a", file, ""))
	if got.Status != intent.StatusUnavailable ||
		!strings.Contains(got.Messages[0].Message, "ordain agent token create e far") {
		t.Errorf("far: %+v", got)
	}
	s.agent("far")
	eventually(t, "the owner knows the agent", func() bool { return r.Remote.Has("far") })
	results := make(chan executor.Result, 3)
	r.Begin(t.Context(), []executor.Task{
		s.task("far", "b", file, ""), s.task("host", "c", file, ""), s.task("started", "d", file, ""),
	}, func(r executor.Result) { results <- r })
	for range 3 {
		if got := <-results; got.Status != intent.StatusDeployed {
			t.Errorf("the result is %+v", got)
		}
	}
	if ran(t, file, "b") != 1 || ran(t, file, "c") != 1 || ran(t, file, "d") != 0 {
		t.Error("the tasks went to other places")
	}
}

// One warm task in this server, and on a remote agent through the record, the agent server, TLS and back.
func BenchmarkOneTask(b *testing.B) {
	s := newSite(b, nil)
	s.agent("host")
	e := s.owner()
	m, err := executor.NewManager(executor.Config{
		Layout: s.layout, Environment: s.env.ID, Maker: s.maker, Files: s.files,
	})
	must(b, err)
	defer func() { _ = m.Close(context.Background()) }()
	for _, c := range []struct {
		name string
		run  func(context.Context, executor.Task) executor.Result
	}{{"server", m.Run}, {"remote", e.Run}} {
		b.Run(c.name, func(b *testing.B) {
			if r := c.run(b.Context(), s.task("host", "warm", "", "")); r.Status != intent.StatusDeployed {
				b.Fatalf("%+v", r)
			}
			for b.Loop() {
				if r := c.run(b.Context(), s.task("host", "a", "", "")); r.Status != intent.StatusDeployed {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}
