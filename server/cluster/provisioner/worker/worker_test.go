package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
	"ordain.dev/ordain/server/cluster/task"
)

// provider is a provider plug-in that a test writes as one function.
type provider func(context.Context, plugin.Call) (plugin.Result, error)

func (p provider) Create(ctx context.Context, c plugin.Call) (plugin.Result, error) { return p(ctx, c) }
func (p provider) Confirm(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p(ctx, c)
}
func (p provider) Delete(ctx context.Context, c plugin.Call) (plugin.Result, error) { return p(ctx, c) }

// automator likewise.
type automator func(context.Context, plugin.Call) (plugin.Result, error)

func (a automator) Bootstrap(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return a(ctx, c)
}
func (a automator) Run(ctx context.Context, c plugin.Call) (plugin.Result, error) { return a(ctx, c) }

func plugins(p provider) worker.Plugins {
	return worker.Plugins{Providers: map[string]plugin.Provider{"test": p}}
}

func newTask(action task.Action) task.Task {
	id := uuid.New()
	return task.Task{ID: id, Fence: 1, Attempt: 1, Action: action, Tag: id.String(), TimeoutMS: 60_000,
		Provider: task.Provider{Type: "test"}}
}

// A provider makes a machine: it finds its key as a file that only its owner may read, what it prints arrives with
// all secrets masked, declared or not, and what it has learned arrives unchanged.
func TestCreate(t *testing.T) {
	d := newDesk(t, time.Minute)
	create := newTask(task.Create)
	hash, size := d.store("the key")
	create.Resources = []task.Resource{{Kind: "providertypes", Plugin: "test", Type: "ssh_keys", Name: "team",
		Format: "file", Permissions: "0400", Hash: hash, Size: size},
		{
			Kind:   "providertypes",
			Plugin: "other",
			Type:   "ssh_keys",
			Name:   "theirs",
			Format: "file",
			Hash:   hash,
			Size:   size,
		}}
	create.Secrets = []string{"declared-value"}
	create.Provider.Fields = task.Fields{
		"api_password": json.RawMessage(`"hidden-value"`),
		"url":          json.RawMessage(`"https://x"`),
	}
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		path, err := c.Files.Path("ssh_keys", "team")
		if err != nil {
			return plugin.Result{}, err
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o400 {
			t.Errorf("the key: %v, %v", info, err)
		}
		if _, err := c.Files.Path("ssh_keys", "theirs"); err == nil || !strings.Contains(err.Error(), "team") {
			t.Errorf("the key of another plug-in: %v", err)
		}
		if found, err := os.ReadDir(c.Work); err != nil || len(found) != 0 {
			t.Errorf("the folder of the call has %v, %v", found, err)
		}
		fmt.Fprint(c.Out, "declared-")
		fmt.Fprint(c.Out, "value, hidden-value, made-up-value, https://x\n")
		return plugin.Result{Hostname: "h", Addresses: map[string]string{"access_v4": "10.0.0.1"},
			Facts: task.Fields{
				"providerid": json.RawMessage(`"i-1"`),
			}, Secret: task.Fields{"root": json.RawMessage(`"made-up-value"`)}}, nil
	}), 1, nil)
	d.add(create)
	r := d.result(create.ID)
	if r.Status != task.Done || r.Hostname != "h" || r.Addresses["access_v4"] != "10.0.0.1" ||
		string(r.Facts["providerid"]) != `"i-1"` || string(r.Secret["root"]) != `"made-up-value"` {
		t.Errorf("%+v", r)
	}
	if want := "*****, *****, *****, https://x\n"; r.Output != want || d.printed(create.ID) != want {
		t.Errorf("the record has %q, and streamed was %q", r.Output, d.printed(create.ID))
	}
}

// A create that fails may have left a machine: what the provider knows of it is kept. Nothing else of the result is.
func TestFactsOfAFailure(t *testing.T) {
	d := newDesk(t, time.Minute)
	d.start(plugins(func(context.Context, plugin.Call) (plugin.Result, error) {
		return plugin.Result{Hostname: "h", Facts: task.Fields{"provider_account": json.RawMessage(`"1"`)},
			Secret: task.Fields{"root": json.RawMessage(`"made-up-value"`)}}, errors.New("no answer: made-up-value")
	}), 1, nil)
	create := newTask(task.Create)
	d.add(create)
	r := d.result(create.ID)
	if r.Status != task.Failed || string(r.Facts["provider_account"]) != `"1"` || r.Hostname != "" ||
		r.Secret != nil || r.Problem != "no answer: *****" {
		t.Errorf("%+v", r)
	}
}

