package scheduler

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// sent is the observer's account of what waits in the executor behind other tasks.
type sent struct {
	behind   map[intent.ResourceID]bool
	recalled map[string]bool
	depth    int                          // how many are sent behind after each step
	tried    map[intent.ResourceID]string // as it was before it was sent
}

func newSent() sent {
	return sent{
		behind:   map[intent.ResourceID]bool{},
		recalled: map[string]bool{},
		tried:    map[intent.ResourceID]string{},
	}
}

// onAgent lists the tasks that an agent was sent and that have not ended, in that order.
func (o *observer) onAgent(agent string) []Start {
	var out []Start
	for _, r := range o.running {
		if r.Resource.ID.Agent == agent {
			out = append(out, r)
		}
	}
	return out
}

// sendBehind sends more to an agent; every fifth is not ready.
func (o *observer) sendBehind(agent string, n, pick int) {
	ready := func(Start) bool { pick++; return pick%5 != 0 }
	for _, command := range o.s.Behind(agent, n, ready, o.now) {
		c, is := command.(Start)
		if !is {
			o.take([]Command{command})
			continue
		}
		id := c.Resource.ID
		if line := o.onAgent(agent); len(line) == 0 || o.sent.behind[line[0].Resource.ID] || o.sent.recalled[agent] {
			o.t.Fatalf("%s is behind nothing", id)
		}
		if c.Report {
			o.t.Fatalf("%s is only to be looked at, and sent ahead", id)
		}
		o.sent.tried[id] = o.tried[id]
		o.sent.behind[id] = true
		o.take([]Command{c})
	}
}

// sendMore sends all agents what they may have, and answers what was recalled before this step.
func (o *observer) sendMore(s step) {
	for n := range 4 {
		agent := string(rune('a' + n))
		if o.sent.recalled[agent] && s.status%2 == 0 {
			o.giveBack(agent, s.change)
		}
		if s.pick%5 > 0 {
			o.sendBehind(agent, o.sent.depth, s.pick)
		}
	}
}

// Histories in which many tasks are sent before their turn: few edges, few rules.
func TestHistoriesBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Concurrency: rapid.SampledFrom([]int{0, 0, 0, 12}).Draw(t, "limit"),
			Seed:        1,
			DryRuns:     2,
			Facts:       2,
		}
		s, err := New(Snapshot{Now: t0}, limits)
		if err != nil {
			t.Fatal(err)
		}
		o := newObserver(t, s, limits)
		o.sent.depth = rapid.IntRange(1, 5).Draw(t, "depth")
		o.policy = Policy{
			BreakerFailures: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "failures"),
			ReportDrift:     rapid.IntRange(0, 4).Draw(t, "report") == 0,
		}
		o.take(s.SetPolicy(o.policy, o.now))
		if rapid.IntRange(0, 3).Draw(t, "ruled") == 0 {
			o.rules = rulesGen().Draw(t, "rules")
			o.take(s.SetRules(o.rules, o.now))
		}
		o.release(sparseGen(3, 18, 20).Draw(t, "first"))
		for _, step := range rapid.SliceOfN(stepGen(3, 18), 30, 80).Draw(t, "steps") {
			o.play(step)
		}
		o.settle()
	})
}

// promoteBehind lets the next task on an agent begin, as the executor does by itself.
func (o *observer) promoteBehind(agent string) {
	line := o.onAgent(agent)
	if len(line) == 0 || !o.sent.behind[line[0].Resource.ID] {
		return
	}
	id := line[0].Resource.ID
	o.started[agent] = o.now
	delete(o.sent.behind, id)
	needs := o.needsOf(id)
	for _, r := range o.running {
		if slices.Contains(needs, r.Resource.ID) && !o.sent.recalled[agent] {
			o.t.Fatalf("%s follows by itself while %s runs", id, r.Resource.ID)
		}
	}
	o.noneBehind(agent)
}

func (o *observer) needsOf(id intent.ResourceID) []intent.ResourceID {
	if !slices.ContainsFunc(o.model, func(r intent.Resource) bool { return r.ID == id }) {
		return nil
	}
	return o.needs(id)
}

func (o *observer) noneBehind(agent string) {
	if !slices.ContainsFunc(o.onAgent(agent), func(r Start) bool { return o.sent.behind[r.Resource.ID] }) {
		delete(o.sent.recalled, agent)
	}
}

