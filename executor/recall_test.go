package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// obedient is a handler that records what it handles and then does what its resource says.
const obedient = `
import os, time
from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource

@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("agent", "name", "what")

@provider("lab::Thing", name="obedient")
class Obedient(CRUDHandler[Thing]):
    def read_resource(self, ctx, resource):
        with open("DIR/ran", "a") as ran: ran.write(resource.name + "\n")
        if resource.what:
            with open("DIR/began", "w") as began: began.write("\n")
        if resource.what == "wait":
            with open("DIR/gate") as gate: gate.read()
        if resource.what == "die": os.kill(os.getpid(), 9)
        if resource.what == "hang": time.sleep(3600)
        if resource.what == "away":
            with open("DIR/leave") as leave: leave.read()
            raise ConnectionRefusedError("nobody there")
        if resource.what == "close": os.close(3)
        with open("DIR/ran", "a") as ran: ran.write("/" + resource.name + "\n")
`

// lineUp has a running process and sends it tasks of one agent: a first one, and others behind it.
type lineUp struct {
	*bench
	dir     string
	blue    intent.Blueprint
	began   *os.File // a pipe into which a task with something to do writes when it begins
	results chan Result
}

func newLineUp(t *testing.T, change func(*Config)) *lineUp {
	t.Helper()
	l := &lineUp{bench: newBench(t, change), dir: t.TempDir(), results: make(chan Result, 10)}
	for _, pipe := range []string{"began", "gate", "leave"} {
		if err := syscall.Mkfifo(filepath.Join(l.dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if l.began, err = os.OpenFile(filepath.Join(l.dir, "began"), os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.began.Close() })
	l.blue = l.module("lab", strings.ReplaceAll(obedient, "DIR", l.dir)).Sealed()
	expect(t, l.Run(t.Context(), task(l.blue, "host", "first", nil)), intent.StatusDeployed)
	l.ran(t, "first", "/first")
	return l
}

// begin sends task a, which does something, and b and c behind it. It returns when a runs.
func (l *lineUp) begin(ctx context.Context, t *testing.T, what string) []Task {
	t.Helper()
	var tasks []Task
	for i, name := range []string{"a", "b", "c"} {
		one := task(l.blue, "host", name, nil)
		if one.Behind = i > 0; i == 0 {
			one = task(l.blue, "host", name, map[string]any{"what": what})
		}
		one.Timeout = time.Minute
		if what == "hang" {
			one.Timeout = 500 * time.Millisecond
		}
		tasks = append(tasks, one)
	}
	l.Begin(ctx, tasks, func(r Result) { l.results <- r })
	l.begins(t)
	return tasks
}

// begins waits until a task with something to do begins.
func (l *lineUp) begins(t *testing.T) {
	t.Helper()
	if _, err := l.began.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// open lets a task continue that waits at a gate.
func (l *lineUp) open(t *testing.T, name string) {
	t.Helper()
	gate, err := os.OpenFile(filepath.Join(l.dir, name), os.O_WRONLY, 0)
	if err == nil {
		err = gate.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lineUp) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// ran compares which tasks began and ended since the last call.
func (l *lineUp) ran(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Fields(l.text(t)); !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "ran"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// outcomes waits for n results and returns them as "name status" or "name withdrawn", sorted.
func (l *lineUp) outcomes(n int) (out []string) {
	for range n {
		r := <-l.results
		word := string(r.Status)
		if r.Withdrawn {
			word = "withdrawn"
		}
		out = append(out, r.Resource.Value+" "+word)
	}
	slices.Sort(out)
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Tasks with Behind begin in the order in which they were sent, each when the one before it has ended.
func TestBehindFollows(t *testing.T) {
	l := newLineUp(t, nil)
	l.begin(t.Context(), t, "wait")
	l.open(t, "gate")
	for _, name := range []string{"a", "b", "c"} {
		r := <-l.results
		if expect(t, r, intent.StatusDeployed); r.Resource.Value != name {
			t.Errorf("got %s, want %s", r.Resource, name)
		}
	}
	// The tasks themselves say in which order they ran; the clocks of two processes cannot.
	l.ran(t, "a", "/a", "b", "/b", "c", "/c")
}

// Recalled tasks that have not begun are given back while the one before them still runs, and never run. The
// lane is free afterwards.
func TestRecall(t *testing.T) {
	l := newLineUp(t, nil)
	tasks := l.begin(t.Context(), t, "wait")
	l.Recall([]intent.ActionID{tasks[0].ID, tasks[1].ID, tasks[2].ID})
	same(t, l.outcomes(2), "b withdrawn", "c withdrawn")
	l.open(t, "gate")
	same(t, l.outcomes(1), "a deployed")
	expect(t, l.Run(t.Context(), task(l.blue, "host", "d", nil)), intent.StatusDeployed)
	l.ran(t, "a", "/a", "d", "/d")
	if n := l.serving()[0].Running; n != 0 {
		t.Errorf("%d run", n)
	}
}

// Whenever Recall is called, each task either ran once or was withdrawn.
func TestRecallAtAnyMoment(t *testing.T) {
	l := newLineUp(t, nil)
	for round := range 60 {
		var tasks []Task
		var ids []intent.ActionID
		for i := range 6 {
			one := task(l.blue, "host", fmt.Sprint("r", round, "n", i), nil)
			one.Behind = i > 0
			tasks, ids = append(tasks, one), append(ids, one.ID)
		}
		done := make(chan Result, len(tasks))
		l.Begin(t.Context(), tasks, func(r Result) { done <- r })
		var early []Result
		for range round % 6 {
			early = append(early, <-done)
		}
		l.Recall(ids)
		var want []string
		for i := range tasks {
			var r Result
			if i < len(early) {
				r = early[i]
			} else {
				r = <-done
			}
			if !r.Withdrawn {
				expect(t, r, intent.StatusDeployed)
				want = append(want, r.Resource.Value, "/"+r.Resource.Value)
			}
		}
		if l.ran(t, want...); t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// When the process dies, hangs or asks to be replaced, the tasks behind did not run and end as withdrawn. The
// next task runs.
func TestBehindAnEnd(t *testing.T) {
	for what, status := range map[string]string{"die": "failed", "hang": "failed", "close": "deployed"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLineUp(t, func(c *Config) { c.HangGrace = 100 * time.Millisecond })
			l.begin(t.Context(), t, what)
			same(t, l.outcomes(3), "a "+status, "b withdrawn", "c withdrawn")
			expect(t, l.Run(t.Context(), task(l.blue, "host", "d", nil)), intent.StatusDeployed)
			if what == "close" {
				l.ran(t, "a", "/a", "d", "/d")
			} else {
				l.ran(t, "a", "d", "/d")
			}
		})
	}
}

// When a target cannot be reached, the tasks behind on its agent are given back without a try. Those of another
// agent go on.
func TestBehindATargetThatIsAway(t *testing.T) {
	l := newLineUp(t, nil)
	expect(t, l.Run(t.Context(), task(l.blue, "other", "x", nil)), intent.StatusDeployed)
	l.ran(t, "x", "/x")
	var tasks []Task
	for _, at := range []struct{ agent, name, what string }{
		{"other", "x", "wait"}, {"other", "y", ""}, {"host", "a", "away"}, {"host", "b", ""}, {"host", "c", ""},
	} {
		one := task(l.blue, at.agent, at.name, map[string]any{"what": at.what})
		one.Behind = at.name != "x" && at.name != "a"
		tasks = append(tasks, one)
	}
	l.Begin(t.Context(), tasks, func(r Result) { l.results <- r })
	l.open(t, "leave") // now that those behind it were sent
	same(t, l.outcomes(3), "a unavailable", "b withdrawn", "c withdrawn")
	l.open(t, "gate")
	same(t, l.outcomes(2), "x deployed", "y deployed")
}

// A task with Behind begins at once when none is before it any more, and further
// ones wait for it. It is withdrawn when its agent has no seat in a process.
func TestBehindNothing(t *testing.T) {
	l := newLineUp(t, nil)
	var tasks []Task
	for _, at := range []struct{ agent, name, what string }{
		{"host", "a", "wait"}, {"host", "b", ""}, {"other", "c", ""},
	} {
		one := task(l.blue, at.agent, at.name, map[string]any{"what": at.what})
		one.Behind = true
		tasks = append(tasks, one)
	}
	l.Begin(t.Context(), tasks, func(r Result) { l.results <- r })
	same(t, l.outcomes(1), "c withdrawn")
	l.Recall([]intent.ActionID{tasks[1].ID})
	same(t, l.outcomes(1), "b withdrawn")
	l.open(t, "gate")
	same(t, l.outcomes(1), "a deployed")
	l.ran(t, "a", "/a")
}

// When the context ends, results come at once and no further task begins.
func TestBehindCancelled(t *testing.T) {
	l := newLineUp(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	tasks := l.begin(ctx, t, "wait")
	cancel()
	for range tasks {
		if r := <-l.results; r.Status == intent.StatusDeployed {
			t.Errorf("%+v", r)
		}
	}
	for l.serving()[0].Running > 1 { // until they are given back
		time.Sleep(time.Millisecond)
	}
	l.open(t, "gate")
	expect(t, l.Run(t.Context(), task(l.blue, "host", "d", nil)), intent.StatusDeployed)
	l.ran(t, "a", "/a", "d", "/d")
}
