package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/cluster/workers"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// patience is how long a test waits on a busy machine.
const patience = 2 * time.Minute

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a server in small: a record, a desk, and provisioners.
type world struct {
	*testing.T
	ctx       context.Context
	store     *store.Store
	catalogue *admin.Service
	bus       *bus.Bus
	desk      *desk.Desk
	layout    *layout.Layout
	plugins   string
	said      *log
	service   *workers.Service
}

// log keeps what was logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// noResources stands for plug-ins without files.
type noResources struct{}

func (noResources) Active(context.Context, uuid.UUID, string, string) ([]task.Resource, error) {
	return nil, nil
}

func (noResources) OpenHash(context.Context, uuid.UUID, string) (io.ReadCloser, int64, error) {
	return nil, 0, fault.New("test", fault.NotFound, "there are no resources")
}

// lab is a plug-in for providers. While its folder has a file "hold", it does not answer.
const lab = `#!/bin/sh
cat >/dev/null
while [ -e "$ORDAIN_PLUGIN/hold" ]; do sleep 0.05; done
echo "$ORDAIN_ACTION is done"
case "$ORDAIN_ACTION" in
create) echo '{"status":"done","facts":{"providerid":"m-1"}}' >&3 ;;
*) echo '{"status":"done","addresses":{"access_v4":"192.0.2.1","bind_v4":"192.0.2.1"}}' >&3 ;;
esac
`

// confinement is how a server confines what it starts, on this machine.
func confinement() *isolation.Config {
	c := &isolation.Config{Support: isolation.Detect()}
	if c.Support.None() {
		return nil
	}
	if os.Geteuid() == 0 && c.Support.Users && isolation.Mapped(2_000_000_000, config.UsersMax) {
		c.FirstUser = 2_000_000_000
	}
	return c
}

func newWorld(t *testing.T, set func(*workers.Config)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{T: t, store: storetest.Open(t), bus: &bus.Bus{}, said: &log{}, plugins: filepath.Join(dir, "plugins")}
	w.ctx = access.With(t.Context(), access.Principal{Kind: access.Person, Name: "noor"})
	key := must(secret.OpenKey(filepath.Join(dir, "key")))(t)
	w.catalogue = must(admin.New(admin.Config{Store: w.store, Key: key, Bus: w.bus}))(t)
	logger := slog.New(slog.NewTextHandler(w.said, nil))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.said.String())
		}
	})
	w.desk = must(desk.New(desk.Config{
		Store: w.store, Catalogues: w.catalogue, Resources: noResources{}, Key: key, Bus: w.bus, Logger: logger,
		Lease: 3 * time.Second, Sweep: 200 * time.Millisecond, Backoff: 100 * time.Millisecond, PerProvider: 100,
	}))(t)
	w.layout = must(layout.New(layout.Config{
		StateDir: filepath.Join(dir, "state"), LogDir: filepath.Join(dir, "log"), CacheDir: filepath.Join(dir, "cache"),
	}))(t)
	for name, text := range map[string]string{
		"main.sh": lab, "plugin.json": `{"name":"lab","protocol":1,"program":"main.sh","providertypes":["lab"]}`,
	} {
		path := filepath.Join(w.plugins, "lab", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := workers.Config{
		Desk: w.desk, Store: w.store, Layout: w.layout, Bus: w.bus, Logger: logger,
		Program: []string{must(os.Executable())(t)}, Plugins: w.plugins, Isolation: confinement(),
		LastUser: config.UsersMax - 1, Sweep: 200 * time.Millisecond,
	}
	if set != nil {
		set(&c)
	}
	w.service = must(workers.New(c))(t)
	if err := w.desk.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.desk.Stop)
	return w
}

// start starts the provisioners.
func (w *world) start() {
	w.Helper()
	if err := w.service.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(w.service.Stop)
}

// hold keeps the plug-in from answering, or lets it go on.
func (w *world) hold(on bool) {
	w.Helper()
	path := filepath.Join(w.plugins, "lab", "hold")
	if !on {
		if err := os.Remove(path); err != nil {
			w.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		w.Fatal(err)
	}
}

// await waits until a condition holds.
func (w *world) await(what string, condition func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatal("waited in vain until " + what)
		}
	}
}

// job is a change of a cluster.
type job struct {
	project, id uuid.UUID
}

