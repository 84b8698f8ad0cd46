package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/intent"
)

// tick lets time pass until the scheduler has something to do, at most d.
func (w *world) tick(d time.Duration) {
	end := w.now.Add(d)
	for {
		at := w.s.NextTick()
		if at.IsZero() || at.After(end) {
			w.now = end
			return
		}
		if !at.After(w.now) {
			w.t.Fatalf("NextTick stays at %s, and it is %s", at, w.now)
		}
		w.now = at
		if w.take(w.s.Tick(w.now)); len(w.running) > 0 {
			return
		}
	}
}

// restart makes a new scheduler from what was recorded.
func (w *world) restart(lines ...string) {
	w.t.Helper()
	snap := Snapshot{
		Version:   w.version,
		Resources: model(w.version, lines),
		Now:       w.now,
		Breakers:  w.breaker,
		Code:      w.s.code,
	}
	for _, st := range w.s.States() { // the record of what did not run since is the same
		st.IsDeploying = false
		snap.States = append(snap.States, st)
	}
	policy, timers := w.s.policy, timersOf(w.s)
	s, err := New(snap, w.s.limits)
	if err != nil {
		w.t.Fatal(err)
	}
	rules := w.s.gates.rules
	w.s, w.running = s, map[string]Start{}
	w.take(w.s.SetRules(rules, w.now))
	w.take(s.SetPolicy(policy, w.now))
	s.SetTimers(timers, w.now)
}

func everyTenMinutes() Timers { return Timers{Deploy: cron.Every(10 * time.Minute)} }

// A resource that fails is tried at its own times, each pause longer than the
// one before, and after the last attempt is left alone: by every timer, for
// days, over a restart. A person who deploys it unparks it.
func TestParkedAfterTooManyAttempts(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "x/a 1", "x/b 1")
	w.s.SetTimers(Timers{Deploy: cron.Every(10 * time.Minute), Repair: cron.Every(24 * time.Hour)}, w.now)
	w.take(w.s.SetPolicy(Policy{MaxAttempts: 4}, w.now))
	w.end("x/a=failed", "x/b")
	var pauses []time.Duration
	for range 3 {
		failed := w.now
		w.tick(time.Hour)
		pauses = append(pauses, w.now.Sub(failed))
		w.end("x/a=failed")
	}
	for i, longest := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if pauses[i] > longest || pauses[i] < longest*3/4 {
			t.Errorf("pause %d is %s", i, pauses[i])
		}
	}
	w.said("start x/a", "start x/b", "start x/a", "start x/a", "start x/a", "park x/a attempts")
	w.tick(time.Hour)
	w.said()
	w.restart("x/a 1", "x/b 1")
	w.tick(30 * time.Hour)
	w.said("start x/b") // the daily repair
	w.end("x/b")
	w.said()
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.said("free x/a", "start x/a")
	w.end("x/a")
	if st := w.states[rid("x/a")]; st.Parked != intent.NotParked || st.Attempts != 0 {
		t.Errorf("%+v", st)
	}
}

// A parked resource is unparked by new intent, by new code of its handler, and by a person who deploys, repairs or
// unparks it; a version that changes others does not unpark it.
func TestWhatFreesAParkedResource(t *testing.T) {
	lines := []string{"x/a 1", "y/b 1"}
	for name, free := range map[string]struct {
		do   func(w *world)
		said []string
	}{
		"new intent": {func(w *world) { w.release("x/a 2", "y/b 1") }, []string{"start x/a"}},
		"new code": {func(w *world) {
			w.version++
			out, _ := w.s.NewVersion(w.version, model(w.version, lines), map[string]string{"t::R": "mended"}, w.now)
			w.take(out)
		}, []string{"free x/a", "start x/a"}},
		"new code while the server was down": {func(w *world) {
			w.s.code = map[string]string{"t::R": "mended"}
			w.restart(lines...)
			w.take(w.s.Tick(w.now))
		}, []string{"free x/a", "start x/a"}},
		"a deploy": {func(w *world) { w.take(w.s.Trigger(UserDeploy, Filter{}, w.now)) },
			[]string{"free x/a", "start x/a"}},
		"a repair": {func(w *world) { w.take(w.s.Trigger(UserRepair, Filter{Agents: []string{"x"}}, w.now)) },
			[]string{"free x/a", "start x/a"}},
		"a person": {func(w *world) { w.take(w.s.Unpark(nil, w.now)) }, []string{"free x/a", "start x/a"}},
		"another version": {func(w *world) {
			w.version++
			out, _ := w.s.NewVersion(w.version, model(w.version, []string{"x/a 1", "y/b 2"}), w.s.code, w.now)
			w.take(out)
		}, []string{"start y/b"}},
		"timers": {func(w *world) {
			w.take(w.s.Trigger(DeployTimer, Filter{}, w.now))
			w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
		}, nil},
		"a deploy of others": {func(w *world) {
			w.take(w.s.Trigger(UserDeploy, Filter{Agents: []string{"y"}},
				w.now))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{}, lines...)
			w.s.code = map[string]string{"t::R": "broken"}
			w.take(w.s.SetPolicy(Policy{MaxAttempts: 1}, w.now))
			w.end("x/a=failed", "y/b")
			w.said("start x/a", "start y/b", "park x/a attempts")
			w.now = w.now.Add(48 * time.Hour)
			free.do(w)
			w.said(free.said...)
			freed := slices.Contains(free.said, "start x/a")
			if st, _ := w.s.State(rid("x/a")); (st.Parked == intent.NotParked) != freed || (st.Attempts == 0) != freed {
				t.Errorf("%+v", st)
			}
		})
	}
}

