package process_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	os.Exit(parallel.Wide(m, 3).Run())
}

// server stands for all environments.
var server intent.EnvironmentID

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// quick makes an engine whose pauses and leases are short.
func quick(t testing.TB, s process.Record, definitions ...process.Definition) *process.Engine {
	t.Helper()
	e := get(process.New(process.Config{
		Record: s, Bus: &bus.Bus{}, Logger: storetest.Logger(t), Definitions: definitions,
		Lease: time.Second, Sweep: 50 * time.Millisecond, Grace: 100 * time.Millisecond,
		Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	}))(t)
	t.Cleanup(e.Stop)
	return e
}

// await waits until a process is as the condition wants it.
func await(t testing.TB, s *store.Store, id int64, what string, is func(intent.Process) bool) intent.Process {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		p, err := s.Process(t.Context(), server, id)
		if err == nil && is(p) {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %+v %v", what, p, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func awaitState(t testing.TB, s *store.Store, id int64, state intent.ProcessState) intent.Process {
	t.Helper()
	return await(t, s, id, string(state), func(p intent.Process) bool { return p.State == state })
}

func stateOf(t testing.TB, s *store.Store, id string) string {
	t.Helper()
	return get(s.ResourceState(t.Context(), intent.ProcessResource{Type: "thing", ID: id}))(t)
}

// step is a handler that calls do, which may be nil.
func step(name string, do func(ctx context.Context, r *process.Run) error) process.Handler {
	if do == nil {
		do = func(context.Context, *process.Run) error { return nil }
	}
	return process.Handler{Name: name, Do: do}
}

func begin(t testing.TB, e *process.Engine, name, resource string) int64 {
	t.Helper()
	return get(e.Schedule(t.Context(), process.Intention{Process: name, Resource: resource, By: "ida"}))(t)
}

func create(main ...process.Handler) process.Definition {
	return process.Definition{
		Name: "thing.create", Resource: "thing",
		Paths:  process.Paths([]string{"", "inactive"}, "registering", "active"),
		Failed: "error", Main: main, Attempts: 3,
	}
}

func remove(main ...process.Handler) process.Definition {
	return process.Definition{
		Name: "thing.remove", Resource: "thing",
		Paths:  process.Paths([]string{"registering", "active", "inactive", "error"}, "removing", "removed"),
		Failed: "error", Main: main, Attempts: 3,
	}
}

// A process takes its resource through its states, its handlers in order, and what they learn from one to the next;
// what may not begin is refused, and nothing of it is recorded.
func TestFromIntentionToDone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var story []string
	var during string
	e := quick(t, s, process.Definition{
		Name: "thing.create", Resource: "thing", Failed: "error",
		Paths: process.Paths([]string{""}, "registering", "active"),
		Pre: []process.Handler{step("check", func(_ context.Context, r *process.Run) error {
			story = append(story, "check "+r.Process().Resource.ID)
			return r.Set("seen", 7)
		})},
		Main: []process.Handler{step("make", func(_ context.Context, r *process.Run) error {
			var seen int
			story = append(story, "make")
			during = stateOf(t, s, "a")
			if err := r.Get("seen", &seen); err != nil || seen != 7 {
				return process.Never(errors.New("forgotten"))
			}
			return nil
		})},
		Post: []process.Handler{step("tell", func(context.Context, *process.Run) error {
			story = append(story, "tell")
			return nil
		})},
		Then: "thing.greet",
	}, process.Definition{Name: "thing.greet", Resource: "thing", Main: []process.Handler{step("greet", nil)}})
	id := begin(t, e, "thing.create", "a") // nothing runs yet
	if p := get(s.Process(t.Context(), server, id))(t); p.State != intent.ProcessWaiting ||
		stateOf(t, s, "a") != "registering" {
		t.Fatalf("%+v", p)
	}
	must(t, e.Start(t.Context()))
	p := awaitState(t, s, id, intent.ProcessDone)
	if got := strings.Join(story, ", "); got != "check a, make, tell" || during != "registering" ||
		stateOf(t, s, "a") != "active" || p.Attempts != 1 || p.MadeBy != "ida" ||
		p.Reason != "continued with thing.greet" {
		t.Errorf("%s, %s; %+v", got, during, p)
	}
	_, err := e.Schedule(t.Context(), process.Intention{Process: "thing.create", Resource: "a"})
	if !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "thing a is active; thing.create begins when it is new") {
		t.Error(err)
	}
	counts := get(s.CountProcesses(t.Context(), server))(t)
	all := get(s.Processes(t.Context(), server, intent.ListQuery{}))(t)
	if len(all.Items) != 2 || counts.Dead != 0 {
		t.Errorf("%+v %+v", counts, all.Items)
	}
}

