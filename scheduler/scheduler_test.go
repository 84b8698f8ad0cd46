package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/intent"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world plays the part of executors and record: it keeps what was started and notes every command in one line.
type world struct {
	t       *testing.T
	s       *Scheduler
	now     time.Time
	version int
	running map[string]Start
	log     []string
	states  map[intent.ResourceID]intent.ResourceState // as recorded
	breaker map[string]intent.Breaker                  // as recorded
}

// res reads "agent/name hash needs,needs flags". The flags are p(urged, and it required the same when it was kept),
// P(urged, and it required nothing then), u(ndefined), s(end), r(eceive).
func res(version int, line string) intent.Resource {
	parts := strings.Split(line, " ")
	r := intent.Resource{ID: rid(parts[0]), Version: version, AttributeHash: parts[1]}
	if len(parts) > 2 && parts[2] != "-" {
		for need := range strings.SplitSeq(parts[2], ",") {
			r.Requires = append(r.Requires, rid(need))
		}
	}
	if len(parts) > 3 {
		r.Purged = strings.ContainsAny(parts[3], "pP")
		if strings.Contains(parts[3], "p") {
			r.KeptRequires = r.Requires
		}
		r.SendEvent = strings.Contains(parts[3], "s")
		r.ReceiveEvents = strings.Contains(parts[3], "r")
		if strings.Contains(parts[3], "u") {
			r.Undefined = []string{"value"}
		}
	}
	return r
}

func rid(name string) intent.ResourceID {
	agent, value, _ := strings.Cut(name, "/")
	return intent.ResourceID{Type: "t::R", Agent: agent, Attribute: "name", Value: value}
}

func short(id intent.ResourceID) string { return id.Agent + "/" + id.Value }

func model(version int, lines []string) []intent.Resource {
	var out []intent.Resource
	for _, line := range lines {
		out = append(out, res(version, line))
	}
	return out
}

func newWorld(t *testing.T, limits Limits, lines ...string) *world {
	w := &world{
		t:       t,
		now:     t0,
		running: map[string]Start{},
		states:  map[intent.ResourceID]intent.ResourceState{},
		breaker: map[string]intent.Breaker{},
	}
	s, err := New(Snapshot{Now: t0}, limits)
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	w.release(lines...)
	return w
}

func (w *world) release(lines ...string) {
	w.t.Helper()
	w.version++
	out, err := w.s.NewVersion(w.version, model(w.version, lines), nil, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.take(out)
}

func (w *world) take(out []Command) {
	for _, c := range out {
		switch c := c.(type) {
		case Start:
			w.running[short(c.Resource.ID)] = c
			what := "start "
			if c.Report {
				what = "look at "
			}
			w.log = append(w.log, what+short(c.Resource.ID))
		case SetState:
			w.states[c.State.ID] = c.State
			if c.Skipped {
				w.log = append(w.log, "skip "+short(c.State.ID)+" for "+short(c.Cause))
			}
			if c.Freed {
				w.log = append(w.log, "free "+short(c.State.ID))
			}
			if c.Drift != DriftNone {
				w.log = append(w.log, [...]string{"", "drift of ", "healed ", "settled "}[c.Drift]+short(c.State.ID))
			}
			if c.Parked {
				w.log = append(w.log, "park "+short(c.State.ID)+" "+string(c.State.Parked))
			}
		case SetBreaker:
			w.breaker[c.Agent] = c.Breaker
			switch {
			case c.Opened:
				w.log = append(w.log, "open "+c.Agent)
			case !c.Breaker.Open():
				w.log = append(w.log, "close "+c.Agent)
			}
		}
	}
}

// end finishes tasks that run: "agent/name" or "agent/name=status" or "agent/name=deployed+" for a change;
// "agent/name=lost" could not reach its target; "agent/name=deployed~mode" found mode to be otherwise.
func (w *world) end(tasks ...string) {
	w.t.Helper()
	for _, task := range tasks {
		name, how, _ := strings.Cut(task, "=")
		start, ok := w.running[name]
		if !ok {
			w.t.Fatalf("%s does not run; running: %v", name, w.running)
		}
		delete(w.running, name)
		o := Outcome{ID: start.Resource.ID, Version: start.Resource.Version, Status: intent.StatusDeployed}
		if how == "lost" {
			how, o.Unreachable = string(intent.StatusUnavailable), true
		}
		if status, differed, ok := strings.Cut(how, "~"); ok {
			how, o.Differed = status, strings.Split(differed, ",")
			if status == string(intent.StatusDeployed) {
				o.Change = intent.Updated
			}
		}
		if strings.HasSuffix(how, "+") {
			o.Change = intent.Updated
			how = strings.TrimSuffix(how, "+")
		}
		if how != "" {
			o.Status = intent.Status(how)
		}
		w.now = w.now.Add(time.Second)
		w.take(w.s.TaskDone(o, w.now))
	}
}

// endAll finishes everything successfully until nothing runs.
func (w *world) endAll() {
	w.t.Helper()
	for len(w.running) > 0 {
		names := make([]string, 0, len(w.running))
		for name := range w.running {
			names = append(names, name)
		}
		slices.Sort(names)
		w.end(names...)
	}
}

// said compares the log since the last call.
func (w *world) said(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, want) {
		w.t.Fatalf("\ngot:  %s\nwant: %s", strings.Join(w.log, ", "), strings.Join(want, ", "))
	}
	w.log = nil
}