// giveBack returns what an agent has not begun; with first also what was about to begin, when the one before ended a
// moment ago.
func (o *observer) giveBack(agent string, first bool) {
	for _, c := range o.onAgent(agent) {
		id := c.Resource.ID
		if !o.sent.behind[id] && !(first && o.sent.recalled[agent] && o.sent.tried[id] != "") {
			continue
		}
		if i := slices.IndexFunc(o.running, func(r Start) bool { return r.Resource.ID == id }); i >= 0 {
			o.running = slices.Delete(o.running, i, i+1)
		}
		delete(o.sent.behind, id)
		if o.tried[id] == c.Resource.AttributeHash {
			if o.tried[id] = o.sent.tried[id]; o.tried[id] == "" {
				delete(o.tried, id)
			}
		}
		delete(o.sent.tried, id)
		st := o.recorded[id]
		st.IsDeploying = false
		o.recorded[id] = st
		o.noneBehind(agent)
		o.take(o.s.Withdrawn(id, c.Resource.Version, o.now))
	}
}

// checkSent: what is behind is recalled as soon as something should go before it.
func (o *observer) checkSent() {
	wishes := o.s.Wishes(0, o.now)
	for id := range o.sent.behind {
		if o.sent.recalled[id.Agent] {
			continue
		}
		at := slices.IndexFunc(o.running, func(r Start) bool { return r.Resource.ID == id })
		c := o.running[at]
		switch {
		case o.s.halted, o.paused[id.Agent], o.breakers[id.Agent].Open(), c.Resource.Version != o.version, o.held(id):
			o.t.Fatalf("%s stays behind: halted %t, paused %t, breaker %+v, version %d of %d, held %t", id,
				o.s.halted, o.paused[id.Agent], o.breakers[id.Agent], c.Resource.Version, o.version, o.held(id))
		}
		needs := o.needsOf(id)
		for _, w := range wishes {
			st, _ := o.s.State(w.ID)
			if slices.Contains(needs, w.ID) && (w.Priority <= c.Priority || st.Compliance != intent.Compliant) {
				o.t.Fatalf("%s stays behind, and %s, which it needs, is wished for", id, w.ID)
			}
			held := slices.ContainsFunc(o.needs(w.ID), func(need intent.ResourceID) bool {
				return slices.ContainsFunc(o.running, func(r Start) bool { return r.Resource.ID == need }) ||
					slices.ContainsFunc(wishes, func(v Wish) bool { return v.ID == need })
			})
			if w.ID.Agent == id.Agent && w.Priority < c.Priority && !held && !o.held(w.ID) && !o.deploys(w.ID) {
				o.t.Fatalf("%s (%s) stays before %s (%s)", id, c.Priority, w.ID, w.Priority)
			}
		}
		for _, j := range o.jobs.order {
			if j.Resource.Agent == id.Agent && j.Priority() < c.Priority {
				o.t.Fatalf("%s stays before %+v", id, j)
			}
		}
	}
}

// line plays a world with one agent: x/a runs, and x/b and x/c are behind it.
func line(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1")
	if got := starts(w.s.Behind("x", 2, always, t0)); !slices.Equal(got, []string{"x/b", "x/c"}) {
		t.Fatalf("%+v", got)
	}
	return w
}

func always(Start) bool { return true }

func starts(out []Command) (names []string) {
	for _, c := range out {
		if c, is := c.(Start); is {
			names = append(names, short(c.Resource.ID))
		}
	}
	return names
}

func recalls(out []Command) (names []string) {
	for _, c := range out {
		if c, is := c.(Recall); is {
			for _, id := range c.Tasks {
				names = append(names, short(id))
			}
		}
	}
	return names
}

