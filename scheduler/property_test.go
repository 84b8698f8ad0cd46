package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// A generated history drives a scheduler while an observer, which knows
// nothing of queues and searches only in the plainest way, watches every
// command. The same history is then played to a second scheduler.

// step is one event of a history, with choices that are made when it is played.
type step struct {
	kind   int
	pick   int
	status int
	change bool
	model  []intent.Resource
	later  time.Duration
}

func stepGen(agents, size int) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		s := step{
			kind:   rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "kind"),
			pick:   rapid.IntRange(0, 1000).Draw(t, "pick"),
			status: rapid.IntRange(0, 9).Draw(t, "status"),
			change: rapid.Bool().Draw(t, "change"),
			later:  time.Duration(rapid.IntRange(1, 100).Draw(t, "later")) * time.Second,
		}
		if s.kind == 1 {
			s.model = modelGen(agents, size).Draw(t, "model")
		}
		return s
	})
}

// modelGen makes resources that only require ones with a smaller number, so
// there is no circle; the numbers are mixed over agents.
func modelGen(agents, size int) *rapid.Generator[[]intent.Resource] {
	return rapid.Custom(func(t *rapid.T) []intent.Resource {
		var out []intent.Resource
		for i := range size {
			if rapid.IntRange(0, 4).Draw(t, "there") == 0 {
				continue
			}
			r := intent.Resource{
				ID:            rid(fmt.Sprintf("%c/%02d", 'a'+i%agents, (i*7)%size)),
				AttributeHash: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "hash")),
				Purged:        rapid.IntRange(0, 5).Draw(t, "purged") == 0,
				SendEvent:     rapid.Bool().Draw(t, "send"),
				ReceiveEvents: rapid.Bool().Draw(t, "receive"),
			}
			if rapid.IntRange(0, 14).Draw(t, "undefined") == 0 {
				r.Undefined = []string{"x"}
				r.AttributeHash += "?"
			}
			for _, earlier := range out {
				if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					r.Requires = append(r.Requires, earlier.ID)
					r.AttributeHash += "+" + short(earlier.ID)
				}
			}
			out = append(out, r)
		}
		return out
	})
}

// observer holds its own account of what runs and what is wished for.
type observer struct {
	t       *rapid.T
	s       *Scheduler
	limits  Limits
	now     time.Time
	version int
	model   []intent.Resource
	running []Start
	tried   map[intent.ResourceID]string // hash that was last started or skipped
	good    map[intent.ResourceID]string // hash that was last deployed well
	log     []string
	// recorded is the state of each resource as the commands so far give it.
	recorded map[intent.ResourceID]intent.ResourceState
}

func newObserver(t *rapid.T, s *Scheduler, limits Limits) *observer {
	return &observer{t: t, s: s, limits: limits, now: t0, tried: map[intent.ResourceID]string{},
		good: map[intent.ResourceID]string{}, recorded: map[intent.ResourceID]intent.ResourceState{}}
}

func (o *observer) take(out []Command) {
	for _, c := range out {
		o.log = append(o.log, fmt.Sprintf("%+v", c))
		switch c := c.(type) {
		case Start:
			o.checkStart(c)
			o.running = append(o.running, c)
			o.tried[c.Resource.ID] = c.Resource.AttributeHash
		case SetState:
			o.recorded[c.State.ID] = c.State
			if c.Skipped {
				cause, _ := o.s.State(c.Cause)
				if c.Cause.IsZero() || cause.ID.IsZero() {
					o.t.Fatalf("%s was skipped for nothing", c.State.ID)
				}
				o.tried[c.State.ID] = c.State.IntentHash
				delete(o.good, c.State.ID)
			}
		}
	}
	for _, c := range out {
		if c, ok := c.(Start); ok && c.Priority.Periodic() {
			o.checkPushed(c)
		}
	}
}