// With a cron expression only its times count; with 0 nothing is tried again.
// Neither makes the deployer look at the clock in between.
func TestRetriesKeepToTheKindOfTimer(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "x/a 1")
	w.end("x/a=failed")
	w.said("start x/a")
	w.s.SetTimers(Timers{}, w.now)
	if at := w.s.NextTick(); !at.IsZero() {
		t.Fatalf("a timer that never fires fires at %s", at)
	}
	w.take(w.s.Tick(w.now.Add(time.Hour)))
	w.said()
	nightly, err := intent.ParseInterval("0 3 * * *")
	if err != nil {
		t.Fatal(err)
	}
	w.s.SetTimers(Timers{Deploy: nightly}, w.now)
	if at := w.s.NextTick(); at.Hour() != 3 || at.Minute() != 0 {
		t.Fatalf("next tick at %s", at)
	}
	w.tick(24 * time.Hour)
	w.said("start x/a")
	// Nor while the environment is halted; afterwards what became due meanwhile is tried.
	w.end("x/a=failed")
	w.s.SetTimers(everyTenMinutes(), w.now)
	w.s.Halt()
	w.now = w.now.Add(5 * time.Minute)
	w.take(w.s.Tick(w.now))
	if at := w.s.NextTick(); !at.After(w.now) {
		t.Fatalf("halted, and a tick at %s", at)
	}
	w.said()
	w.take(w.s.Resume(w.now))
	w.take(w.s.Tick(w.now))
	w.said("start x/a")
}

// A thousand resources that fail, each with a time of its own, do not keep a
// push waiting: it is next on its agent.
func TestRetriesDoNotDelayPushes(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("x/r%03d 1", i))
	}
	w := newWorld(t, Limits{RetryBase: time.Minute}, append(lines, "x/z 1")...)
	w.s.SetTimers(everyTenMinutes(), w.now)
	for len(w.running) > 0 {
		for name := range w.running {
			how := "=failed"
			if name == "x/z" {
				how = ""
			}
			w.end(name + how)
		}
	}
	w.now = w.now.Add(time.Hour)
	w.take(w.s.Tick(w.now))
	if w.s.Waiting() != 999 {
		t.Fatalf("%d wait", w.s.Waiting())
	}
	w.log = nil
	w.release(append(lines, "x/z 2")...)
	w.said()
	for name := range w.running {
		w.end(name + "=failed")
	}
	w.said("start x/z")
}