func (w *world) status(name string, want intent.Status) {
	w.t.Helper()
	st, ok := w.s.State(rid(name))
	if !ok || st.Status() != want {
		w.t.Fatalf("%s is %s (%+v), want %s", name, st.Status(), st, want)
	}
}

// A first version: c needs b needs a, on two agents; d stands alone. Each
// agent does one thing at a time, and nothing starts before what it needs.
func TestOrder(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1 x/a", "x/c 1 y/b", "x/d 1")
	w.said("start x/a")
	w.end("x/a")
	w.said("start x/d", "start y/b")
	w.end("y/b")
	w.said()
	w.end("x/d")
	w.said("start x/c")
	w.end("x/c")
	if !w.s.Idle() || w.s.Waiting() != 0 {
		t.Fatal("not idle")
	}
	w.status("x/c", intent.StatusDeployed)
}

// The order holds through a resource that has nothing to do itself: b is as
// intended, yet c waits for a.
func TestOrderThroughQuietResources(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1 x/a", "z/c 1 y/b")
	w.endAll()
	w.log = nil
	w.release("x/a 2", "y/b 1 x/a", "z/c 2 y/b")
	w.said("start x/a")
	w.end("x/a")
	w.said("start z/c")
}

// A second version changes one resource of four: only this one runs. A third
// changes nothing: nothing runs.
func TestIncremental(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1 x/a", "y/c 1", "y/d 1 x/b")
	w.endAll()
	w.log = nil
	w.release("x/a 1", "x/b 2 x/a", "y/c 1", "y/d 1 x/b")
	w.said("start x/b")
	w.endAll()
	w.log = nil
	w.release("x/a 1", "x/b 2 x/a", "y/c 1", "y/d 1 x/b")
	w.said()
	w.status("y/c", intent.StatusDeployed)
}

// Reverting an update before it was tried leaves nothing to do.
func TestRevertBeforeTried(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1")
	w.endAll()
	w.log = nil
	w.s.Pause("x", w.now)
	w.release("x/a 2", "x/b 1")
	w.release("x/a 1", "x/b 1")
	w.take(w.s.Unpause("x", w.now))
	w.said()
	w.status("x/a", intent.StatusDeployed)
}

// a fails: b, which needs it, is skipped, and so is c, which needs b; d, which needs none of them, runs. Retries back
// off; when a recovers, b and then c follow by themselves.
func TestFailureSkipsAndRecovers(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "x/a 1", "y/b 1 x/a", "y/c 1 y/b", "y/d 1")
	w.said("start x/a", "start y/d")
	w.end("y/d")
	w.end("x/a=failed")
	w.said("skip y/b for x/a", "skip y/c for y/b")
	w.status("y/b", intent.StatusSkipped)
	if st, _ := w.s.State(rid("y/b")); st.Blocked != intent.TemporarilyBlocked {
		t.Fatalf("b: %s", st.Blocked)
	}
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now.Add(10*time.Second)))
	w.said() // too early
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now.Add(time.Minute)))
	w.said("start x/a")
	w.end("x/a=failed")
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now.Add(time.Minute)))
	w.said() // the pause doubled
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now.Add(2*time.Minute)))
	w.said("start x/a")
	w.end("x/a")
	w.said("start y/b")
	w.end("y/b")
	w.said("start y/c")
	w.end("y/c")
	w.status("y/c", intent.StatusDeployed)
}