// A process that fails is tried again after the last handler that finished, dies when its attempts run out, and goes on
// from there when a person retries it.
func TestAttemptsRunOutAndAPersonRetries(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var firsts, seconds int
	var repaired bool
	e := quick(t, s, create(
		step("first", func(context.Context, *process.Run) error { firsts++; return nil }),
		step("second", func(context.Context, *process.Run) error {
			if seconds++; !repaired {
				if seconds == 2 {
					panic("no such host")
				}
				return errors.New("no such host")
			}
			return nil
		})))
	must(t, e.Start(t.Context()))
	id := begin(t, e, "thing.create", "a")
	p := awaitState(t, s, id, intent.ProcessDead)
	if p.Attempts != 3 || firsts != 1 || seconds != 3 || p.Phase != "first" || p.Reason != "its attempts ran out" ||
		p.Problem != "no such host" || stateOf(t, s, "a") != "error" {
		t.Fatalf("%d %d %+v", firsts, seconds, p)
	}
	e.Stop()
	repaired = true
	must(t, s.RetryProcess(t.Context(), server, id))
	if stateOf(t, s, "a") != "registering" {
		t.Error("the resource is not in its transitional state")
	}
	must(t, e.Start(t.Context()))
	p = awaitState(t, s, id, intent.ProcessDone)
	if p.Attempts != 1 || firsts != 1 || stateOf(t, s, "a") != "active" {
		t.Errorf("%d %+v", firsts, p)
	}
	if err := s.RetryProcess(t.Context(), server, id); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// What can never succeed, and what takes too long, is not tried for ever.
func TestSomeProcessesDieAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	never := create(step("refused", func(context.Context, *process.Run) error {
		return process.Never(errors.New("wrong token"))
	}))
	long := process.Definition{
		Name: "thing.wait", Resource: "thing", Deadline: 200 * time.Millisecond, Attempts: 1000,
		Paths: process.Paths([]string{""}, "waiting", "waited"), Failed: "gave up",
		Main: []process.Handler{step("wait", func(ctx context.Context, _ *process.Run) error {
			<-ctx.Done()
			return ctx.Err()
		})},
	}
	e := quick(t, s, never, long)
	late := begin(t, e, "thing.wait", "c") // nobody runs it in time
	time.Sleep(250 * time.Millisecond)
	must(t, e.Start(t.Context()))
	refused, slow := begin(t, e, "thing.create", "a"), begin(t, e, "thing.wait", "b")
	if p := awaitState(t, s, refused, intent.ProcessDead); p.Attempts != 1 || p.Problem != "wrong token" {
		t.Errorf("%+v", p)
	}
	for _, id := range []int64{slow, late} {
		if p := awaitState(t, s, id, intent.ProcessDead); p.Reason != "its time ran out" {
			t.Errorf("%+v", p)
		}
	}
	if stateOf(t, s, "b") != "gave up" || stateOf(t, s, "c") != "gave up" {
		t.Error("a resource stays in its transitional state")
	}
}

// A process is cancelled by a person while it waits and while it runs; its resource returns to the state that it had.
func TestPeopleCancel(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	begun, fail := make(chan bool), make(chan bool)
	e := quick(t, s, create(step("wait", func(ctx context.Context, _ *process.Run) error {
		begun <- true
		<-ctx.Done()
		return ctx.Err()
	})), process.Definition{
		Name: "thing.fail", Resource: "thing",
		Main: []process.Handler{step("fail", func(context.Context, *process.Run) error {
			begun <- true
			<-fail
			return errors.New("not yet")
		})},
	})
	waiting := begin(t, e, "thing.create", "a")
	must(t, s.CancelProcess(t.Context(), server, waiting, "ida"))
	p := get(s.Process(t.Context(), server, waiting))(t)
	if p.State != intent.ProcessCancelled || p.Reason != "cancelled by ida" || stateOf(t, s, "a") != "" {
		t.Errorf("%+v", p)
	}
	must(t, e.Start(t.Context()))
	running := begin(t, e, "thing.create", "a")
	<-begun
	must(t, s.CancelProcess(t.Context(), server, running, "ida"))
	p = awaitState(t, s, running, intent.ProcessCancelled)
	if p.Reason != "cancelled by ida" || stateOf(t, s, "a") != "" {
		t.Errorf("%+v", p)
	}
	if err := s.CancelProcess(t.Context(), server, running, "ida"); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	failing := begin(t, e, "thing.fail", "a")
	<-begun
	must(t, s.CancelProcess(t.Context(), server, failing, "ida"))
	fail <- true // before anybody told the handler
	if p := awaitState(t, s, failing, intent.ProcessCancelled); p.Attempts != 1 || p.Reason != "cancelled by ida" {
		t.Errorf("%+v", p)
	}
}

// A process that moves its resource on ends those that worked towards another state, whether they wait or run; and a
// process continues as another one where that is declared.
func TestAnotherProcessTakesItsPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	begun := make(chan bool)
	definition := create(step("wait", func(ctx context.Context, r *process.Run) error {
		if r.Process().Resource.ID == "b" {
			return errors.New("not yet")
		}
		begun <- true
		<-ctx.Done()
		return ctx.Err()
	}))
	definition.Attempts = 1000
	e := quick(t, s, definition, remove(step("remove", nil)))
	must(t, e.Start(t.Context()))
	running, waiting := begin(t, e, "thing.create", "a"), begin(t, e, "thing.create", "b")
	<-begun
	await(t, s, waiting, "a second attempt", func(p intent.Process) bool { return p.Attempts > 1 })
	for _, resource := range []string{"a", "b"} {
		id := begin(t, e, "thing.remove", resource)
		awaitState(t, s, id, intent.ProcessDone)
		if got := stateOf(t, s, resource); got != "removed" {
			t.Errorf("%s is %s", resource, got)
		}
	}
	for _, id := range []int64{running, waiting} {
		if p := awaitState(t, s, id, intent.ProcessCancelled); !strings.Contains(p.Reason, "took its place") {
			t.Errorf("%+v", p)
		}
	}
}