// A bootstrap prepares the node for each automator in turn; a failure names the automator.
func TestBootstrap(t *testing.T) {
	d := newDesk(t, time.Minute)
	ok := automator(func(_ context.Context, c plugin.Call) (plugin.Result, error) {
		fmt.Fprintln(c.Out, "prepared")
		return plugin.Result{Facts: task.Fields{"shell": json.RawMessage("1")}}, nil
	})
	bad := automator(func(context.Context, plugin.Call) (plugin.Result, error) {
		return plugin.Result{}, plugin.Refuse("wrong credential")
	})
	d.start(worker.Plugins{Automators: map[string]plugin.Automator{"shell": ok, "docker": ok, "bad": bad}}, 2, nil)
	good, broken, run := newTask(task.Bootstrap), newTask(task.Bootstrap), newTask(task.Install)
	good.Automators, broken.Automators = []string{"shell", "docker"}, []string{"shell", "bad"}
	run.Service = &task.Service{Name: "web", Type: "shell"}
	d.add(good, broken, run)
	if r := d.result(good.ID); r.Status != task.Done || r.Output != "prepared\nprepared\n" || len(r.Facts) != 1 {
		t.Errorf("%+v", r)
	}
	if r := d.result(broken.ID); r.Status != task.Refused || !strings.Contains(r.Problem, "bad: wrong credential") {
		t.Errorf("%+v", r)
	}
	if r := d.result(run.ID); r.Status != task.Done {
		t.Errorf("%+v", r)
	}
}

// Plug-ins panic, end their goroutine, never return, take too long, return nonsense or do not exist; the worker
// reports each of them and goes on.
func TestContained(t *testing.T) {
	d := newDesk(t, time.Minute)
	let := make(chan struct{})
	defer close(let)
	l := d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		switch c.Tag {
		case "panics":
			var nothing *plugin.Call
			_ = nothing.Work
		case "hangs":
			<-let
		case "slow":
			<-ctx.Done()
			return plugin.Result{}, ctx.Err()
		case "no json":
			return plugin.Result{Facts: task.Fields{"x": json.RawMessage("{")}}, nil
		case "large":
			return plugin.Result{
				Facts: task.Fields{"x": json.RawMessage(`"` + strings.Repeat("x", task.MaxFacts) + `"`)},
			}, nil
		case "talks":
			return plugin.Result{}, errors.New("begin" + strings.Repeat("x", 10*task.MaxProblem) + "end\x00\xff")
		}
		return plugin.Result{}, nil
	}), 3, func(c *worker.Config) { c.Hang = 20 * time.Millisecond })
	for tag, problem := range map[string]string{
		"panics": "panicked", "hangs": "does not end", "slow": "longer than it may", "no json": "not JSON",
		"large": "256 KiB is the limit", "talks": "end\uFFFD", "fine": "",
	} {
		one := newTask(task.Create)
		one.Tag, one.TimeoutMS = tag, 5000
		if tag == "hangs" || tag == "slow" {
			one.TimeoutMS = 50
		}
		d.add(one)
		r := d.result(one.ID)
		if want := map[bool]task.Status{true: task.Done, false: task.Failed}[problem == ""]; r.Status != want ||
			!strings.Contains(r.Problem, problem) || len(r.Problem) > task.MaxProblem+8 {
			t.Errorf("%s: %s, %s", tag, r.Status, r.Problem)
		}
	}
	if !l.has("runtime error") {
		t.Error("the log does not have the stack of the panic")
	}
	unknown, missing := newTask("dance"), newTask(task.Create)
	missing.Provider.Type = "elsewhere"
	d.add(unknown, missing)
	if r := d.result(unknown.ID); r.Status != task.Refused || !strings.Contains(r.Problem, "dance") {
		t.Errorf("%+v", r)
	}
	if r := d.result(missing.ID); r.Status != task.Failed || !strings.Contains(r.Problem, "elsewhere") {
		t.Errorf("%+v", r)
	}
}

