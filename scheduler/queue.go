package scheduler

import (
	"container/heap"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// node is one resource that the environment knows, orphans included.
type node struct {
	state intent.ResourceState
	agent *agent
	pos   int32 // in the graph; -1 for an orphan

	// The wish to run, when queued is set.
	queued bool
	prio   Priority
	seq    uint64
	reason string
	update bool    // its only reason is that the intent changed
	report bool    // only look
	heapAt int     // place in the agent's ready heap; -1 when not in it
	waitOn *node   // what holds the wish, when it is not ready
	held   []*node // wishes that may wait for this one; stale entries have another waitOn

	// The task that runs, when running is set.
	running    bool
	runPrio    Priority
	runVersion int
	runHash    string
	runReport  bool
	runProbe   bool // the breaker of its agent was open
	runReason  string
	runSeq     uint64
	runUpdate  bool
	behind     bool // in the executor, behind another one
	runVerify  bool // it was as intended: what has to be changed is drift

	retryAt int  // place in the heap of retries, plus one; 0 when not in it
	gated   bool // a window held the wish when its turn came

	seen  uint64             // mark of the search for holders
	clear [priorities]uint64 // epoch in which nothing here or below held a wish of that priority
}

// agent is a target; one of its resources runs at a time, or as many as its limit allows.
type agent struct {
	name     string
	paused   bool
	running  []*node // in the order in which they started
	behind   int     // how many of them wait for the one before
	recalled bool    // and were recalled
	ready    readyHeap
	limit    intent.AgentLimit
	last     time.Time // when something last started
	cooling  bool      // the gap since then is not over
	gate     agentGate
	timers   agentTimers
	// resources is how many the version has.
	resources int
	breaker   intent.Breaker
	probe     bool      // one task may start although the breaker is open
	misses    misses    // failures to reach the target
	heapAt    int       // place in the heap of agents with something to start; -1 when not in it
	jobs      agentJobs // its jobs
}

// less orders wishes: urgent first, then in the order in which they were made.
func (n *node) less(m *node) bool {
	if n.prio != m.prio {
		return n.prio < m.prio
	}
	return n.seq < m.seq
}

// dirty reports whether the resource is known not to be as intended.
func (n *node) dirty() bool { return n.state.Compliance != intent.Compliant }

// underWay reports whether a run of n for its present intent is under way, or as close as a wish of priority p would
// be. A run that only looks deploys nothing: it is as good as another look.
func (n *node) underWay(p Priority) bool {
	return n.running && n.runHash == n.state.IntentHash && (!n.runReport || p == RepairTimer) &&
		(!n.behind || n.runPrio <= p)
}

// holds reports whether n must end before a wish of priority p that needs it may run.
func (n *node) holds(p Priority) bool {
	return n.running || n.queued && (n.prio <= p || n.dirty())
}

// bad reports whether what needs n cannot run: n failed, was skipped or is blocked, or it is only reported to differ.
func (n *node) bad() bool {
	return n.state.LastRun == intent.RunFailed || n.state.LastRun == intent.RunSkipped ||
		n.state.Blocked != intent.NotBlocked ||
		n.reported()
}

// reported reports whether the handler found n to differ and, as configured, left it so. Another try would only
// report the same.
func (n *node) reported() bool {
	return n.state.Compliance == intent.NonCompliant && n.state.LastRun == intent.RunSuccessful
}

// readyHeap holds the wishes of one agent that nothing held when they were placed.
type readyHeap []*node

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].less(h[j]) }
func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}
func (h *readyHeap) Push(x any) {
	n := x.(*node)
	n.heapAt = len(*h)
	*h = append(*h, n)
}
func (h *readyHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	n.heapAt = -1
	return n
}

// agentHeap holds the agents that could start something, by their first wish.
type agentHeap []*agent

func (h agentHeap) Len() int           { return len(h) }
func (h agentHeap) Less(i, j int) bool { return h[i].ready[0].less(h[j].ready[0]) }
func (h agentHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}
func (h *agentHeap) Push(x any) {
	a := x.(*agent)
	a.heapAt = len(*h)
	*h = append(*h, a)
}
func (h *agentHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.heapAt = -1
	return a
}

// updateHeaps updates the heaps of agents after something about a changed.
func (s *Scheduler) updateHeaps(a *agent) {
	s.updateJobHeaps(a)
	able := a.free() && len(a.ready) > 0 && (!a.breaker.Open() || a.probe)
	switch {
	case able && a.heapAt < 0:
		heap.Push(&s.startable, a)
	case able:
		heap.Fix(&s.startable, a.heapAt)
	case a.heapAt >= 0:
		s.removeAble(a)
	}
}