// checkPushed: no pushed work that nothing holds stands behind a periodic start on its agent.
func (o *observer) checkPushed(c Start) {
	wishes := o.s.Wishes(0)
	for _, w := range wishes {
		if w.Priority.Periodic() || w.ID.Agent != c.Resource.ID.Agent {
			continue
		}
		needs := o.needs(w.ID)
		held := slices.ContainsFunc(o.running, func(r Start) bool { return slices.Contains(needs, r.Resource.ID) }) ||
			slices.ContainsFunc(wishes, func(v Wish) bool {
				st, _ := o.s.State(v.ID)
				return slices.Contains(needs, v.ID) && (v.Priority <= w.Priority || st.Compliance != intent.Compliant)
			})
		if !held {
			o.t.Fatalf("%s (%s) starts before %s (%s)", c.Resource.ID, c.Priority, w.ID, w.Priority)
		}
	}
}

func (o *observer) checkStart(c Start) {
	id := c.Resource.ID
	for _, r := range o.running {
		if r.Resource.ID.Agent == id.Agent {
			o.t.Fatalf("%s starts while %s runs on the same agent", id, r.Resource.ID)
		}
	}
	if o.limits.Concurrency > 0 && len(o.running) >= o.limits.Concurrency {
		o.t.Fatalf("%d run already", len(o.running))
	}
	at := slices.IndexFunc(o.model, func(r intent.Resource) bool { return r.ID == id })
	if at < 0 {
		o.t.Fatalf("%s is not in version %d", id, o.version)
	}
	if c.Resource.Version != o.version || c.Resource.AttributeHash != o.model[at].AttributeHash {
		o.t.Fatalf("%s starts in an old form", id)
	}
	needs := o.needs(id)
	for _, need := range needs {
		for _, r := range o.running {
			if r.Resource.ID == need {
				o.t.Fatalf("%s starts while %s, which it needs, runs", id, need)
			}
		}
		i := slices.IndexFunc(o.model, func(r intent.Resource) bool { return r.ID == need })
		if len(o.model[i].Undefined) > 0 {
			o.t.Fatalf("%s starts behind %s, which is undefined", id, need)
		}
		if o.tried[need] != o.model[i].AttributeHash && o.good[need] != o.model[i].AttributeHash {
			o.t.Fatalf("%s starts before %s, which it needs, was tried", id, need)
		}
	}
	if len(o.model[at].Undefined) > 0 {
		o.t.Fatalf("%s is undefined and starts", id)
	}
	for _, r := range o.direct(id) {
		// As recorded when it starts; a later command of the same event may say otherwise.
		if st := o.recorded[r]; st.LastRun == intent.RunFailed || st.LastRun == intent.RunSkipped {
			o.t.Fatalf("%s starts though %s is %s", id, r, st.LastRun)
		}
	}
}

// direct is what must go before id: what it requires; of two to be purged the
// other way round unless that closes a circle, which the graph is trusted with
// and TestPurgeInReverse and TestTurnedEdges look at.
func (o *observer) direct(id intent.ResourceID) []intent.ResourceID {
	var out []intent.ResourceID
	g := o.s.graph
	for _, i := range g.before[g.index[id]] {
		out = append(out, g.resources[i].ID)
	}
	return out
}

func (o *observer) needs(id intent.ResourceID) []intent.ResourceID {
	var out []intent.ResourceID
	for rest := o.direct(id); len(rest) > 0; rest = rest[1:] {
		if !slices.Contains(out, rest[0]) {
			out = append(out, rest[0])
			rest = append(rest, o.direct(rest[0])...)
		}
	}
	return out
}