// order makes a project with a cluster, whose machines are all to be made: two tasks for each.
func (w *world) order(name string, nodes, room int) job {
	w.Helper()
	p := intent.Project{ID: uuid.New(), Name: name}
	if err := w.store.CreateProject(w.ctx, p); err != nil {
		w.Fatal(err)
	}
	e := intent.Environment{
		ID: uuid.New(), ProjectID: p.ID, Name: "staging", Source: intent.Source{URL: "file:///repo", Branch: "main"},
	}
	if err := w.store.CreateEnvironment(w.ctx, e, nil); err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.SetClusterTenant(w.ctx, store.ClusterTenant{Project: p.ID, Workers: room}); err != nil {
		w.Fatal(err)
	}
	for _, one := range []struct {
		kind catalogue.Kind
		text string
	}{
		{catalogue.ProviderTypes, `{"name": "lab", "parameters": {"admin": {"fields": {}}, "user": {"fields": {}}}}`},
		{catalogue.Providers, `{"name": "lab", "providertype": "lab", "provisioner": {}}`},
		{catalogue.HardwareTypes, `{"name": "small", "providermap": {"lab": {"flavor": "s"}}}`},
		{catalogue.ImageTypes, `{"name": "debian", "providermap": {"lab": {"image": "d"}}}`},
		{catalogue.Services, `{"name": "web", "provisioner": {"actions": {}}}`},
		{catalogue.Templates, `{"name": "top", "compatibility": {"services": ["web"]},
			"defaults": {"services": ["web"], "provider": "lab"}}`},
	} {
		if _, err := w.catalogue.Create(w.ctx, p.ID, one.kind, []byte(one.text)); err != nil {
			w.Fatal(err)
		}
	}
	m := manifest.Manifest{Name: "shop", Owner: "noor", Template: "top", Size: nodes, Services: []string{"web"}}
	cluster := uuid.New()
	j := intent.ClusterJob{ID: uuid.New(), Cluster: cluster, Action: "create", At: "c0ffee", MadeBy: "noor"}
	var planned []intent.ClusterNode
	var tasks []intent.ClusterTask
	for i := range nodes {
		n := manifest.Node{
			Number: manifest.FirstNode + i, Hostname: fmt.Sprintf("shop-%d.local", i), HardwareType: "small",
			ImageType: "debian", Services: []string{"web"},
		}
		m.Nodes = append(m.Nodes, n)
		planned = append(planned, intent.ClusterNode{
			Cluster: cluster, Number: n.Number, Hostname: n.Hostname, Hardware: "small", Image: "debian",
			Provider: "lab",
		})
		for k, action := range []task.Action{task.Create, task.Confirm} {
			t := intent.ClusterTask{
				ID: uuid.New(), Job: j.ID, Number: 2*i + k + 1, Cluster: cluster, Project: p.ID, Node: n.Number,
				Action: string(action), Provider: "lab",
			}
			if k == 1 {
				t.Needs = []int32{int32(2*i + 1)}
			}
			tasks = append(tasks, t)
		}
	}
	m.Next = manifest.FirstNode + nodes
	goal := must(json.Marshal(m))(w)
	j.Goal = goal
	if err := w.store.AddCluster(w.ctx, intent.Cluster{
		ID: cluster, Environment: e.ID, Name: "shop", Owner: "noor", Wanted: goal, WantedAt: "c0ffee",
	}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.StartClusterJob(w.ctx, e.ID, j, planned, tasks); err != nil {
		w.Fatal(err)
	}
	w.bus.Publish(bus.Event{Environment: e.ID, Topic: bus.Cluster, ID: cluster.String()})
	return job{p.ID, j.ID}
}

// states counts the tasks of a job by state.
func (w *world) states(j job) map[intent.ClusterTaskState]int {
	w.Helper()
	out := map[intent.ClusterTaskState]int{}
	for _, t := range must(w.store.ClusterTasks(w.ctx, j.id))(w) {
		out[t.State]++
	}
	return out
}

// complete reports whether all tasks of all jobs are complete.
func (w *world) complete(jobs ...job) bool {
	w.Helper()
	for _, j := range jobs {
		states := w.states(j)
		if states[intent.TaskFailed] > 0 || states[intent.TaskDropped] > 0 {
			for _, t := range must(w.store.ClusterTasks(w.ctx, j.id))(w) {
				if t.Problem != "" {
					w.Fatalf("%s of node %d failed: %s", t.Action, t.Node, t.Problem)
				}
			}
		}
		if len(states) != 1 || states[intent.TaskComplete] == 0 {
			return false
		}
	}
	return true
}

// running returns the process of a project's provisioner, or 0.
func (w *world) running(project uuid.UUID) int {
	for _, p := range w.service.Provisioners() {
		if p.Project == project {
			return p.PID
		}
	}
	return 0
}

// processes returns the processes of this machine whose command line or environment has a text.
func processes(text string) (out []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		line, _ := os.ReadFile(dir + "/cmdline")
		if strings.Contains(string(line), text) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if pid != os.Getpid() {
				out = append(out, pid)
			}
		}
	}
	return out
}

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
