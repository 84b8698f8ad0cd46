package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// observer keeps its own account of what runs and what is wished for.
type observer struct {
	t       *rapid.T
	s       *Scheduler
	limits  Limits
	policy  Policy
	turned  bool            // snapshots list their parts the other way round
	probes  map[string]bool // agents that somebody let probe
	paused  map[string]bool
	now     time.Time
	version int
	model   []intent.Resource
	running []Start
	tried   map[intent.ResourceID]string // hash that was last started or skipped
	good    map[intent.ResourceID]string // hash that was last deployed well
	log     []string
	// recorded is the state of each resource according to the commands so far.
	recorded map[intent.ResourceID]intent.ResourceState
	breakers map[string]intent.Breaker
	jobs     *clerk
	rules    Rules
	started  map[string]time.Time // last, by agent
	sent     sent
}

func newObserver(t *rapid.T, s *Scheduler, limits Limits) *observer {
	return &observer{t: t, s: s, limits: limits, now: t0, tried: map[intent.ResourceID]string{},
		good: map[intent.ResourceID]string{}, recorded: map[intent.ResourceID]intent.ResourceState{},
		breakers: map[string]intent.Breaker{}, probes: map[string]bool{}, paused: map[string]bool{},
		started: map[string]time.Time{}, jobs: newClerk(), sent: newSent()}
}