// One that may begin in the state which ends another continues it.
func TestAProcessContinuesAsItsDelegate(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.URL(t))
	first := create(step("never", func(context.Context, *process.Run) error { return errors.New("it ran") }))
	first.Delegate = "thing.remove"
	e := quick(t, s, first, remove(step("remove", nil)))
	id := begin(t, e, "thing.create", "a")
	exec(t, s, "UPDATE process_resource SET state = 'inactive'") // something else moved it
	must(t, e.Start(t.Context()))
	if p := awaitState(t, s, id, intent.ProcessCancelled); p.Reason != "continued as thing.remove" {
		t.Errorf("%+v", p)
	}
	awaitState(t, s, id+1, intent.ProcessDone)
}

// A process without an end says when it wants to run again; newer work of the same kind is merged with it while it
// waits; one with a schedule needs nobody to begin it.
func TestWorkThatRepeatsItself(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ran := make(chan int, 100)
	e := quick(t, s, process.Definition{
		Name: "thing.look", Resource: "thing", Single: true,
		Main: []process.Handler{step("look", func(_ context.Context, r *process.Run) error {
			var n int
			must(t, r.Get("n", &n))
			ran <- n
			if n < 3 {
				return process.Again(time.Now().Add(time.Hour))
			}
			return nil
		})},
	}, process.Definition{
		Name: "thing.tidy", Resource: "thing", Schedule: "@every 1s",
		Main: []process.Handler{step("tidy", func(context.Context, *process.Run) error { ran <- 100; return nil })},
	})
	look := func(n int) int64 {
		return get(e.Schedule(t.Context(), process.Intention{
			Process: "thing.look", Resource: "a", Data: map[string]any{"n": n},
		}))(t)
	}
	id := look(1)
	if again := look(2); again != id {
		t.Errorf("%d and %d wait", id, again)
	}
	must(t, e.Start(t.Context()))
	if n := <-ran; n != 2 {
		t.Errorf("it ran with %d", n)
	}
	await(t, s, id, "the pause", func(p intent.Process) bool {
		return p.State == intent.ProcessWaiting && p.Attempts == 0
	})
	if again := look(3); again != id {
		t.Errorf("%d and %d wait", id, again)
	}
	seen := map[int]int{}
	for seen[3] < 1 || seen[100] < 2 {
		seen[<-ran]++
	}
	awaitState(t, s, id, intent.ProcessDone)
}

// The engine keeps to the contract of services, and refuses definitions that make no sense.
func TestTheEngineIsAService(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	servicetest.Test(t, func(t *testing.T) service.Service { return quick(t, s, create(step("x", nil))) })
	fine := create(step("x", nil))
	for wrong, change := range map[string]func(*process.Definition){
		"no handler":              func(d *process.Definition) { d.Main = nil },
		"no name of its own":      func(d *process.Definition) { d.Pre = d.Main },
		"state for when the":      func(d *process.Definition) { d.Failed = "" },
		"needs a deadline":        func(d *process.Definition) { d.Deadline = -1 },
		"is no process thing.not": func(d *process.Definition) { d.CancelledBy = []string{"thing.not"} },
		"not one way":             func(d *process.Definition) { d.Paths = append(d.Paths, d.Paths[0]) },
		"cannot be repeated":      func(d *process.Definition) { d.Schedule = "now and then" },
	} {
		d := fine
		change(&d)
		_, err := process.New(process.Config{
			Record: s, Bus: &bus.Bus{}, Logger: storetest.Logger(t), Definitions: []process.Definition{d},
		})
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A process that is declared to end another one does so, though neither moves a state.
func TestDeclaredCancellation(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	begun := make(chan bool, 1)
	e := quick(t, s, process.Definition{
		Name: "thing.watch", Resource: "thing", CancelledBy: []string{"thing.forget"},
		Main: []process.Handler{step("watch", func(ctx context.Context, _ *process.Run) error {
			begun <- true
			<-ctx.Done()
			return ctx.Err()
		})},
	}, process.Definition{Name: "thing.forget", Resource: "thing", Main: []process.Handler{step("forget", nil)}})
	must(t, e.Start(t.Context()))
	running := begin(t, e, "thing.watch", "a")
	<-begun
	waits := begin(t, e, "thing.watch", "a")
	forget := begin(t, e, "thing.forget", "a")
	awaitState(t, s, forget, intent.ProcessDone)
	for _, id := range []int64{running, waits} {
		if p := awaitState(t, s, id, intent.ProcessCancelled); !strings.Contains(p.Reason, "took its place") {
			t.Errorf("%+v", p)
		}
	}
}