// Something else changes a file each day, and each day the repair changes it back. The third time is the last: the
// resource is left alone and people are notified. Other drift of it, or drift long ago, does not count.
func TestContested(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1")
	w.s.SetTimers(Timers{Repair: cron.Every(24 * time.Hour)}, w.now)
	w.take(w.s.SetPolicy(Policy{HealLimit: 3, HealWindow: 7 * 24 * time.Hour}, w.now))
	w.endAll()
	w.log = nil
	day := func(how string) {
		w.tick(25 * time.Hour)
		w.end("x/a"+how, "x/b")
	}
	day("=deployed~mode")
	day("=deployed~mode,owner")
	day("") // all is well
	day("=deployed~mode")
	for range 4 {
		day("")
	}
	w.log = nil
	day("=deployed~mode") // the first is more than a week ago by now
	w.said("start x/a", "healed x/a", "start x/b")
	w.restart("x/a 1", "x/b 1") // the count outlives it
	day("=deployed~mode")
	w.said("start x/a", "drift of x/a", "park x/a contested", "start x/b")
	w.tick(25 * time.Hour)
	w.said("start x/b")
	w.status("x/a", intent.StatusNonCompliant)
	w.end("x/b")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now)) // for all that is not as intended, but not for this
	w.said()
	w.take(w.s.Unpark([]intent.ResourceID{rid("x/a")}, w.now))
	w.said("free x/a", "start x/a")
	w.end("x/a=deployed~mode") // a person asked for this one: it does not count
	w.status("x/a", intent.StatusDeployed)
	if st := w.states[rid("x/a")]; st.Parked != intent.NotParked || len(st.Heals) != 0 || st.Drifted {
		t.Errorf("%+v", st)
	}
}

// A change that a new version, a first deployment or a changed dependency makes necessary is not drift.
func TestWhatIsNoDrift(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1 - s", "y/b 1 x/a r")
	w.end("x/a=deployed~mode")
	w.end("y/b=deployed~mode")
	w.release("x/a 2 - s", "y/b 2 x/a r")
	w.end("x/a=deployed~mode")
	w.end("y/b=deployed~mode")
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.log = nil
	w.end("x/a=deployed~mode")
	w.said("healed x/a", "start y/b")
	w.end("y/b=deployed~state") // x/a changed: it was restarted for that
	w.said()
}

// A repair that finds drift and fails leaves it open; when it is put right
// later, the record ends.
func TestDriftThatCannotBeHealedAtOnce(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1")
	w.end("x/a")
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.log = nil
	w.end("x/a=failed~mode")
	w.said("drift of x/a")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.log = nil
	w.end("x/a=deployed~mode")
	w.said("settled x/a")
	if w.states[rid("x/a")].Drifted {
		t.Error("still drifted")
	}
}

// Where drift is only reported the repair timer looks and changes nothing, and no other timer touches what drifted; a
// person and new intent do. What returns to the intent by itself is as intended again.
func TestDriftIsOnlyReported(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "y/c 1 x/a")
	w.s.SetTimers(Timers{Deploy: cron.Every(10 * time.Minute), Repair: cron.Every(24 * time.Hour)}, w.now)
	w.take(w.s.SetPolicy(Policy{ReportDrift: true, MaxAttempts: 3, HealLimit: 1}, w.now))
	w.end("x/a", "x/b=failed")
	w.endAll()
	w.log = nil
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.said("look at x/a") // x/b is no matter of drift
	w.end("x/a=dry~mode")
	w.said("drift of x/a", "look at y/c")
	w.end("y/c=dry")
	w.status("x/a", intent.StatusNonCompliant)
	w.now = w.now.Add(time.Hour)
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now))
	w.said("start x/b")
	w.end("x/b")
	w.log = nil
	w.restart("x/a 1", "x/b 1", "y/c 1 x/a")
	w.take(w.s.Tick(w.now))
	w.said()
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.end("x/a=failed", "x/b=dry") // a look that fails tells nothing
	w.status("x/a", intent.StatusNonCompliant)
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.log = nil
	w.end("x/a=dry", "x/b=dry")
	w.said("settled x/a", "look at x/b")
	w.status("x/a", intent.StatusDeployed)
	// A look that waits becomes a deployment when a person asks for one.
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("x/b")}}, w.now))
	w.log = nil
	w.end("x/a=dry~mode")
	w.said("drift of x/a", "start x/b")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.end("x/b")
	w.log = nil
	w.end("x/a=deployed~mode")
	w.said("settled x/a")
}

// A look deploys nothing: intent that changes and comes back while one runs is
// what is deployed, as before, and a person who asks for a deployment meanwhile
// gets one.
func TestALookIsNoDeployment(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1")
	w.take(w.s.SetPolicy(Policy{ReportDrift: true}, w.now))
	w.end("x/a")
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.release("x/a 2")
	w.release("x/a 1")
	w.log = nil
	w.end("x/a=dry")
	w.said()
	w.status("x/a", intent.StatusDeployed)

	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.end("x/a=dry~mode") // drift
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.log = nil
	w.end("x/a=dry~mode")
	w.said("drift of x/a", "start x/a")
}