func (o *observer) take(out []Command) {
	for _, c := range out {
		o.log = append(o.log, fmt.Sprintf("%+v", c))
		switch c := c.(type) {
		case Start:
			o.checkStart(c)
			o.started[c.Resource.ID.Agent] = o.now
			o.running = append(o.running, c)
			o.tried[c.Resource.ID] = c.Resource.AttributeHash
			if st := o.recorded[c.Resource.ID]; !c.Report {
				st.IsDeploying = true
				o.recorded[c.Resource.ID] = st
			}
			o.probes[c.Resource.ID.Agent] = false
		case SetBreaker:
			o.breakers[c.Agent] = c.Breaker
		case Recall:
			o.sent.recalled[c.Agent] = true
		case StartJob:
			o.jobStarts(c.Job)
		case RefuseJob:
			o.jobs.refused(o.t, c.Job)
		case SetState:
			if was := o.recorded[c.State.ID]; c.Freed { // what StateUnpark writes
				was = Unparked(was)
				o.recorded[c.State.ID] = was
				continue
			}
			o.recorded[c.State.ID] = c.State
			if c.State.Parked != intent.NotParked && c.State.Compliance == intent.Compliant {
				o.t.Fatalf("%s is parked (%s) and compliant", c.State.ID, c.State.Parked)
			}
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
	wishes := o.s.Wishes(0, o.now)
	for _, w := range wishes {
		if w.Priority.Periodic() || w.ID.Agent != c.Resource.ID.Agent || w.Gate.Held() {
			continue
		}
		needs := o.needs(w.ID)
		held := o.looksAt(w.ID) ||
			slices.ContainsFunc(o.running,
				func(r Start) bool { return r.Resource.ID == w.ID || slices.Contains(needs, r.Resource.ID) }) ||
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
	if c.Priority.Periodic() && o.recorded[id].Parked != intent.NotParked {
		o.t.Fatalf("%s is parked, and the %s starts it", id, c.Priority)
	}
	if b := o.breakers[id.Agent]; b.Open() && b.ProbeAt.After(o.now) && !o.probes[id.Agent] {
		o.t.Fatalf("%s starts at %s though its agent cannot be reached: %+v", id, o.now, b)
	}
	o.checkRules(c)
	at := slices.IndexFunc(o.model, func(r intent.Resource) bool { return r.ID == id })
	if at < 0 {
		o.t.Fatalf("%s is not in version %d", id, o.version)
	}
	if c.Resource.Version != o.version || c.Resource.AttributeHash != o.model[at].AttributeHash {
		o.t.Fatalf("%s starts in an old form", id)
	}
	if o.looksAt(id) {
		o.t.Fatalf("%s starts while a job looks at it", id)
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
		if c.Report {
			break
		}
		// As recorded when it starts; a later command of the same event may differ.
		if st := o.recorded[r]; st.LastRun == intent.RunFailed || st.LastRun == intent.RunSkipped {
			o.t.Fatalf("%s starts though %s is %s", id, r, st.LastRun)
		}
	}
}

// direct returns what must go before id: what it requires; of two to be purged the other way round, if it was so when
// they were kept, unless that closes a circle, which is left to the graph and checked by TestPurgeInReverse and
// TestTurnedEdges.
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
	for _, w := range o.s.Wishes(0, o.now) {
		before[w.ID] = true
	}
	o.recordRelease(model)
	o.allowProbe(func(r intent.Resource) bool { return changed[r.ID] })
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
	for _, w := range o.s.Wishes(0, o.now) {
		if !changed[w.ID] && !before[w.ID] {
			o.t.Fatalf("%s is wished for though it did not change", w.ID)
		}
	}
	o.take(out)
}

// allowProbe notes that the agents of some resources may be tried at once.
func (o *observer) allowProbe(which func(intent.Resource) bool) {
	for _, r := range o.model {
		if which(r) {
			o.probes[r.ID.Agent] = true
		}
	}
}

// snapshot is what the record holds.
func (o *observer) snapshot(halted bool) Snapshot {
	snap := Snapshot{
		Version:   o.version,
		Resources: slices.Clone(o.model),
		Now:       o.now,
		Halted:    halted,
		Breakers:  o.breakers,
	}
	for _, id := range slices.SortedFunc(maps.Keys(o.recorded), intent.ResourceID.Compare) {
		snap.States = append(snap.States, o.recorded[id])
	}
	snap.PausedAgents = slices.AppendSeq(snap.PausedAgents, slices.Values(slices.Sorted(maps.Keys(o.paused))))
	if o.turned {
		slices.Reverse(snap.Resources)
		slices.Reverse(snap.States)
		slices.Reverse(snap.PausedAgents)
	}
	return snap
}

// recordRelease changes the record as a release does, with the scheduler's rules; that the database has the same
// rules is tested beside the store.
func (o *observer) recordRelease(model []intent.Resource) {
	snap := Snapshot{Version: o.version - 1, Halted: true, Now: o.now}
	for _, st := range o.recorded {
		if st.IsDeploying = false; st.Orphaned == 0 {
			snap.Resources = append(snap.Resources, intent.Resource{ID: st.ID, AttributeHash: st.IntentHash})
		}
		snap.States = append(snap.States, st)
	}
	s, err := New(snap, Limits{})
	if err != nil {
		o.t.Fatal(err)
	}
	for i, n := range s.nodes {
		n.state = o.recorded[n.state.ID] // loading may have touched it
		n.running, n.pos = n.state.IsDeploying, int32(i)
	}
	if _, err := s.NewVersion(o.version, model, nil, o.now); err != nil {
		o.t.Fatal(err)
	}
	for id, n := range s.known {
		deploying := o.recorded[id].IsDeploying
		o.recorded[id] = n.state
		if st := o.recorded[id]; st.IsDeploying != deploying {
			st.IsDeploying = deploying
			o.recorded[id] = st
		}
	}
}

// restart kills the server: what is running is cut off, and what is known is the record.
func (o *observer) restart() {
	for _, c := range o.running {
		if !c.Report {
			delete(o.good, c.Resource.ID)
			delete(o.tried, c.Resource.ID)
		}
	}
	halted, timers := o.s.halted, timersOf(o.s)
	s, err := New(o.snapshot(true), o.limits) // until all is in place
	if err != nil {
		o.t.Fatal(err)
	}
	known := map[string]time.Time{} // of starts: a look that was cut off left no trace
	for id, st := range o.recorded {
		if at := st.LastRunAt; at != nil && at.After(known[id.Agent]) {
			known[id.Agent] = *at
		}
		if st.IsDeploying {
			known[id.Agent] = o.now
			st = Interrupted(st) // and so says the record from now on
		}
		o.recorded[id] = st
	}
	depth := o.sent.depth
	o.s, o.running, o.probes, o.started, o.sent = s, nil, map[string]bool{}, known, newSent()
	o.sent.depth = depth
	again := o.jobs.restart()
	s.SetTimers(timers, o.now)
	o.take(s.SetPolicy(o.policy, o.now))
	o.take(s.SetRules(o.rules, o.now))
	if !halted {
		o.take(s.Resume(o.now))
	}
	o.take(s.Enqueue(again, o.now))
	o.take(s.Tick(o.now))
}

func (o *observer) end(i int, status intent.Status, change intent.Change, differed ...string) {
	c := o.running[i]
	if o.sent.behind[c.Resource.ID] { // the first one ends
		c = o.onAgent(c.Resource.ID.Agent)[0]
		i = slices.IndexFunc(o.running, func(r Start) bool { return r.Resource.ID == c.Resource.ID })
	}
	delete(o.sent.tried, c.Resource.ID)
	if c.Report && status == intent.StatusDeployed {
		status = intent.StatusDry
	}
	o.running = slices.Delete(o.running, i, i+1)
	if status == intent.StatusUnavailable { // then the executor begins nothing that is behind it
		o.giveBack(c.Resource.ID.Agent, false)
	}
	o.promoteBehind(c.Resource.ID.Agent)
	if !slices.ContainsFunc(o.model, func(r intent.Resource) bool { return r.ID == c.Resource.ID }) {
		delete(o.good, c.Resource.ID)
		delete(o.tried, c.Resource.ID)
	} else if status == intent.StatusDeployed {
		o.good[c.Resource.ID] = c.Resource.AttributeHash
	} else if !c.Report || len(differed) > 0 {
		delete(o.good, c.Resource.ID)
	}
	o.take(o.s.TaskDone(Outcome{
		ID: c.Resource.ID, Version: c.Resource.Version, Status: status, Change: change, Differed: differed,
		Unreachable: status == intent.StatusUnavailable,
	}, o.now))
}

var outcomes = []intent.Status{
	intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed, intent.StatusDeployed,
	intent.StatusFailed, intent.StatusSkipped, intent.StatusUnavailable, intent.StatusNonCompliant,
	intent.StatusSkippedForDependency,
}

func (o *observer) play(s step) {
	o.now = o.now.Add(s.later)
	if at := o.s.NextEdge(); len(o.sent.behind) > 0 && !at.IsZero() && !at.After(o.now) {
		o.take(o.s.Tick(o.now)) // somebody watches the clock
	}
	agent := string(rune('a' + s.pick%4))
	switch s.kind {
	case 0:
		if len(o.running) > 0 {
			change := intent.NoChange
			if s.change {
				change = intent.Updated
			}
			var differed []string
			if s.pick%3 == 0 {
				differed = []string{"mode"}
			}
			o.end(s.pick%len(o.running), outcomes[s.status], change, differed...)
		} else {
			o.take(o.s.Tick(o.now)) // nothing else tells the scheduler that time went by
		}
	case 1:
		o.release(s.model)
	case 2, 3, 4, 5:
		kinds := []Priority{UserDeploy, UserRepair, DeployTimer, RepairTimer}
		f := Filter{}
		if s.change {
			f.Agents = []string{agent}
		}
		if !kinds[s.kind-2].Periodic() {
			o.allowProbe(func(r intent.Resource) bool { return !s.change || r.ID.Agent == agent })
		}
		o.take(o.s.Trigger(kinds[s.kind-2], f, o.now))
	case 6:
		o.paused[agent] = true
		o.take(o.s.Pause(agent, o.now))
	case 7:
		delete(o.paused, agent)
		o.take(o.s.Unpause(agent, o.now))
	case 8:
		o.take(o.s.Halt())
	case 9:
		o.take(o.s.Resume(o.now))
	case 10:
		o.restart()
	case 11:
		if at := o.s.NextTick(); at.After(o.now) && s.change {
			o.now = at
		}
		o.take(o.s.Tick(o.now))
		if at := o.s.NextTick(); !at.IsZero() && !at.After(o.now) {
			o.t.Fatalf("it is %s, and the next tick should have been at %s", o.now, at)
		}
	case 12:
		var ids []intent.ResourceID
		if len(o.model) > 0 && s.change {
			ids = []intent.ResourceID{o.model[s.pick%len(o.model)].ID}
		}
		o.allowProbe(func(intent.Resource) bool { return true })
		o.take(o.s.Unpark(ids, o.now))
	case 13, 14, 15:
		o.playJobs(s)
	case 16:
		o.rules.Overrides = append(slices.Clone(o.rules.Overrides),
			intent.Override{Agents: []string{agent}, Created: o.now, Until: o.now.Add(3 * time.Minute)})
		o.take(o.s.SetRules(o.rules, o.now))
	case 17:
		o.sendBehind(agent, 1+s.status%4, s.pick)
	case 18: // an executor is replaced
		o.giveBack(agent, s.change)
	}
	if o.sent.depth > 0 {
		o.sendMore(s)
	}
	o.watchClock()
	o.checkJobs()
	o.checkStuck()
	o.checkSent()
}

// watchClock ticks where a window or a gap ended and the step did not pass the time to the scheduler, as a server
// does.
func (o *observer) watchClock() {
	if at := intent.Earlier(o.s.NextEdge(), o.s.nextCooled()); !at.IsZero() && !at.After(o.now) {
		o.take(o.s.Tick(o.now))
	}
}

// checkStuck: while an agent is free and something on it is held by nothing,
// something has to run there.
func (o *observer) checkStuck() {
	if o.s.halted || o.limits.Concurrency > 0 || o.rules.Concurrency > 0 {
		return
	}
	busy := map[string]int{}
	active := map[intent.ResourceID]bool{}
	for _, j := range o.jobs.running {
		busy[j.Resource.Agent]++
	}
	for _, r := range o.running {
		busy[r.Resource.ID.Agent]++
		active[r.Resource.ID] = true
	}
	wishes := o.s.Wishes(0, o.now)
	for _, w := range wishes {
		active[w.ID] = true
	}
	for _, w := range wishes {
		limit := o.rules.Agents.Of(w.ID.Agent)
		rests := o.now.Before(o.started[w.ID.Agent].Add(limit.MinGap))
		look := o.s.known[w.ID].report // which is no change, however urgent something that waits for it made it
		if gate := o.held(w.ID); gate != w.Gate.Held() && !look {
			o.t.Fatalf("%s: held by a window is %t, and it says %q", w.ID, gate, w.Gate)
		}
		again := o.deploys(w.ID) || o.looksAt(w.ID)
		if !w.Paused && !w.Gate.Held() && !rests && !again && w.Unreachable == nil &&
			busy[w.ID.Agent] < limit.Concurrency &&
			!slices.ContainsFunc(o.needs(w.ID), func(id intent.ResourceID) bool { return active[id] }) {
			o.t.Fatalf("%s could start and does not", w.ID)
		}
	}
}

// settle lets everything run well until nothing runs, then checks that nothing was forgotten: all that can be
// deployed is.
func (o *observer) settle() {
	for agent := range 4 {
		o.take(o.s.Unpause(string(rune('a'+agent)), o.now))
	}
	o.take(o.s.Resume(o.now))
	o.rules.Windows = nil
	o.rules.Agents = slices.Clone(o.rules.Agents)
	for i := range o.rules.Agents { // two days of their timers would take long
		o.rules.Agents[i].HasDeploy, o.rules.Agents[i].HasRepair = false, false
	}
	o.take(o.s.SetRules(o.rules, o.now))
	drain := func() {
		o.drainJobs()
		defer o.drainJobs()
		for rounds := 0; len(o.running) > 0 || o.rests(); rounds++ {
			if rounds > 10_000 {
				o.t.Fatal("it never ends")
			}
			if o.now = o.now.Add(time.Second); len(o.running) == 0 {
				o.take(o.s.Tick(o.now))
				continue
			}
			for n := range 4 {
				if agent := string(rune('a' + n)); o.sent.recalled[agent] {
					o.giveBack(agent, false)
				} else {
					o.sendBehind(agent, 2, rounds)
				}
			}
			o.end(0, intent.StatusDeployed, intent.NoChange)
		}
	}
	drain()
	o.eventually(drain)
	// What was reported to differ stays so until it is looked at again.
	o.policy = Policy{}
	o.take(o.s.SetPolicy(o.policy, o.now))
	o.take(o.s.Unpark(nil, o.now))
	o.take(o.s.Trigger(RepairTimer, Filter{}, o.now))
	drain()
	if n := o.s.Waiting(); n > 0 {
		o.t.Fatalf("nothing runs and %d wait: %+v", n, o.s.Wishes(0, o.now))
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

// eventually lets two days pass, with timers alone: all that is not as intended is tried, except what is blocked,
// parked, or drift that is only reported.
func (o *observer) eventually(drain func()) {
	o.s.SetTimers(Timers{Deploy: cron.Every(10 * time.Minute)}, o.now)
	begin, started := o.now, len(o.log)
	for end := o.now.Add(48 * time.Hour); !o.s.NextTick().After(end); {
		if at := o.s.NextTick(); at.After(o.now) {
			o.now = at
		}
		o.take(o.s.Tick(o.now))
		drain()
	}
	for _, r := range o.model {
		st, _ := o.s.State(r.ID)
		reported := func(st intent.ResourceState) bool {
			return st.Compliance == intent.NonCompliant && st.LastRun == intent.RunSuccessful
		}
		excused := st.Blocked != intent.NotBlocked || st.Parked != intent.NotParked || reported(st)
		for _, need := range o.needs(r.ID) { // it waits for one of these
			if st, _ := o.s.State(need); st.Blocked != intent.NotBlocked || st.Parked != intent.NotParked ||
				reported(st) {
				excused = true
			}
		}
		if st.Compliance != intent.Compliant && !excused {
			o.t.Fatalf("%s was not tried between %s and %s, %d commands: %+v", r.ID, begin, o.now, len(o.log)-started,
				st)
		}
	}
}