func (o *observer) release(model []intent.Resource) {
	o.version++
	model = slices.Clone(model)
	for i := range model {
		model[i].Version = o.version
	}
	changed := map[intent.ResourceID]bool{}
	for _, r := range model {
		if o.good[r.ID] != r.AttributeHash || o.tried[r.ID] != r.AttributeHash {
			changed[r.ID] = true
		}
	}
	for _, r := range o.model {
		if slices.ContainsFunc(model, func(n intent.Resource) bool { return n.ID == r.ID }) {
			continue
		}
		delete(o.good, r.ID) // nobody looks after it any longer
		if !slices.ContainsFunc(o.running, func(c Start) bool { return c.Resource.ID == r.ID }) {
			delete(o.tried, r.ID)
		}
	}
	o.model = model
	before := map[intent.ResourceID]bool{}
	for _, w := range o.s.Wishes(0) {
		before[w.ID] = true
	}
	out, err := o.s.NewVersion(o.version, model, nil, o.now)
	if err != nil {
		o.t.Fatal(err)
	}
	// Incremental: nothing is wished for that neither changed nor was wished for.
	for _, c := range out {
		if st, ok := c.(Start); ok && !changed[st.Resource.ID] && !before[st.Resource.ID] {
			o.t.Fatalf("%s starts though it did not change", st.Resource.ID)
		}
	}
	for _, w := range o.s.Wishes(0) {
		if !changed[w.ID] && !before[w.ID] {
			o.t.Fatalf("%s is wished for though it did not change", w.ID)
		}
	}
	o.take(out)
}

func (o *observer) end(i int, status intent.Status, change intent.Change) {
	c := o.running[i]
	o.running = slices.Delete(o.running, i, i+1)
	if !slices.ContainsFunc(o.model, func(r intent.Resource) bool { return r.ID == c.Resource.ID }) {
		delete(o.good, c.Resource.ID)
		delete(o.tried, c.Resource.ID)
	} else if status == intent.StatusDeployed {
		o.good[c.Resource.ID] = c.Resource.AttributeHash
	} else {
		delete(o.good, c.Resource.ID)
	}
	o.take(o.s.TaskDone(Outcome{ID: c.Resource.ID, Version: c.Resource.Version, Status: status, Change: change}, o.now))
}

var outcomes = []intent.Status{
	intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed,
	intent.StatusFailed, intent.StatusSkipped, intent.StatusUnavailable, intent.StatusNonCompliant, intent.StatusSkippedForDependency,
}

func (o *observer) play(s step) {
	o.now = o.now.Add(s.later)
	agent := string(rune('a' + s.pick%4))
	switch s.kind {
	case 0:
		if len(o.running) > 0 {
			change := intent.NoChange
			if s.change {
				change = intent.Updated
			}
			o.end(s.pick%len(o.running), outcomes[s.status], change)
		}
	case 1:
		o.release(s.model)
	case 2, 3, 4, 5:
		kinds := []Priority{UserDeploy, UserRepair, DeployTimer, RepairTimer}
		f := Filter{}
		if s.change {
			f.Agents = []string{agent}
		}
		o.take(o.s.Trigger(kinds[s.kind-2], f, o.now))
	case 6:
		o.take(o.s.Pause(agent, o.now))
	case 7:
		o.take(o.s.Unpause(agent, o.now))
	case 8:
		o.s.Halt()
	case 9:
		o.take(o.s.Resume(o.now))
	}
	o.checkStuck()
}

// checkStuck: while an agent is free and something on it is held by nothing,
// something has to run there.
func (o *observer) checkStuck() {
	if o.s.halted || o.limits.Concurrency > 0 {
		return
	}
	busy := map[string]bool{}
	active := map[intent.ResourceID]bool{}
	for _, r := range o.running {
		busy[r.Resource.ID.Agent] = true
		active[r.Resource.ID] = true
	}
	wishes := o.s.Wishes(0)
	for _, w := range wishes {
		active[w.ID] = true
	}
	for _, w := range wishes {
		if !w.Paused && !busy[w.ID.Agent] && !slices.ContainsFunc(o.needs(w.ID), func(id intent.ResourceID) bool { return active[id] }) {
			o.t.Fatalf("%s could start and does not", w.ID)
		}
	}
}