// room reports whether one more task may run on the agent, jobs included: one at most while its target cannot be
// reached.
func (a *agent) room() bool {
	most, run := max(a.limit.Concurrency, 1), len(a.running)
	if a.jobs.running != nil {
		run++
	}
	if a.breaker.Open() {
		most = 1
	}
	return run < most
}

// free reports whether something may start on a.
func (a *agent) free() bool { return !a.paused && !a.cooling && a.room() }

// removeRunning removes a task from what is running.
func (a *agent) removeRunning(n *node) {
	if i := slices.Index(a.running, n); i >= 0 {
		a.running = slices.Delete(a.running, i, i+1)
	}
}

// removeAble removes a without comparing it: its ready heap may be empty.
func (s *Scheduler) removeAble(a *agent) {
	last := len(s.startable) - 1
	at := a.heapAt
	if at != last {
		s.startable.Swap(at, last)
	}
	s.startable.Pop()
	if at != last {
		heap.Fix(&s.startable, at)
	}
}

// unready removes a wish from its agent's ready heap.
func (s *Scheduler) unready(n *node) {
	if n.heapAt >= 0 {
		heap.Remove(&n.agent.ready, n.heapAt)
		s.updateHeaps(n.agent)
	}
}

// enqueue wishes for a run of n, or makes an existing wish more urgent. The wish is placed before the next start,
// when all wishes of the event are known.
func (s *Scheduler) enqueue(n *node, p Priority, reason string) {
	if n.pos < 0 || n.state.Blocked == intent.IsBlocked || p.Periodic() && n.state.Parked != intent.NotParked {
		return
	}
	n.update, n.report = false, false
	if n.queued && n.prio <= p {
		return
	}
	if !n.queued {
		s.seq++
		n.seq = s.seq
		n.queued = true
		s.wishes++
	}
	s.unready(n)
	n.prio, n.reason = p, reason
	s.raiseEpochs(n)
	s.toPlace = append(s.toPlace, n)
}

// raiseEpochs records that n may hold wishes now that it did not hold before.
func (s *Scheduler) raiseEpochs(n *node) {
	for p := range priorities {
		if n.holds(p) {
			s.epoch[p]++
		}
	}
}

// dequeue drops a wish.
func (s *Scheduler) dequeue(n *node) {
	if !n.queued {
		return
	}
	s.unready(n)
	n.queued, n.update, n.report, n.waitOn = false, false, false, nil
	s.wishes--
	s.wake(n)
}

// wake places again the wishes that waited for n.
func (s *Scheduler) wake(n *node) {
	held := n.held
	n.held = nil
	for _, w := range held {
		if w.waitOn == n {
			w.waitOn = nil
			if w.queued {
				s.toPlace = append(s.toPlace, w)
			}
		}
	}
}

// place makes a wish ready, or lets it wait for one thing that holds it. If that is less urgent, it becomes as urgent
// and is placed in turn.
func (s *Scheduler) place(n *node) {
	for n.queued && n.heapAt < 0 {
		h := s.holder(n)
		if h == nil {
			n.waitOn = nil
			heap.Push(&n.agent.ready, n)
			s.updateHeaps(n.agent)
			return
		}
		if n.waitOn != h {
			n.waitOn = h
			h.held = append(h.held, n)
		}
		if h.running && h.behind && h.runPrio > n.prio {
			s.recall(h.agent)
		}
		if h.running || h.prio <= n.prio {
			return
		}
		s.unready(h)
		h.prio = n.prio
		s.raiseEpochs(h)
		n = h
	}
}

// holder returns something that n needs, directly or through others, and that must end first; nil when there is none.
// The search stops at what is known to be clear in this epoch, so that in a long run each edge is looked at about
// once.
func (s *Scheduler) holder(n *node) *node {
	if n.pos < 0 {
		return nil
	}
	if n.running || n.looked() { // that has to end before it runs
		return n
	}
	return s.needed(n, n.prio)
}

// needed is holder without a look at n itself, for a wish of priority p.
func (s *Scheduler) needed(n *node, p Priority) *node {
	s.search++
	stack := append(s.stack[:0], n)
	visited := s.visited[:0]
	var found *node
search:
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, i := range s.graph.before[at.pos] {
			d := s.nodes[i]
			if d.seen == s.search {
				continue
			}
			d.seen = s.search
			if d.holds(p) {
				found = d
				break search
			}
			if d.clear[p] == s.epoch[p] {
				continue
			}
			visited = append(visited, d)
			stack = append(stack, d)
		}
	}
	if found == nil {
		for _, d := range visited {
			d.clear[p] = s.epoch[p]
		}
	}
	s.stack, s.visited = stack[:0], visited[:0]
	return found
}