// A handler that only reports does so each time it is asked; what it no longer finds is over.
func TestReportOnlyResources(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1")
	w.end("x/a=non_compliant~mode")
	w.said("start x/a", "drift of x/a")
	w.status("x/a", intent.StatusNonCompliant)
	w.take(w.s.Trigger(RepairTimer, Filter{}, w.now))
	w.end("x/a")
	w.said("start x/a", "settled x/a")
	w.status("x/a", intent.StatusDeployed)
}

// A target that goes away costs five tries and then one per pause, however
// many resources it has. When it is back the next probe finds out and all go on.
func TestBreaker(t *testing.T) {
	lines := []string{"x/a 1", "x/b 1", "x/c 1", "x/d 1", "x/e 1", "x/f 1", "y/g 1"}
	w := newWorld(t, Limits{}, lines...)
	w.take(w.s.SetPolicy(Policy{BreakerFailures: 3, BreakerPause: time.Minute}, w.now))
	w.end("x/a=lost", "x/b=lost", "x/c=lost", "y/g")
	w.said("start x/a", "start y/g", "start x/b", "start x/c", "open x")
	if wish := w.s.Wishes(1, w.now)[0]; wish.Unreachable == nil || wish.ID != rid("x/d") {
		t.Errorf("%+v", wish)
	}
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		before := w.now
		w.tick(time.Hour)
		if w.now.Sub(before) > pause || w.now.Sub(before) < pause-10*time.Second || len(w.running) != 1 {
			t.Fatalf("%d probes after %s, want one after %s", len(w.running), w.now.Sub(before), pause)
		}
		for name := range w.running {
			w.end(name + "=lost")
		}
	}
	w.said("start x/d", "start x/e", "start x/f")
	w.restart(lines...)
	w.take(w.s.Tick(w.now)) // all of x waits, since its states are has_update or failed
	w.said()
	w.release("x/a 2", "x/b 1", "x/c 1", "x/d 1", "x/e 1", "x/f 1", "y/g 1") // a push is a probe
	w.said("start x/a")
	w.end("x/a=lost")
	w.said()
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now)) // and so is a person's deployment
	if len(w.running) != 1 {
		t.Fatalf("%v run", w.running)
	}
	w.log = nil
	for name := range w.running {
		w.end(name)
	}
	if w.log[0] != "close x" || w.s.Breaker("x").Open() {
		t.Errorf("%v", w.log)
	}
	w.endAll()
	for _, line := range lines {
		w.status(line[:3], intent.StatusDeployed)
	}
}

// A breaker does not open for failures with a success in between, for one resource of many that always fails to
// connect, for tasks that never reached a handler, or with a limit of 0.
func TestBreakerStaysClosed(t *testing.T) {
	lines := []string{"x/a 1", "x/b 1", "x/c 1", "x/d 1", "x/e 1"}
	for name, ends := range map[string][]string{
		"a success between": {"x/a=lost", "x/b=lost", "x/c", "x/d=lost", "x/e=lost"},
		"a failure between": {"x/a=lost", "x/b=lost", "x/c=failed", "x/d=lost", "x/e=lost"},
		"no handler": {"x/a=unavailable", "x/b=unavailable", "x/c=unavailable", "x/d=unavailable",
			"x/e=unavailable"},
		"skipped by handlers": {"x/a=skipped", "x/b=skipped", "x/c=skipped", "x/d=skipped", "x/e=skipped"},
	} {
		w := newWorld(t, Limits{}, lines...)
		w.take(w.s.SetPolicy(Policy{BreakerFailures: 3}, w.now))
		w.end(ends...)
		if w.s.Breaker("x").Open() {
			t.Errorf("%s opened it", name)
		}
	}
	w := newWorld(t, Limits{}, lines...)
	w.take(w.s.SetPolicy(Policy{BreakerFailures: 3}, w.now))
	w.end("x/a=lost", "x/b", "x/c", "x/d", "x/e")
	for range 10 {
		w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
		w.end("x/a=lost")
	}
	if w.s.Breaker("x").Open() {
		t.Error("one resource of many opened it")
	}
	w = newWorld(t, Limits{}, "x/a 1")
	w.take(w.s.SetPolicy(Policy{BreakerFailures: 2}, w.now))
	w.end("x/a=lost")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.end("x/a=lost")
	if !w.s.Breaker("x").Open() {
		t.Error("the only resource of a target does not open it")
	}
	w.log = nil
	w.take(w.s.SetPolicy(Policy{}, w.now))
	w.said("close x")
}