// While a provider works, the desk gives the task to somebody else. The attempt is ended at once, its answer goes
// nowhere, and when the task comes back here, the new attempt begins after the old one has ended.
func TestLostLease(t *testing.T) {
	d := newDesk(t, 300*time.Millisecond)
	started := make(chan int64, 10)
	var at atomic.Int32
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		if at.Add(1) != 1 {
			t.Error("two attempts of one task at a time")
		}
		defer at.Add(-1)
		started <- c.Fence
		if c.Fence == 1 {
			<-ctx.Done()
			_, _ = io.WriteString(c.Out, "too late")
			return plugin.Result{Hostname: "old"}, nil // as if it had not noticed
		}
		return plugin.Result{Hostname: "new"}, nil
	}), 2, nil)
	one := newTask(task.Create)
	d.add(one)
	<-started
	d.takeAway(one.ID, true)
	if r := d.result(one.ID); r.Hostname != "new" || r.Fence != 2 {
		t.Errorf("%+v", r)
	}
	if len(d.dropped) != 0 {
		t.Errorf("the worker sent %+v, although it knew that the lease was gone", d.dropped)
	}
}

// The desk gives a task to another provisioner for good. This one learns it from its next renewal, ends the attempt and
// sends nothing; the task next to it is not disturbed.
func TestGone(t *testing.T) {
	d := newDesk(t, 600*time.Millisecond)
	started, let := make(chan struct{}, 2), make(chan struct{})
	reason := make(chan error, 1)
	l := d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		started <- struct{}{}
		select {
		case <-ctx.Done():
			reason <- context.Cause(ctx)
		case <-let:
		}
		return plugin.Result{}, nil
	}), 2, nil)
	lost, kept := newTask(task.Create), newTask(task.Create)
	d.add(lost, kept)
	<-started
	<-started
	d.takeAway(lost.ID, false)
	if err := <-reason; !strings.Contains(err.Error(), "given to another provisioner") {
		t.Error(err)
	}
	close(let)
	if r := d.result(kept.ID); r.Status != task.Done || r.Fence != 1 {
		t.Errorf("%+v", r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.results) != 1 || len(d.dropped) != 0 || !l.has("dropped") {
		t.Errorf("%+v, %+v", d.results, d.dropped)
	}
}

// The lease goes elsewhere just before the answer: the worker cannot know, and the desk drops the answer.
func TestLateAnswer(t *testing.T) {
	d := newDesk(t, time.Minute)
	started, let := make(chan struct{}), make(chan struct{})
	l := d.start(plugins(func(context.Context, plugin.Call) (plugin.Result, error) {
		close(started)
		<-let
		return plugin.Result{}, nil
	}), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	<-started
	d.takeAway(one.ID, false)
	close(let)
	d.until("the answer is dropped", func() bool { return len(d.dropped) == 1 })
	if len(d.results) != 0 || d.dropped[0].Fence != 1 {
		t.Errorf("%+v", d.results)
	}
	deadline := time.Now().Add(patience)
	for !l.has("went elsewhere") && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if !l.has("went elsewhere") {
		t.Error("the log does not say so")
	}
}

// The server is away for longer than a lease lasts: the attempt is ended when its lease is over, although nobody could
// say so, and the task is done when the server is back. A server that is back in time costs nothing.
func TestServerAway(t *testing.T) {
	d := newDesk(t, 400*time.Millisecond)
	started, ended := make(chan time.Time, 10), make(chan time.Time, 10)
	let := make(chan struct{})
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		started <- time.Now()
		select {
		case <-ctx.Done():
			ended <- time.Now()
			return plugin.Result{}, ctx.Err()
		case <-let:
			return plugin.Result{}, nil
		}
	}), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	<-started
	d.change(func() { d.away = true })
	away := time.Now()
	at := <-ended
	if took := at.Sub(away); took < 100*time.Millisecond || took > time.Minute {
		t.Errorf("the attempt was ended after %s", took)
	}
	d.change(func() { d.away = false })
	<-started
	close(let)
	if r := d.result(one.ID); r.Status != task.Done || r.Fence < 2 {
		t.Errorf("%+v", r)
	}
}

// The server is away when a task ends, and back before its lease is over: the result arrives.
func TestServerAwayAtTheEnd(t *testing.T) {
	d := newDesk(t, time.Minute)
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		d.change(func() { d.away = true })
		return plugin.Result{}, nil
	}), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	d.untilAsked(task.FinishPath, 2)
	d.change(func() { d.away = false })
	if r := d.result(one.ID); r.Status != task.Done || r.Fence != 1 {
		t.Errorf("%+v", r)
	}
}

// untilAsked waits for requests, which by themselves change nothing.
func (d *desk) untilAsked(path string, n int) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		d.mu.Lock()
		asked := d.asked[path]
		d.mu.Unlock()
		if asked >= n {
			return
		}
	}
	d.t.Fatalf("%s was not asked %d times", path, n)
}