// Anything that should go before what is behind recalls it, and what did not begin is wished for again.
func TestRecalled(t *testing.T) {
	for name, event := range map[string]func(s *Scheduler) []Command{
		"pause": func(s *Scheduler) []Command { return s.Pause("x", t0) },
		"halt":  func(s *Scheduler) []Command { return s.Halt() },
		"a person's wish": func(s *Scheduler) []Command {
			return s.Trigger(UserDeploy, Filter{Resources: []intent.ResourceID{rid("x/c")}}, t0)
		},
		"fewer at once": func(s *Scheduler) []Command { return s.SetRules(Rules{Concurrency: 1}, t0) },
		"a gap": func(s *Scheduler) []Command {
			limits := must(intent.ParseAgentLimits(map[string]any{"x": map[string]any{"min_gap": 5.0}}))
			return s.SetRules(Rules{Agents: limits}, t0)
		},
		"a window": func(s *Scheduler) []Command {
			w := must(intent.NewWindow(intent.Window{Name: "w", Kind: intent.WindowFreeze, Cron: "0 12 * * *",
				Duration: time.Hour}))
			return s.SetRules(Rules{Windows: intent.Windows{w}}, t0)
		},
		"a version": func(s *Scheduler) []Command {
			return must(s.NewVersion(2, model(2, []string{"x/a 1", "x/b 1", "x/c 1"}), nil, t0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := line(t)
			if got := recalls(event(w.s)); !slices.Equal(got, []string{"x/b", "x/c"}) {
				t.Fatalf("recalled: %v", got)
			}
			if got := w.s.Behind("x", 5, always, t0); got != nil {
				t.Errorf("sent meanwhile: %+v", got)
			}
			w.s.Withdrawn(rid("x/b"), 1, t0)
			w.s.Withdrawn(rid("x/c"), 1, t0)
			var waiting []string
			for _, wish := range w.s.Wishes(0, t0) {
				waiting = append(waiting, short(wish.ID))
			}
			if slices.Sort(waiting); !slices.Equal(waiting, []string{"x/b", "x/c"}) {
				t.Errorf("wished for: %v", waiting)
			}
			if st, _ := w.s.State(rid("x/b")); st.IsDeploying || st.LastRunAt != nil {
				t.Errorf("it did not run: %+v", st)
			}
		})
	}
}

// Tasks that nothing speaks against are not recalled.
func TestNotRecalled(t *testing.T) {
	w := line(t)
	for name, out := range map[string][]Command{
		"a tick":       w.s.Tick(t0),
		"a lesser one": w.s.Trigger(RepairTimer, Filter{}, t0),
		"another's":    w.s.Pause("y", t0),
		"an end":       w.s.TaskDone(Outcome{ID: rid("x/a"), Version: 1, Status: intent.StatusDeployed}, t0),
	} {
		if got := recalls(out); got != nil {
			t.Errorf("%s: recalled %v", name, got)
		}
	}
}

// A task behind another begins by itself, keeps its place, and holds what needs it.
func TestBehindBegins(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "y/d 1 x/b", "x/e 1 x/a")
	if got := starts(w.s.Behind("x", 5, always, t0)); !slices.Equal(got, []string{"x/b"}) {
		t.Fatalf("what needs the one that runs is not sent: %v", got)
	}
	if got := starts(w.s.TaskDone(Outcome{ID: rid("x/a"), Version: 1, Status: intent.StatusDeployed}, t0)); got != nil {
		t.Errorf("while x/b runs start %v", got)
	}
	got := starts(w.s.TaskDone(Outcome{ID: rid("x/b"), Version: 1, Status: intent.StatusDeployed}, t0))
	if slices.Sort(got); !slices.Equal(got, []string{"x/e", "y/d"}) {
		t.Errorf("then start: %v", got)
	}
}

// After a failure to reach the target nothing is sent behind another task; if something is behind when the breaker
// opens, it is recalled.
func TestBehindAFailureToReach(t *testing.T) {
	w := newWorld(t, Limits{})
	w.s.SetPolicy(Policy{BreakerFailures: 2}, t0)
	w.release("x/a 1", "x/b 1", "x/c 1", "x/d 1", "x/e 1")
	if got := w.s.Behind("x", 3, always, t0); len(got) != 3 {
		t.Fatalf("%d are sent", len(got))
	}
	unreachable := func(name string) []Command {
		return w.s.TaskDone(Outcome{ID: rid(name), Version: 2, Status: intent.StatusUnavailable, Unreachable: true}, t0)
	}
	if got := recalls(unreachable("x/a")); got != nil {
		t.Fatalf("after one failure %v are recalled", got)
	}
	if got := w.s.Behind("x", 9, always, t0); got != nil {
		t.Fatalf("after a failure: %+v", got)
	}
	if got := recalls(unreachable("x/b")); !slices.Equal(got, []string{"x/d"}) {
		t.Fatalf("when the breaker opens %v are recalled", got)
	}
}

// Nothing is sent a moment before a window closes.
func TestNothingBehindBeforeAnEdge(t *testing.T) {
	open := must(
		intent.NewWindow(
			intent.Window{Name: "w", Kind: intent.WindowOpen, Cron: "0 * * * *", Duration: time.Hour - time.Minute},
		),
	)
	w := newWorld(t, Limits{})
	at := t0.Truncate(time.Hour).Add(10 * time.Minute)
	w.s.SetRules(Rules{Windows: intent.Windows{open}}, at)
	must(w.s.NewVersion(2, model(2, []string{"x/a 1", "x/b 1", "x/c 1"}), nil, at))
	edge := w.s.NextEdge()
	if edge.IsZero() {
		t.Fatal("there is no edge")
	}
	if got := w.s.Behind("x", 9, always, edge.Add(-beforeEdge/2)); got != nil {
		t.Errorf("%+v", got)
	}
	if got := w.s.Behind("x", 1, always, edge.Add(-2*beforeEdge)); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// Where few tasks may run at once, those behind leave room for others.
func TestBehindLeavesRoom(t *testing.T) {
	w := newWorld(t, Limits{})
	w.s.SetRules(Rules{Concurrency: 4}, t0)
	w.release("x/a 1", "x/b 1", "x/c 1", "x/d 1")
	if got := w.s.Behind("x", 9, always, t0); len(got) != 1 {
		t.Fatalf("%d are sent", len(got))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
