package scheduler

import (
	"container/heap"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Scheduler decides for one environment. It is not safe for concurrent use:
// one goroutine owns it.
type Scheduler struct {
	limits  Limits
	version int
	code    map[string]string
	graph   *graph
	nodes   []*node // of the graph, by position
	blocked []bool  // undefined, or behind something undefined; by position
	known   map[intent.ResourceID]*node
	agents  map[string]*agent
	pauseAt map[string]bool // agents that a person paused, known or not
	halted  bool
	timers  timers

	able     agentHeap
	fresh    []*node // wishes to be placed before the next start
	seq      uint64
	wishes   int
	running  int
	periodic int // of those running
	epoch    [priorities]uint64
	search   uint64
	stack    []*node
	visited  []*node
	out      []Command
}

// New makes a scheduler for what a snapshot shows. Nothing starts before the
// first event; an immediate Tick takes up what was left undone. The error
// names a circle or a duplicate, as that of NewVersion does.
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
		halted:  snap.Halted,
	}
	for p := range s.epoch {
		s.epoch[p] = 1
	}
	for _, name := range snap.PausedAgents {
		s.pauseAt[name] = true
	}
	for _, state := range snap.States {
		if s.known[state.ID] == nil {
			s.known[state.ID] = s.newNode(state)
		}
	}
	s.load(g, snap)
	return s, nil
}

func (s *Scheduler) newNode(state intent.ResourceState) *node {
	a := s.agents[state.ID.Agent]
	if a == nil {
		a = &agent{name: state.ID.Agent, paused: s.pauseAt[state.ID.Agent], heapAt: -1}
		s.agents[a.name] = a
	}
	if state.LastRun == "" {
		state.LastRun = intent.RunNew
	}
	if state.Blocked == "" {
		state.Blocked = intent.NotBlocked
	}
	return &node{state: state, agent: a, pos: -1, heapAt: -1}
}

// Trigger wishes for the resources that a filter chooses: UserDeploy and
// DeployTimer for those that are not as intended, UserRepair and RepairTimer
// for all. Timers leave a failing resource alone until its back-off is over.
func (s *Scheduler) Trigger(kind Priority, f Filter, now time.Time) []Command {
	for _, n := range s.chosen(f) {
		if s.wanted(n, kind, now) {
			s.enqueue(n, kind, kind.String())
		}
	}
	return s.decide(now)
}

func (s *Scheduler) wanted(n *node, kind Priority, now time.Time) bool {
	current := n.running && n.runHash == n.state.IntentHash
	switch kind {
	case UserDeploy:
		return n.dirty() && !current
	case UserRepair:
		return true
	case DeployTimer:
		return n.dirty() && !current && n.state.Blocked == intent.NotBlocked && !now.Before(s.retryAt(n))
	case RepairTimer:
		return !current
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

// Pause lets nothing more start on an agent; what runs there ends as usual.
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
		a.paused = paused
		s.touch(a)
	}
	return s.decide(now)
}

// Halt lets nothing more start in the environment; what runs ends as usual.
func (s *Scheduler) Halt() { s.halted = true }

// Resume undoes Halt.
func (s *Scheduler) Resume(now time.Time) []Command {
	s.halted = false
	return s.decide(now)
}

// decide starts all that can start and gives the commands of this event.
func (s *Scheduler) decide(now time.Time) []Command {
	for {
		for i := 0; i < len(s.fresh); i++ { // placing and waking may add more
			s.place(s.fresh[i])
			s.fresh[i] = nil
		}
		s.fresh = s.fresh[:0]
		if s.halted || len(s.able) == 0 {
			break
		}
		a := s.able[0]
		n := a.ready[0]
		if !s.limits.room(n.prio, s.running, s.periodic) {
			break
		}
		heap.Pop(&a.ready)
		s.touch(a)
		if s.place(n); n.heapAt < 0 { // something that n needs was wished for since n became ready
			continue
		}
		heap.Remove(&a.ready, n.heapAt)
		s.touch(a)
		if cause := s.badDependency(n); cause != nil {
			s.skip(n, cause, now)
			continue
		}
		s.start(n)
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

func (s *Scheduler) start(n *node) {
	command := s.command(n)
	n.queued, n.update, n.waitOn = false, false, nil
	s.wishes--
	n.running, n.runPrio, n.runVersion, n.runHash = true, n.prio, command.Resource.Version, command.Resource.AttributeHash
	n.agent.running = n
	s.touch(n.agent)
	s.running++
	if n.prio.Periodic() {
		s.periodic++
	}
	n.state.IsDeploying = true
	n.state.Blocked = intent.NotBlocked
	for p := range n.prio {
		s.epoch[p]++ // as intended or not, now it also holds the more urgent
	}
	s.out = append(s.out, command)
}

// command describes the start of a wish.
func (s *Scheduler) command(n *node) Start {
	c := Start{Resource: *s.graph.resources[n.pos], Priority: n.prio, Reason: n.reason}
	for _, i := range s.graph.before[n.pos] {
		c.Requires = append(c.Requires, Dependency{ID: s.nodes[i].state.ID, Status: s.nodes[i].state.Status()})
	}
	for _, i := range s.graph.requires[n.pos] {
		at, last := s.nodes[i].state.LastEvents, n.state.LastSuccess
		c.DependencyChanged = c.DependencyChanged || at != nil && last != nil && at.After(*last)
	}
	return c
}

// skip ends a wish without a run: what n needs is bad. When that recovers, n runs.
func (s *Scheduler) skip(n *node, cause *node, now time.Time) {
	s.dequeue(n)
	n.state.LastRun = intent.RunSkipped
	n.state.LastRunAt = &now
	n.state.Blocked = intent.TemporarilyBlocked
	n.state.Compliance = intent.NonCompliant
	s.out = append(s.out, SetState{
		State: n.state, Skipped: true, Version: s.graph.resources[n.pos].Version,
		Cause: cause.state.ID, Reason: n.reason,
	})
}