// A thousand tasks that do nothing take little time and few requests: results travel together.
func TestThousand(t *testing.T) {
	d := newDesk(t, time.Minute)
	d.start(
		plugins(func(context.Context, plugin.Call) (plugin.Result, error) { return plugin.Result{}, nil }),
		100,
		nil,
	)
	tasks := make([]task.Task, 1000)
	for i := range tasks {
		tasks[i] = newTask(task.Confirm)
	}
	began := time.Now()
	d.add(tasks...)
	d.until("all are done", func() bool { return len(d.results) == len(tasks) })
	took := time.Since(began)
	t.Logf("%d tasks in %s; %d takes, %d finishes", len(tasks), took, d.count(task.TakePath), d.count(task.FinishPath))
	if took > time.Minute || d.count(task.FinishPath) > 600 {
		t.Errorf("that took %s and %d requests to finish", took, d.count(task.FinishPath))
	}
}

// No more tasks run than there is room for.
func TestRoom(t *testing.T) {
	d := newDesk(t, time.Minute)
	var at, most atomic.Int32
	d.start(plugins(func(context.Context, plugin.Call) (plugin.Result, error) {
		n := at.Add(1)
		defer at.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return plugin.Result{}, nil
	}), 5, nil)
	for range 50 {
		d.add(newTask(task.Create))
	}
	d.until("all are done", func() bool { return len(d.results) == 50 })
	if most.Load() > 5 {
		t.Errorf("%d tasks at a time", most.Load())
	}
}

// What a task prints over a while arrives while it runs, in order and complete.
func TestOutputInOrder(t *testing.T) {
	d := newDesk(t, time.Minute)
	streamed := make(chan struct{})
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		for i := range 2000 {
			fmt.Fprintf(c.Out, "%d – ", i)
			if i == 1000 {
				select {
				case <-streamed:
				case <-ctx.Done():
				}
			}
		}
		return plugin.Result{}, nil
	}), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		d.mu.Lock()
		text := d.output[one.ID]
		d.mu.Unlock()
		if strings.HasSuffix(text, "1000 – ") {
			break
		}
	}
	close(streamed)
	r := d.result(one.ID)
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&want, "%d – ", i)
	}
	d.mu.Lock()
	streamedText, asked := d.output[one.ID], d.asked[task.OutputPath]
	d.mu.Unlock()
	if streamedText != want.String() || r.Output != want.String() {
		t.Errorf("streamed were %d bytes, the record has %d, want %d", len(streamedText), len(r.Output), want.Len())
	}
	if n := asked; n > 20 {
		t.Errorf("the output came in %d requests", n)
	}
}

// Two tasks use one archive at the same time: it is fetched once. A content that is not the one with the hash is
// refused.
func TestResources(t *testing.T) {
	d := newDesk(t, time.Minute)
	var paths [2]string
	d.start(plugins(func(_ context.Context, c plugin.Call) (plugin.Result, error) {
		path, err := c.Files.Path("scripts", "run.sh")
		if err != nil {
			return plugin.Result{}, err
		}
		paths[c.Attempt] = path
		return plugin.Result{}, nil
	}), 4, nil)
	hash, size := d.store("#!/bin/sh")
	r := task.Resource{Kind: "providertypes", Plugin: "test", Type: "scripts", Name: "run.sh", Format: "file",
		Permissions: "0555", Hash: hash, Size: size}
	a, b, c := newTask(task.Create), newTask(task.Create), newTask(task.Create)
	a.Attempt, b.Attempt = 0, 1
	wrong, _ := d.store("something")
	d.change(func() { d.contents[wrong] = []byte("somethinG") })
	bad := r
	bad.Hash, bad.Size = wrong, int64(len("something"))
	a.Resources, b.Resources, c.Resources = []task.Resource{r}, []task.Resource{r}, []task.Resource{bad}
	d.add(a, b, c)
	d.until("all are done", func() bool { return len(d.results) == 3 })
	if paths[0] == "" || paths[0] != paths[1] || filepath.Base(paths[0]) != "run.sh" {
		t.Errorf("%v", paths)
	}
	if d.count(task.ResourcePath) != 2 {
		t.Errorf("contents were fetched %d times", d.count(task.ResourcePath))
	}
	if got := d.got(c.ID); got.Status != task.Failed || !strings.Contains(got.Problem, "hash") {
		t.Errorf("%+v", got)
	}
}