// New intent resets the back-off and is tried at once; a release that does not
// concern the failing resource leaves it to its timer.
func TestNewIntentForFailing(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1")
	w.end("y/b")
	w.end("x/a=failed")
	w.log = nil
	w.release("x/a 1", "y/b 2")
	w.said("start y/b")
	w.end("y/b")
	w.log = nil
	w.release("x/a 2", "y/b 2")
	w.said("start x/a")
	if st, _ := w.s.State(rid("x/a")); st.Attempts != 0 {
		t.Fatalf("attempts %d", st.Attempts)
	}
}

// The model is the same but the handler was corrected: what failed is tried at once, what works is left alone.
func TestNewCodeForFailing(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1")
	w.s.code = map[string]string{"t::R": "broken"}
	w.end("y/b")
	w.end("x/a=failed")
	w.log = nil
	w.version++
	out, err := w.s.NewVersion(w.version, model(w.version, []string{"x/a 1", "y/b 1"}),
		map[string]string{"t::R": "mended"}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.take(out)
	w.said("start x/a")
}

// A newer version arrives while a resource of the older one is running. The outcome of the old run is recorded for
// the old version, and the resource runs again.
func TestVersionMidRun(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1")
	w.said("start x/a")
	w.release("x/a 2", "x/b 1")
	w.said()
	w.end("x/a")
	st := w.states[rid("x/a")]
	if st.DeployedHash != "1" || st.LastDeployed != 1 || st.Compliance != intent.HasUpdate {
		t.Fatalf("recorded: %+v", st)
	}
	w.said("start x/b") // its wish is older
	w.end("x/b")
	w.said("start x/a")
	w.end("x/a")
	w.status("x/a", intent.StatusDeployed)
	if w.states[rid("x/a")].LastDeployed != 2 {
		t.Fatal("not recorded for version 2")
	}
}

// A resource leaves the model while it runs: its result changes nothing but
// that it runs no longer, and its agent is free again.
func TestLeavesWhileRunning(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1")
	w.release("x/b 1")
	w.said("start x/a")
	w.end("x/a=failed")
	w.said("start x/b")
	st := w.states[rid("x/a")]
	if st.Orphaned != 1 || st.IsDeploying || st.LastRun != intent.RunNew {
		t.Fatalf("%+v", st)
	}
	w.status("x/a", intent.StatusOrphaned)
	w.take(w.s.Trigger(UserRepair, Filter{}, w.now))
	w.endAll()
	if slices.Contains(w.log, "start x/a") {
		t.Fatal("an orphan ran")
	}
	w.log = nil
	w.release("x/a 1", "x/b 1")
	w.said("start x/a") // it came back
}

// An undefined resource blocks everything that requires it, transitively, until its value is known.
func TestUndefinedBlocks(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1 - u", "x/b 1 x/a", "x/c 1 x/b", "x/d 1")
	w.said("start x/d")
	w.end("x/d")
	w.status("x/a", intent.StatusUndefined)
	w.status("x/c", intent.StatusSkippedForUndefined)
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("x/b")}}, w.now))
	w.said()
	w.release("x/a 2", "x/b 1 x/a", "x/c 1 x/b", "x/d 1")
	w.said("start x/a")
	w.endAll()
	w.said("start x/b", "start x/c")
}

// b receives a's events: it runs again when a changed something, and only then. c does not receive them.
func TestEvents(t *testing.T) {
	lines := []string{"x/a 1 - s", "y/b 1 x/a r", "y/c 1 x/a"}
	w := newWorld(t, Limits{}, lines...)
	w.endAll()
	w.log = nil
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("x/a")}}, w.now))
	w.end("x/a=deployed+")
	w.said("start x/a", "start y/b")
	if !w.running["y/b"].DependencyChanged {
		t.Fatal("b is not told")
	}
	w.end("y/b=failed") // and once more, for it did not take it in
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	if !w.running["y/b"].DependencyChanged {
		t.Fatal("b is not told again")
	}
	w.end("y/b")
	w.log = nil
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("x/a")}}, w.now))
	w.end("x/a=deployed")
	w.said("start x/a")
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("y/b")}}, w.now))
	if w.running["y/b"].DependencyChanged {
		t.Fatal("b is told what it knows")
	}
}

// A folder and a file in it are to be removed: the file goes first. What stays
// between two that go keeps the model's order rather than closing a circle.
func TestPurgeInReverse(t *testing.T) {
	w := newWorld(t, Limits{}, "x/dir 1 - p", "x/file 1 x/dir p", "x/other 1 x/dir")
	w.endAll()
	w.said("start x/file", "start x/dir", "start x/other")

	w = newWorld(t, Limits{}, "x/a 1 - p", "x/b 1 x/a", "x/c 1 x/a,x/b p")
	w.endAll()
	w.said("start x/a", "start x/b", "start x/c")
}

