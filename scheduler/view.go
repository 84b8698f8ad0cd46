package scheduler

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Wish is a resource that should run and does not yet.
type Wish struct {
	ID       intent.ResourceID
	Priority Priority
	Reason   string
	// WaitsFor is a resource that has to end first; zero when the wish waits for its agent.
	WaitsFor intent.ResourceID
	Paused   bool // its agent is paused
	// Gate is the window that holds it now, if any.
	Gate intent.Gate
	// Unreachable is the time since when the target of its agent cannot be reached; nil when the breaker is closed.
	Unreachable *time.Time
}

// Running is a resource that is running.
type Running struct {
	ID       intent.ResourceID
	Version  int
	Priority Priority
}

// Wishes lists what should run at a time, most urgent first; at most limit of them, 0 for all.
func (s *Scheduler) Wishes(limit int, now time.Time) []Wish {
	queued := make([]*node, 0, s.wishes)
	for _, n := range s.nodes {
		if n.queued {
			queued = append(queued, n)
		}
	}
	slices.SortFunc(queued, func(a, b *node) int {
		if a.less(b) {
			return -1
		}
		return 1
	})
	if limit > 0 && len(queued) > limit {
		queued = queued[:limit]
	}
	out := make([]Wish, len(queued))
	gates := make(map[string]intent.Gate)
	for i, n := range queued {
		out[i] = Wish{
			ID:          n.state.ID,
			Priority:    n.prio,
			Reason:      n.reason,
			Paused:      n.agent.paused,
			Unreachable: n.agent.breaker.Since,
		}
		if s.held(n) {
			out[i].Gate = s.gateOf(n, gates, now)
		}
		if n.waitOn != nil {
			out[i].WaitsFor = n.waitOn.state.ID
		}
	}
	return out
}

// Running lists what is running, by agent.
func (s *Scheduler) Running() []Running {
	out := make([]Running, 0, s.running)
	for _, a := range s.agents {
		for _, n := range a.running {
			out = append(out, Running{ID: n.state.ID, Version: n.runVersion, Priority: n.runPrio})
		}
	}
	slices.SortStableFunc(out, func(a, b Running) int { return strings.Compare(a.ID.Agent, b.ID.Agent) })
	return out
}

// Ahead predicts, for each agent that is busy, up to n of the tasks that would start there next if nothing else came,
// in that order. Asking changes nothing, and nothing is promised. While agents wait because the environment limits
// how much runs at once, nothing is predicted. What the caller knows already counts, and is left out.
func (s *Scheduler) Ahead(n int, known func(intent.ResourceID) bool) []Start {
	if s.halted || len(s.startable) > 0 || n <= 0 {
		return nil
	}
	var out []Start
	for _, name := range s.Agents() {
		a := s.agents[name]
		if len(a.running) == 0 || a.paused || len(a.ready) == 0 || a.breaker.Open() || a.limit.MinGap > 0 ||
			a.hasJobs() {
			continue
		}
		// The first elements of a heap, without removing them: the next one is always a child of an earlier one.
		next := frontier{of: a.ready, at: []int{0}}
		for found := 0; next.Len() > 0 && found < n; {
			w := next.take()
			if known(w.state.ID) {
				found++
				continue
			}
			if s.holder(w) == nil && s.badDependency(w) == nil && !w.running && !s.forbidden(w) && !s.held(w) {
				out = append(out, s.command(w))
				found++
			}
		}
	}
	return out
}

// frontier is a heap of places in a heap of wishes, below which nothing has been looked at yet.
type frontier struct {
	of readyHeap
	at []int
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return f.of.Less(f.at[i], f.at[j]) }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }
func (f *frontier) Push(at any)        { f.at = append(f.at, at.(int)) }
func (f *frontier) Pop() any {
	last := f.at[len(f.at)-1]
	f.at = f.at[:len(f.at)-1]
	return last
}

// take returns the first wish of the frontier, and puts those below it in its place.
func (f *frontier) take() *node {
	at := f.at[0]
	if child := 2*at + 1; child < len(f.of) {
		f.at[0] = child
		heap.Fix(f, 0)
		if child++; child < len(f.of) {
			heap.Push(f, child)
		}
	} else {
		heap.Pop(f)
	}
	return f.of[at]
}

// Idle reports whether nothing is running and nothing can start before another event: what is still wished for waits
// for a paused agent or a halted environment.
func (s *Scheduler) Idle() bool { return s.running == 0 && s.jobs.running == [jobKinds]int{} }

// Waiting returns the number of wishes.
func (s *Scheduler) Waiting() int { return s.wishes }

// Version returns the number of the intent, 0 before the first.
func (s *Scheduler) Version() int { return s.version }

// State returns what is known about a resource; false when it is unknown.
func (s *Scheduler) State(id intent.ResourceID) (intent.ResourceState, bool) {
	n := s.known[id]
	if n == nil {
		return intent.ResourceState{}, false
	}
	return n.state, true
}

// Resource returns a resource as the version has it; false when the version does not have it.
func (s *Scheduler) Resource(id intent.ResourceID) (intent.Resource, bool) {
	n := s.known[id]
	if n == nil || n.pos < 0 {
		return intent.Resource{}, false
	}
	return *s.graph.resources[n.pos], true
}

// States returns the state of every resource of the version, by id.
func (s *Scheduler) States() []intent.ResourceState {
	out := make([]intent.ResourceState, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = n.state
	}
	return out
}

// Agents lists the names of the agents that ever had a resource, sorted.
func (s *Scheduler) Agents() []string {
	out := make([]string, 0, len(s.agents))
	for name := range s.agents {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