// The desk refuses one of many results: the others arrive, and so does a failure in place of the bad one.
func TestRefusedResult(t *testing.T) {
	d := newDesk(t, time.Minute)
	d.refuse = func(r task.Result) bool { return r.Hostname == "bad" }
	release := make(chan struct{})
	d.start(plugins(func(_ context.Context, c plugin.Call) (plugin.Result, error) {
		<-release
		return plugin.Result{Hostname: c.Tag}, nil
	}), 10, nil)
	var bad uuid.UUID
	for i := range 10 {
		one := newTask(task.Create)
		if one.Tag = "good"; i == 4 {
			one.Tag, bad = "bad", one.ID
		}
		d.add(one)
	}
	close(release)
	d.until("all are done", func() bool { return len(d.results) == 10 })
	for id, r := range d.results {
		if want := map[bool]task.Status{true: task.Failed, false: task.Done}[id == bad]; r.Status != want {
			t.Errorf("%+v", r)
		}
	}
}

// Stop lets a task finish that can, cuts one off that cannot, and takes no more. Both results arrive.
func TestStop(t *testing.T) {
	d := newDesk(t, time.Minute)
	started := make(chan struct{}, 2)
	let := make(chan struct{})
	w, _ := d.newWorker(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		started <- struct{}{}
		if c.Tag == "slow" {
			<-ctx.Done()
			return plugin.Result{}, ctx.Err()
		}
		<-let
		return plugin.Result{}, nil
	}), 5, func(c *worker.Config) { c.Grace = 100 * time.Millisecond })
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow, quick := newTask(task.Create), newTask(task.Create)
	slow.Tag = "slow"
	d.add(slow, quick)
	<-started
	<-started
	stopped := make(chan struct{})
	go func() {
		w.Stop()
		close(stopped)
	}()
	close(let)
	<-stopped
	if r := d.got(quick.ID); r.Status != task.Done {
		t.Errorf("%+v", r)
	}
	if r := d.got(slow.ID); r.Status != task.Failed || !strings.Contains(r.Problem, "stopped") {
		t.Errorf("%+v", r)
	}
}

// The server that started a provisioner is gone. The provisioner ends at once, although its tasks would have time, and
// sends nothing any more.
func TestLost(t *testing.T) {
	d := newDesk(t, time.Minute)
	started, lost := make(chan struct{}), make(chan struct{})
	w, _ := d.newWorker(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		close(started)
		<-ctx.Done()
		return plugin.Result{}, ctx.Err()
	}), 5, func(c *worker.Config) { c.Grace, c.Lost = time.Hour, lost })
	d.add(newTask(task.Create))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	<-started
	close(lost)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.results) > 0 {
		t.Errorf("it sent %+v", d.results)
	}
}

// A provisioner that is asked to work for another project ends.
func TestAnotherProject(t *testing.T) {
	d := newDesk(t, time.Minute)
	w, _ := d.newWorker(plugins(nil), 1, nil)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	d.untilAsked(task.TakePath, 1)
	d.change(func() { d.project, d.away = "q", true })
	d.http.CloseClientConnections()
	d.untilAsked(task.HelloPath, 2)
	d.change(func() { d.away = false })
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "project q") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it works for another project")
	}
}

func TestService(t *testing.T) {
	servicetest.Test(t, func(t *testing.T) service.Service {
		w, _ := newDesk(t, time.Minute).newWorker(plugins(nil), 1, nil)
		return w
	})
}

// Output that is on its way when a task ends arrives, and is not said to be left out.
func TestOutputOnItsWayIsNotCutOff(t *testing.T) {
	d := newDesk(t, time.Minute)
	taken := make(chan struct{})
	var once sync.Once
	d.late = func() {
		once.Do(func() {
			close(taken)
			time.Sleep(300 * time.Millisecond) // a slow network, meanwhile the task ends
		})
	}
	d.start(plugins(func(ctx context.Context, c plugin.Call) (plugin.Result, error) {
		fmt.Fprintln(c.Out, "first")
		select {
		case <-taken:
		case <-ctx.Done():
		}
		fmt.Fprintln(c.Out, "last")
		return plugin.Result{}, nil
	}), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	r := d.result(one.ID)
	if want := "first\nlast\n"; d.printed(one.ID) != want || r.Output != want {
		t.Errorf("streamed was %q, and the record has %q", d.printed(one.ID), r.Output)
	}
}