// A module that lets the folder require the file once both are to go has stated the order itself: only what was so
// when a resource was last kept is turned.
func TestPurgeAsTheModelSays(t *testing.T) {
	w := newWorld(t, Limits{}, "x/dir 1 x/file P", "x/file 1 - P")
	w.endAll()
	w.said("start x/file", "start x/dir")

	// Half of it: two files, one of which the folder requires now.
	w = newWorld(t, Limits{}, "x/dir 1 x/a P", "x/a 1 - p", "x/b 1 x/dir p")
	w.endAll()
	w.said("start x/a", "start x/b", "start x/dir")
}

// A periodic repair of a hundred resources is under way when a change is
// pushed: the change waits for the one running task of its agent, not for its turn.
func TestPushPrecedesPeriodic(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("x/r%02d 1", i))
	}
	w := newWorld(t, Limits{}, append(lines, "x/z 1 x/r99")...)
	w.endAll()
	w.log = nil
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.said("start x/r00")
	w.release(append(lines, "x/z 2 x/r99")...)
	w.end("x/r00")
	w.said("start x/z") // r99 is as intended: its periodic check holds nothing up
}

// What a push needs and is not as intended is as urgent as the push: c failed
// and stands behind others in a periodic run; d needs c.
func TestUrgencyIsHandedOn(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1", "y/d 1 x/c")
	w.end("x/a", "x/b", "x/c=failed")
	w.log = nil
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.said("start x/a")
	w.release("x/a 1", "x/b 1", "x/c 1", "y/d 2 x/c")
	w.said()
	w.end("x/a")
	w.said("start x/c")
	w.end("x/c")
	w.said("start y/d", "start x/b")
}

// Of a limit of four, periodic work leaves one place for pushes.
func TestLimitLeavesRoomForPushes(t *testing.T) {
	lines := []string{"a/r 1", "b/r 1", "c/r 1", "d/r 1", "e/r 1"}
	w := newWorld(t, Limits{Concurrency: 4}, lines...)
	if len(w.running) != 4 {
		t.Fatalf("%d run", len(w.running))
	}
	w.endAll()
	w.log = nil
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.said("start a/r", "start b/r", "start c/r")
	w.release("a/r 1", "b/r 1", "c/r 1", "d/r 1", "e/r 2")
	w.said("start e/r")
}

// A paused agent starts nothing, and what needs its resources waits; a halted
// environment starts nothing at all.
func TestPauseAndHalt(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "y/c 1 x/b")
	w.take(w.s.Pause("x", w.now))
	w.end("x/a")
	w.said("start x/a")
	if !w.s.Idle() || w.s.Waiting() != 2 {
		t.Fatalf("idle %t, waiting %d", w.s.Idle(), w.s.Waiting())
	}
	wishes := w.s.Wishes(0, w.now)
	if !wishes[0].Paused || wishes[1].WaitsFor != rid("x/b") {
		t.Fatalf("%+v", wishes)
	}
	w.s.Halt()
	w.take(w.s.Unpause("x", w.now))
	w.said()
	w.take(w.s.Resume(w.now))
	w.said("start x/b")
	w.endAll()
	w.said("start y/c")
}

// What is predicted for a busy agent is what then starts; what depends on the running task, or on something bad, is
// not predicted.
func TestAhead(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1 x/a", "x/d 1", "x/e 1", "y/f 1", "x/g 1")
	known := map[intent.ResourceID]bool{}
	ahead := func(n int) string {
		var names []string
		for _, c := range w.s.Ahead(n, func(id intent.ResourceID) bool { return known[id] }) {
			names = append(names, short(c.Resource.ID))
		}
		return strings.Join(names, " ")
	}
	if got := ahead(3); got != "x/b x/d x/e" {
		t.Fatal(got)
	}
	if got := ahead(9); got != "x/b x/d x/e x/g" {
		t.Fatal(got)
	}
	for _, c := range w.s.Ahead(2, func(intent.ResourceID) bool { return false }) {
		known[c.Resource.ID] = true
	}
	if got := ahead(3); got != "x/e" { // the third after b and d
		t.Fatal(got)
	}
	clear(known)
	w.log = nil
	w.end("x/a=failed")
	w.end("x/b", "x/d")
	w.said("start x/b", "skip x/c for x/a", "start x/d", "start x/e")
	w.s.Pause("x", w.now)
	if got := ahead(9); got != "" {
		t.Fatal(got)
	}
}