// settle lets everything run well until nothing runs, then asks that nothing
// was forgotten: all that can be deployed is.
func (o *observer) settle() {
	for agent := range 4 {
		o.take(o.s.Unpause(string(rune('a'+agent)), o.now))
	}
	o.take(o.s.Resume(o.now))
	drain := func() {
		for rounds := 0; len(o.running) > 0; rounds++ {
			if rounds > 10_000 {
				o.t.Fatal("it never ends")
			}
			o.now = o.now.Add(time.Second)
			o.end(0, intent.StatusDeployed, intent.NoChange)
		}
	}
	drain()
	if n := o.s.Waiting(); n > 0 {
		o.t.Fatalf("nothing runs and %d wait: %+v", n, o.s.Wishes(0))
	}
	for _, r := range o.model {
		if st, _ := o.s.State(r.ID); st.Compliance == intent.HasUpdate && st.Blocked != intent.IsBlocked {
			o.t.Fatalf("%s was never tried: %+v", r.ID, st)
		}
	}
	o.now = o.now.Add(24 * time.Hour)
	o.take(o.s.Trigger(DeployTimer, Filter{}, o.now))
	drain()
	blocked := map[intent.ResourceID]bool{}
	for _, r := range o.model {
		for _, id := range append(o.needs(r.ID), r.ID) {
			i := slices.IndexFunc(o.model, func(r intent.Resource) bool { return r.ID == id })
			blocked[r.ID] = blocked[r.ID] || len(o.model[i].Undefined) > 0
		}
		st, _ := o.s.State(r.ID)
		if !blocked[r.ID] && (st.Compliance != intent.Compliant || st.Blocked != intent.NotBlocked || st.IsDeploying) {
			o.t.Fatalf("%s did not settle: %+v", r.ID, st)
		}
		if blocked[r.ID] && st.Blocked != intent.IsBlocked {
			o.t.Fatalf("%s is not blocked: %+v", r.ID, st)
		}
	}
}

func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Concurrency: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "limit"), Seed: 1}
		first := modelGen(4, 12).Draw(t, "first")
		steps := rapid.SliceOfN(stepGen(4, 12), 0, 60).Draw(t, "steps")
		var logs [2][]string
		for i := range logs {
			s, err := New(Snapshot{Now: t0}, limits)
			if err != nil {
				t.Fatal(err)
			}
			o := newObserver(t, s, limits)
			o.release(first)
			for _, step := range steps {
				o.play(step)
			}
			o.settle()
			logs[i] = o.log
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Fatal("the same history gave other commands")
		}
	})
}

// A resource that always fails prevents nothing that does not need it.
func TestFailingPreventsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := modelGen(4, 12).Draw(t, "model")
		if len(model) == 0 {
			return
		}
		culprit := model[rapid.IntRange(0, len(model)-1).Draw(t, "culprit")].ID
		s, _ := New(Snapshot{Now: t0}, Limits{})
		o := newObserver(t, s, Limits{})
		o.release(model)
		for len(o.running) > 0 {
			status := intent.StatusDeployed
			if o.running[0].Resource.ID == culprit {
				status = intent.StatusFailed
			}
			o.end(0, status, intent.NoChange)
		}
		for _, r := range o.model {
			st, _ := s.State(r.ID)
			if st.Blocked == intent.IsBlocked || r.ID == culprit || slices.Contains(o.needs(r.ID), culprit) {
				continue
			}
			if st.Compliance != intent.Compliant {
				t.Fatalf("%s does not need %s and is %+v", r.ID, culprit, st)
			}
		}
	})
}

// The order of work is never a circle, whatever is to be purged.
func TestTurnedEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := newGraph(modelGen(3, 13).Draw(t, "model"))
		if err != nil {
			t.Fatal(err)
		}
		if c := findCycle(g.before); c != nil {
			t.Fatalf("a circle: %v", c)
		}
		edges := 0
		for i := range g.before {
			edges += len(g.before[i]) - len(g.requires[i])
		}
		if edges != 0 {
			t.Fatalf("%d edges more or fewer than the model has", edges)
		}
	})
}

