package scheduler

import (
	"container/heap"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Scheduler decides for one environment. It is not safe for concurrent use: one goroutine owns it.
type Scheduler struct {
	limits  Limits
	version int
	code    map[string]string
	graph   *graph
	nodes   []*node // of the graph, by position
	blocked []bool  // undefined, or requiring something undefined; by position
	known   map[intent.ResourceID]*node
	agents  map[string]*agent
	pauseAt map[string]bool // agents that a person paused, whether known or not
	halted  bool
	timers  timers
	policy  Policy
	retries retryHeap
	open    map[string]*agent // agents whose breaker is open
	jobs    jobs
	gates   gates
	cooling []*agent // agents whose gap is not over
	// ownTimers is set when some agent has timers of its own.
	ownTimers bool

	startable  agentHeap
	toPlace    []*node // wishes to be placed before the next start
	seq        uint64
	wishes     int
	running    int
	withBehind []*agent // agents that have something behind, see behind.go
	periodic   int      // of those running
	epoch      [priorities]uint64
	search     uint64
	stack      []*node
	visited    []*node
	out        []Command
}

// New makes a scheduler for what a snapshot shows. Nothing starts before the first event; an immediate Tick takes up
// what was left undone. The error names a circle or a duplicate, as that of NewVersion does.
func New(snap Snapshot, limits Limits) (*Scheduler, error) {
	g, err := newGraph(snap.Resources)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		limits:  limits.withDefaults(),
		graph:   &graph{},
		known:   make(map[intent.ResourceID]*node, len(g.resources)),
		agents:  make(map[string]*agent),
		pauseAt: make(map[string]bool),
		open:    make(map[string]*agent),
		halted:  snap.Halted,
		policy:  Policy{}.withDefaults(),
	}
	for p := range s.epoch {
		s.epoch[p] = 1
	}
	for _, name := range snap.PausedAgents {
		s.pauseAt[name] = true
	}
	for name, b := range snap.Breakers {
		if b.Open() {
			s.agentNamed(name).breaker = b
			s.open[name] = s.agents[name]
		}
	}
	for _, state := range snap.States {
		if s.known[state.ID] == nil {
			s.known[state.ID] = s.newNode(state)
		}
	}
	s.load(g, snap)
	return s, nil
}

func (s *Scheduler) agentNamed(name string) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{name: name, paused: s.pauseAt[name], heapAt: -1}
		s.agents[name] = a
		s.applyLimits(a)
	}
	return a
}

func (s *Scheduler) newNode(state intent.ResourceState) *node {
	a := s.agentNamed(state.ID.Agent)
	if state.LastRun == "" {
		state.LastRun = intent.RunNew
	}
	if state.Blocked == "" {
		state.Blocked = intent.NotBlocked
	}
	return &node{state: state, agent: a, pos: -1, heapAt: -1}
}

// Trigger wishes for the resources that a filter chooses: UserDeploy and DeployTimer for those that are not as
// intended, UserRepair and RepairTimer for all. Timers leave a failing resource alone until its back-off is over, and
// a parked one altogether. A person's trigger unparks it, but not a contested one: that takes Unpark.
func (s *Scheduler) Trigger(kind Priority, f Filter, now time.Time) []Command {
	for _, n := range s.chosen(f) {
		if n.state.Parked == intent.ParkedContested {
			continue
		}
		if s.wanted(n, kind, now) {
			if !kind.Periodic() {
				s.unpark(n)
				s.allowProbe(n.agent)
			}
			s.wishFor(n, kind)
		}
	}
	return s.decide(now)
}

// wishFor enqueues n for a trigger. Where drift is only reported, the repair timer looks and does not touch.
func (s *Scheduler) wishFor(n *node, kind Priority) {
	look := kind == RepairTimer && s.policy.ReportDrift && (!n.queued || n.report)
	s.enqueue(n, kind, kind.String())
	n.report = look && n.queued
}

func (s *Scheduler) wanted(n *node, kind Priority, now time.Time) bool {
	current := n.underWay(kind)
	switch kind {
	case UserDeploy:
		return n.dirty() && !current
	case UserRepair:
		return true
	case DeployTimer:
		return s.retryable(n) && !current && (n.state.RetryAt == nil || !now.Before(*n.state.RetryAt))
	case RepairTimer:
		if s.policy.ReportDrift && n.dirty() && !n.state.Drifted {
			return false // something else than drift is wrong with it
		}
		return !current && n.state.Parked == intent.NotParked
	}
	return false
}

// chosen lists the resources of a filter in the graph's order.
func (s *Scheduler) chosen(f Filter) []*node {
	if len(f.Agents) == 0 && len(f.Resources) == 0 {
		return s.nodes
	}
	agents := make(map[string]bool, len(f.Agents))
	for _, name := range f.Agents {
		agents[name] = true
	}
	ids := make(map[intent.ResourceID]bool, len(f.Resources))
	for _, id := range f.Resources {
		ids[id] = true
	}
	var out []*node
	for _, n := range s.nodes {
		if (len(agents) == 0 || agents[n.agent.name]) && (len(ids) == 0 || ids[n.state.ID]) {
			out = append(out, n)
		}
	}
	return out
}

// Pause lets nothing more start on an agent; what is running there ends as usual.
func (s *Scheduler) Pause(name string, now time.Time) []Command { return s.setPaused(name, true, now) }

