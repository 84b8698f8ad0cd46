package workers_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/workers"
)

// Three projects have two hundred tasks, and there is room for two provisioners. All tasks are carried out, each once,
// although the third project has to wait for its turn, and then the provisioners end.
func TestThreeProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *workers.Config) {
		c.Max, c.Turn, c.Idle = 2, 500*time.Millisecond, 300*time.Millisecond
	})
	w.start()
	jobs := []job{w.order("acme", 34, 8), w.order("bolt", 33, 8), w.order("corp", 33, 8)}
	most := 0
	w.await("all tasks are complete", func() bool {
		running := 0
		for _, p := range w.service.Provisioners() {
			if p.PID != 0 {
				running++
			}
		}
		most = max(most, running)
		return w.complete(jobs...)
	})
	if most != 2 {
		t.Errorf("%d provisioners ran at a time", most)
	}
	for _, j := range jobs {
		for _, one := range must(w.store.ClusterTasks(w.ctx, j.id))(t) {
			if one.Attempts != 1 || !strings.HasPrefix(one.TakenBy, "server/") {
				t.Errorf("%s of node %d: %d attempts, by %q", one.Action, one.Node, one.Attempts, one.TakenBy)
			}
		}
	}
	w.await("the provisioners end", func() bool { return len(w.service.Provisioners()) == 0 })
	if text := w.said.String(); strings.Contains(text, "crashed") || !strings.Contains(text, "the provisioner works") {
		t.Error("the log is wrong")
	}
}

// A provisioner is killed while its tasks run. Another one is started, and carries them out again when their leases are
// over. Nothing is left of what the first one had started.
func TestKilled(t *testing.T) {
	tool.Heavy(t, "runs confined processes")
	t.Parallel()
	w := newWorld(t, func(c *workers.Config) { c.Pause = 10 * time.Millisecond })
	w.hold(true)
	w.start()
	j := w.order("acme", 6, 4)
	w.await("plug-ins run", func() bool { return len(processes(w.plugins+"/lab/main.sh")) >= 4 })
	old, plugins := w.running(j.project), processes(w.plugins+"/lab/main.sh")
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.await("its plug-ins are gone", func() bool {
		for _, pid := range plugins {
			if alive(pid) {
				return false
			}
		}
		return true
	})
	w.hold(false)
	w.await("all tasks are complete", func() bool { return w.complete(j) })
	if pid := w.running(j.project); pid == 0 || pid == old {
		t.Errorf("the provisioner has the process %d, and had %d", pid, old)
	}
	again := 0
	for _, one := range must(w.store.ClusterTasks(w.ctx, j.id))(t) {
		if one.Fence > 1 {
			again++
		}
	}
	if again == 0 || again > 4 {
		t.Errorf("%d tasks were taken again", again)
	}
}

// The server stops while tasks run: nothing of its provisioners is left.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hold(true)
	w.start()
	j := w.order("acme", 3, 3)
	w.await("plug-ins run", func() bool { return len(processes(w.plugins+"/lab/main.sh")) >= 3 })
	pid := w.running(j.project)
	began := time.Now()
	w.service.Stop()
	if left := processes(w.plugins); len(left) > 0 || alive(pid) {
		t.Errorf("the processes %v are left", left)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if s := w.states(j); s[intent.TaskFailed] > 0 || s[intent.TaskComplete] > 0 {
		t.Errorf("the tasks are %v", s)
	}
	if left, _ := filepath.Glob(w.layout.Provisioner(j.project).Runs() + "/*"); len(left) > 0 {
		t.Errorf("the folders %q are left", left)
	}
}

// A project that may have another number of tasks at a time gets a provisioner with this room, without losing a task.
func TestRoomChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hold(true)
	w.start()
	j := w.order("acme", 6, 1)
	w.await("a task runs", func() bool { return w.states(j)[intent.TaskRunning] == 1 })
	tenant := must(w.store.ClusterTenant(w.ctx, j.project))(t)
	tenant.Workers = 3
	must(w.store.SetClusterTenant(w.ctx, tenant))(t)
	w.await("the provisioner ends", func() bool {
		all := w.service.Provisioners()
		return len(all) == 1 && all[0].Ending
	})
	w.hold(false)
	w.await("the next one has more room", func() bool {
		all := w.service.Provisioners()
		return len(all) == 1 && all[0].Room == 3 || w.complete(j)
	})
	w.await("all tasks are complete", func() bool { return w.complete(j) })
	for _, one := range must(w.store.ClusterTasks(w.ctx, j.id))(t) {
		if one.Attempts != 1 {
			t.Errorf("%s of node %d: %d attempts", one.Action, one.Node, one.Attempts)
		}
	}
}