// That a target is away for days parks nothing: its resources are not to blame.
func TestUnreachableParksNothing(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1")
	w.s.SetTimers(everyTenMinutes(), w.now)
	w.take(w.s.SetPolicy(Policy{MaxAttempts: 6}, w.now))
	w.end("x/a=lost")
	for range 50 {
		w.tick(2 * time.Hour)
		w.end("x/a=lost")
	}
	if st, _ := w.s.State(rid("x/a")); st.Parked != intent.NotParked || st.Attempts != 3 {
		t.Errorf("%+v", st)
	}
}

// A repair that changes something wakes the receivers of its events, but not a parked one; a push that changes
// something wakes that too.
func TestEventsAndParked(t *testing.T) {
	lines := []string{"x/a 1 - s", "y/b 1 x/a r"}
	w := newWorld(t, Limits{}, lines...)
	w.take(w.s.SetPolicy(Policy{HealLimit: 1}, w.now))
	w.endAll()
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"y"}}, w.now))
	w.log = nil
	w.end("y/b=deployed~mode")
	w.said("drift of y/b", "park y/b contested")
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.end("x/a=deployed+")
	w.said("start x/a")
	w.release("x/a 2 - s", lines[1])
	w.end("x/a=deployed+")
	w.said("start x/a", "start y/b")
	w.end("y/b")
	if st, _ := w.s.State(rid("y/b")); st.Parked != intent.ParkedContested {
		t.Error("an event unparked it")
	}
	w.status("y/b", intent.StatusNonCompliant) // whoever contests it may undo that run too
}

// A handler that failed before and now only skips waits for the timer, and does
// not come back at once again and again.
func TestSkippedAfterAFailure(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "x/a 1")
	w.s.SetTimers(everyTenMinutes(), w.now)
	w.end("x/a=failed")
	w.tick(time.Hour)
	w.end("x/a=skipped")
	w.log = nil
	w.tick(5 * time.Minute)
	w.said()
	w.tick(6 * time.Minute)
	w.said("start x/a")
}

// A resource that needs one which is only reported to differ does not run, as its handler would refuse to; it runs as
// soon as that is as desired. The deploy timer does not ask a handler again that only reports.
func TestDependentsOfAReportedResource(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1 x/a", "y/c 1 y/b")
	w.end("x/a=non_compliant~mode")
	w.said("start x/a", "drift of x/a", "skip y/b for x/a", "skip y/c for y/b")
	w.now = w.now.Add(time.Hour)
	w.take(w.s.Trigger(DeployTimer, Filter{}, w.now))
	w.said()
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"x"}}, w.now))
	w.end("x/a")
	w.said("start x/a", "settled x/a", "start y/b")
	w.end("y/b")
	w.said("start y/c")
}

// An event reaches only its receivers that require the sender directly, and only when it changed something; a blocked
// or orphaned receiver gets none.
func TestWhoGetsEvents(t *testing.T) {
	lines := []string{"x/a 1 - s", "x/u 1 - u", "y/b 1 x/a r", "y/c 1 y/b r", "y/d 1 x/a,x/u r", "y/e 1 x/a r"}
	w := newWorld(t, Limits{}, lines...)
	w.endAll()
	w.release(lines[:5]...) // y/e left the model
	w.take(w.s.Trigger(UserRepair, Filter{Agents: []string{"x"}}, w.now))
	w.log = nil
	w.end("x/a") // changed nothing
	w.said()
	w.take(w.s.Trigger(UserRepair, Filter{Agents: []string{"x"}}, w.now))
	w.end("x/a=failed+") // changed something and failed: who wants to know has to wait
	w.said("start x/a", "skip y/b for x/a")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.log = nil
	w.end("x/a=deployed+")
	w.said("start y/b")
	if !w.running["y/b"].DependencyChanged {
		t.Error("y/b is not told that x/a changed")
	}
	w.end("y/b=deployed+")
	w.said() // y/b sends no events, and y/c stands behind nothing else
}

func timersOf(s *Scheduler) Timers {
	return Timers{Deploy: s.timers.deploy.schedule, Repair: s.timers.repair.schedule}
}