// Unpause undoes Pause.
func (s *Scheduler) Unpause(name string, now time.Time) []Command {
	return s.setPaused(name, false, now)
}

func (s *Scheduler) setPaused(name string, paused bool, now time.Time) []Command {
	if paused {
		s.pauseAt[name] = true
	} else {
		delete(s.pauseAt, name)
	}
	if a := s.agents[name]; a != nil {
		if a.paused = paused; paused {
			s.refuseJobs(a, RefusedPaused)
		}
		s.updateHeaps(a)
	}
	return s.decide(now)
}

// Halt lets nothing more start in the environment; what is running ends as usual.
func (s *Scheduler) Halt() []Command {
	s.halted = true
	return s.RecallAll("")
}

// Resume undoes Halt.
func (s *Scheduler) Resume(now time.Time) []Command {
	s.halted = false
	return s.decide(now)
}

// decide starts all that can start and returns the commands of this event.
func (s *Scheduler) decide(now time.Time) []Command {
	s.refreshGates(now)
	for {
		for i := 0; i < len(s.toPlace); i++ { // placing and waking may add more
			s.place(s.toPlace[i])
			s.toPlace[i] = nil
		}
		s.toPlace = s.toPlace[:0]
		s.recallOvertaken()
		if s.halted || len(s.startable) == 0 {
			break
		}
		a := s.startable[0]
		n := a.ready[0]
		if s.jobBefore(a, n.prio, now) {
			continue
		}
		if !s.bounds().room(n.prio, s.running, s.periodic) {
			for _, a := range s.withBehind {
				s.recall(a)
			}
			break
		}
		heap.Pop(&a.ready)
		s.updateHeaps(a)
		if s.place(n); n.heapAt < 0 { // something that n needs has been wished for since n became ready
			continue
		}
		heap.Remove(&a.ready, n.heapAt)
		s.updateHeaps(a)
		if s.held(n) {
			s.setAside(n)
			continue
		}
		if cause := s.badDependency(n); cause != nil && !n.report { // a look needs nothing
			s.skip(n, cause, now)
			continue
		}
		if s.forbidden(n) {
			s.skip(n, nil, now)
			continue
		}
		s.start(n, now)
	}
	if !s.halted {
		s.startJobs(now)
	}
	out := s.out
	s.out = nil
	return out
}

func (s *Scheduler) badDependency(n *node) *node {
	for _, i := range s.graph.before[n.pos] {
		if d := s.nodes[i]; d.bad() {
			return d
		}
	}
	return nil
}

func (s *Scheduler) start(n *node, now time.Time) {
	command := s.command(n)
	s.begin(n, command)
	s.noteStart(n.agent, now)
	s.updateHeaps(n.agent)
	s.out = append(s.out, command)
}

// begin records a start in the state of n.
func (s *Scheduler) begin(n *node, command Start) {
	n.runReason, n.runSeq, n.runUpdate = n.reason, n.seq, n.update
	n.runReport = n.report
	n.runVerify = n.state.Compliance == intent.Compliant && n.state.DeployedHash == n.state.IntentHash &&
		!command.DependencyChanged
	n.queued, n.update, n.report, n.waitOn = false, false, false, nil
	s.wishes--
	n.runProbe = n.agent.breaker.Open()
	n.agent.probe = false
	n.running, n.runPrio = true, n.prio
	n.runVersion, n.runHash = command.Resource.Version, command.Resource.AttributeHash
	n.agent.running = append(n.agent.running, n)
	s.updateHeaps(n.agent)
	s.running++
	if n.prio.Periodic() {
		s.periodic++
	}
	n.state.IsDeploying = true
	n.state.Blocked = intent.NotBlocked
	for p := range n.prio {
		s.epoch[p]++ // even if it is as intended, it now holds more urgent wishes too
	}
}

// command describes the start of a wish.
func (s *Scheduler) command(n *node) Start {
	c := Start{Resource: *s.graph.resources[n.pos], Priority: n.prio, Reason: n.reason, Report: n.report}
	for _, i := range s.graph.before[n.pos] {
		c.Requires = append(c.Requires, Dependency{ID: s.nodes[i].state.ID, Status: s.nodes[i].state.Status()})
	}
	for _, i := range s.graph.requires[n.pos] {
		at, last := s.nodes[i].state.LastEvents, n.state.LastSuccess
		c.DependencyChanged = c.DependencyChanged || at != nil && last != nil && at.After(*last)
	}
	return c
}

// skip ends a wish without a run: the cause, which n needs, is bad. When that recovers, n runs. Without a cause, n
// itself is protected.
func (s *Scheduler) skip(n *node, cause *node, now time.Time) {
	s.dequeue(n)
	n.state.LastRun = intent.RunSkipped
	n.state.LastRunAt = &now
	n.state.Blocked = intent.TemporarilyBlocked
	n.state.Compliance = intent.NonCompliant
	n.state.RetryAt = nil
	s.scheduleRetry(n)
	out := SetState{State: n.state, Skipped: true, Version: s.graph.resources[n.pos].Version, Reason: n.reason}
	if out.Protected = cause == nil; !out.Protected {
		out.Cause = cause.state.ID
	}
	s.out = append(s.out, out)
}