// Retries spread: the pause is within a quarter of the doubled base, the same
// for the same seed, and not the same for all.
func TestBackOff(t *testing.T) {
	s, _ := New(Snapshot{}, Limits{RetryBase: time.Minute, RetryCap: time.Hour, Seed: 7})
	seen := map[time.Duration]bool{}
	for i := range 100 {
		for attempt, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
			n := &node{state: intent.ResourceState{ID: rid(fmt.Sprintf("a/%d", i)), Attempts: attempt, LastRunAt: &t0}}
			if attempt == 0 {
				continue
			}
			pause := s.retryAt(n).Sub(t0)
			if pause > want*time.Minute || pause < want*time.Minute*3/4 {
				t.Fatalf("attempt %d: %s", attempt, pause)
			}
			seen[pause] = true
		}
		n := &node{state: intent.ResourceState{ID: rid("a/x"), Attempts: 1 << 20, LastRunAt: &t0}}
		if pause := s.retryAt(n).Sub(t0); pause > time.Hour || pause < 45*time.Minute {
			t.Fatal(pause)
		}
	}
	if len(seen) < 700 {
		t.Fatalf("only %d different pauses", len(seen))
	}
}

func bigModel(version, size, changed int) []intent.Resource {
	out := make([]intent.Resource, size)
	for i := range out {
		out[i] = intent.Resource{ID: rid(fmt.Sprintf("agent%02d/%06d", i%50, i)), Version: version, AttributeHash: "1"}
		if i > 0 {
			out[i].Requires = append(out[i].Requires, out[i/2].ID)
		}
		if i > 100 {
			out[i].Requires = append(out[i].Requires, out[i-100].ID)
		}
	}
	for i := range changed {
		out[size-1-i*(size/max(changed, 1))].AttributeHash = fmt.Sprint(version)
	}
	return out
}

func drainAll(b *testing.B, s *Scheduler, out []Command) int {
	done := 0
	var running []Start
	for {
		for _, c := range out {
			if st, ok := c.(Start); ok {
				running = append(running, st)
			}
		}
		if len(running) == 0 {
			return done
		}
		c := running[0]
		running = running[1:]
		out = s.TaskDone(Outcome{ID: c.Resource.ID, Version: c.Resource.Version, Status: intent.StatusDeployed}, t0)
		done++
	}
}

// BenchmarkNewVersion: 100,000 resources of which ten changed, until they are deployed.
func BenchmarkNewVersion(b *testing.B) {
	s, _ := New(Snapshot{}, Limits{})
	out, _ := s.NewVersion(1, bigModel(1, 100_000, 0), nil, t0)
	drainAll(b, s, out)
	v := 1
	for b.Loop() {
		v++
		b.StopTimer()
		model := bigModel(v, 100_000, 10)
		b.StartTimer()
		out, err := s.NewVersion(v, model, nil, t0)
		if err != nil {
			b.Fatal(err)
		}
		if n := drainAll(b, s, out); n < 10 || n > 20 {
			b.Fatalf("%d ran", n)
		}
	}
}

// BenchmarkTasks: bookkeeping of a full deployment, per task.
func BenchmarkTasks(b *testing.B) {
	model := bigModel(1, 100_000, 0)
	for b.Loop() {
		b.StopTimer()
		s, _ := New(Snapshot{}, Limits{})
		out, _ := s.NewVersion(1, model, nil, t0)
		b.StartTimer()
		start := time.Now()
		n := drainAll(b, s, out)
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "tasks/s")
	}
}

// BenchmarkRepair: the same when everything was deployed before.
func BenchmarkRepair(b *testing.B) {
	s, _ := New(Snapshot{}, Limits{})
	out, _ := s.NewVersion(1, bigModel(1, 100_000, 0), nil, t0)
	drainAll(b, s, out)
	for b.Loop() {
		start := time.Now()
		n := drainAll(b, s, s.Trigger(UserRepair, Filter{}, t0))
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "tasks/s")
	}
}