// Circles are refused by name and change nothing; so are old versions and duplicates.
func TestRefusals(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1")
	w.endAll()
	_, err := w.s.NewVersion(2, model(2, []string{"x/a 1 x/c", "x/b 1 x/a", "x/c 1 x/b", "x/d 1"}), nil, w.now)
	want := "t::R[x,name=a] requires t::R[x,name=c] requires t::R[x,name=b] requires t::R[x,name=a]"
	if !errors.Is(err, ErrCycle) || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v", err)
	}
	if _, err := w.s.NewVersion(2, model(2, []string{"x/a 1 x/a"}), nil, w.now); !errors.Is(err, ErrCycle) {
		t.Fatalf("%v", err)
	}
	if _, err := w.s.NewVersion(2, model(2, []string{"x/a 1", "x/a 1"}), nil, w.now); !errors.Is(err, ErrDuplicate) {
		t.Fatalf("%v", err)
	}
	if _, err := w.s.NewVersion(1, nil, nil, w.now); !errors.Is(err, ErrOld) {
		t.Fatalf("%v", err)
	}
	if w.s.Version() != 1 || len(w.s.States()) != 1 {
		t.Fatal("half applied")
	}
}

// The deploy timer fires every ten minutes, the repair timer every day.
func TestTimers(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1")
	w.end("x/a", "y/b=skipped")
	w.log = nil
	w.s.SetTimers(Timers{Deploy: cron.Every(10 * time.Minute), Repair: cron.Every(24 * time.Hour)}, t0)
	if got := w.s.NextTick(); !got.Equal(t0.Add(10 * time.Minute)) {
		t.Fatal(got)
	}
	w.take(w.s.Tick(t0.Add(10*time.Minute - 1)))
	w.said()
	w.take(w.s.Tick(t0.Add(10 * time.Minute)))
	w.said("start y/b")
	w.end("y/b")
	w.take(w.s.Tick(t0.Add(24 * time.Hour)))
	w.said("start x/a", "start y/b")
	w.endAll()
	w.s.SetTimers(Timers{}, w.now)
	if !w.s.NextTick().IsZero() {
		t.Fatal("timers off still tick")
	}
}

// The server was killed. A new scheduler takes up what the record shows: what
// was cut off, what never ran, what missed an event, what may run because
// what it needs recovered; not what failed, which has its timer.
func TestTakenUpAgain(t *testing.T) {
	at := func(s int) *time.Time { x := t0.Add(time.Duration(s) * time.Second); return &x }
	good := func(name string, last int) intent.ResourceState {
		return intent.ResourceState{ID: rid(name), Compliance: intent.Compliant, LastRun: intent.RunSuccessful,
			Blocked: intent.NotBlocked, IntentHash: "1", DeployedHash: "1", LastRunAt: at(last)}
	}
	cut, sent, failed, skipped, waits := good("a/cut", 1), good("b/sent", 5), good("d/failed", 1), good("e/skipped",
		1), good("f/waits", 1)
	cut.IsDeploying = true
	sent.LastEvents = at(5)
	failed.LastRun, failed.Compliance = intent.RunFailed, intent.NonCompliant
	for _, st := range []*intent.ResourceState{&skipped, &waits} {
		st.LastRun, st.Compliance, st.Blocked = intent.RunSkipped, intent.NonCompliant, intent.NotBlocked
	}
	gone := good("h/gone", 1)
	gone.Orphaned = 2
	s, err := New(Snapshot{Version: 3, Now: t0, Resources: model(3, []string{
		"a/cut 1", "b/sent 1 - s", "c/got 1 b/sent r", "d/failed 1", "e/skipped 1 a/quiet", "f/waits 1 d/failed",
		"g/new 1", "a/quiet 1",
	}), States: []intent.ResourceState{
		cut, sent, good("c/got", 4), failed, skipped, waits, good("a/quiet", 1), gone,
	}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: s, now: t0, running: map[string]Start{}, states: map[intent.ResourceID]intent.ResourceState{}}
	w.take(s.Tick(t0))
	w.said("start a/cut", "start c/got", "start e/skipped", "start g/new")
	if st, _ := s.State(rid("f/waits")); st.Blocked != intent.TemporarilyBlocked {
		t.Fatal("f does not wait for d")
	}
}