// A provisioner that always crashes is started less and less often, and people learn why.
func TestCrashes(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho out of order >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *workers.Config) {
		c.Program, c.Isolation = []string{program}, nil
		c.Pause, c.PauseMax = 20*time.Millisecond, time.Hour
	})
	began := time.Now()
	w.start()
	j := w.order("acme", 1, 1)
	w.await("it has crashed five times", func() bool {
		all := w.service.Provisioners()
		return len(all) == 1 && all[0].Failures >= 5
	})
	if took := time.Since(began); took < 300*time.Millisecond { // 20 + 40 + 80 + 160
		t.Errorf("five crashes within %s", took)
	}
	p := w.service.Provisioners()[0]
	if p.Project != j.project || !strings.Contains(p.Problem, "exit status 3") ||
		!strings.Contains(p.Problem, "out of order") {
		t.Errorf("%+v", p)
	}
}

// A provisioner reaches its own folder and the network, and nothing of the server's: no file of the state directory, no
// folder of another project, not the database, no variable, and as root it is not root.
func TestConfined(t *testing.T) {
	tool.Heavy(t, "runs confined processes")
	t.Parallel()
	confined := confinement()
	if confined == nil || !confined.Support.Namespaces {
		t.Skip("this kernel cannot confine processes")
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	short := must(os.MkdirTemp("", "ordain-spy-"))(t)
	defer os.RemoveAll(short)
	database := must(net.Listen("unix", filepath.Join(short, "socket")))(t)
	defer database.Close()
	if err := os.Chmod(short, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(short, "socket"), 0o777); err != nil {
		t.Fatal(err)
	}
	var secrets []string
	w := newWorld(t, func(c *workers.Config) {
		c.Program = append(c.Program, "spy")
		for _, name := range []string{"key", "server/.secret.key", "postgres/pg_hba.conf"} {
			path := filepath.Join(c.Layout.StateDir(), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("secret"), 0o644); err != nil {
				t.Fatal(err)
			}
			secrets = append(secrets, path)
		}
		c.Environ = []string{
			"SPY_PATHS=" + strings.Join(append(secrets, "/etc/shadow"), ":"), "SPY_TCP=" + listener.Addr().String(),
			"SPY_SOCKET=" + database.Addr().String(),
		}
	})
	w.start()
	first, second := w.order("acme", 1, 1), w.order("bolt", 1, 1)
	w.await("both looked around", func() bool { return strings.Count(w.said.String(), "spy: is done") == 2 })
	for _, line := range strings.Split(w.said.String(), "\n") {
		_, what, is := strings.Cut(line, "spy: ")
		if is && !strings.HasPrefix(what, "can ") && !strings.HasPrefix(what, "is done") {
			if strings.HasPrefix(what, "is root") && confined.FirstUser == 0 {
				continue
			}
			t.Error("a provisioner " + what)
		}
	}
	for _, what := range []string{"can write to its folder", "can reach the network"} {
		if n := strings.Count(w.said.String(), "spy: "+what); n != 2 {
			t.Errorf("%d provisioners %s", n, what)
		}
	}
	if confined.FirstUser == 0 {
		return
	}
	users := map[uint32]bool{}
	for _, j := range []job{first, second} {
		info := must(os.Stat(w.layout.Provisioner(j.project).Data()))(t)
		users[info.Sys().(*syscall.Stat_t).Uid] = true
		status := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", w.running(j.project))))(t))
		user := info.Sys().(*syscall.Stat_t).Uid
		if !strings.Contains(status, fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", user, user, user, user)) {
			t.Errorf("the provisioner is not the user %d:\n%s", user, status)
		}
	}
	if len(users) != 2 || users[0] {
		t.Errorf("the users are %v", users)
	}
}

// The service keeps the contract of services.
func TestService(t *testing.T) {
	t.Parallel()
	servicetest.Test(t, func(t *testing.T) service.Service { return newWorld(t, nil).service })
}
