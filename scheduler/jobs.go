package scheduler

import (
	"container/heap"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Beside wishes there are *jobs*: looking at a resource, of any version, for a dry run, and asking a resource for its
// facts. A job takes its agent like a wish does, and nothing else: it changes no state, waits for no other resource
// and does not count among the deployments of the environment.
//
//	          its agent is free, no wish there is as urgent, room among its kind
//	waiting ─────────────────────────────────────────────────────────────────────▶ running ──▶ (gone)
//	   └──▶ refused: its agent is paused, or its target cannot be reached; taken back
//
// So a push waits for at most the one job that runs on its agent, and jobs go on while pushes wait for something
// else. Where an agent does several things at once, a resource is not looked at while it is being deployed, nor the
// other way round.

// Job is one job of either kind.
type Job struct {
	// Run is the dry run that it belongs to; zero for a question for facts.
	Run      intent.ActionID
	Resource intent.ResourceID
}

// Priority is DryRun or FactRefresh.
func (j Job) Priority() Priority { return kinds[j.kind()] }

func (j Job) kind() jobKind {
	if j.Run == (intent.ActionID{}) {
		return factJob
	}
	return dryJob
}

type jobKind uint8

const (
	dryJob jobKind = iota
	factJob
	jobKinds
)

var kinds = [jobKinds]Priority{DryRun, FactRefresh}

// StartJob asks for a job to be done; JobDone must follow.
type StartJob struct{ Job Job }

// Refusal is why a job is not done.
type Refusal uint8

// Reasons to refuse a job.
const (
	RefusedPaused      Refusal = iota // its agent is paused
	RefusedUnreachable                // the target of its agent cannot be reached
)

// RefuseJob reports that a job will not be done. No JobDone follows.
type RefuseJob struct {
	Job Job
	Why Refusal
}

func (StartJob) isCommand()  {}
func (RefuseJob) isCommand() {}

// agentJobs is the jobs of one agent.
type agentJobs struct {
	waiting [jobKinds][]*waitingJob // oldest first
	running *Job
	missed  int // successive looks that did not reach the target
	heapAt  [jobKinds]int
}

type waitingJob struct {
	job Job
	seq uint64
}

// jobs is the state of all jobs.
type jobs struct {
	able    [jobKinds]jobHeap // agents that could do one now
	running [jobKinds]int
	known   map[Job]bool // waiting or running
}

// Enqueue adds jobs in this order; those that are known already are left out.
func (s *Scheduler) Enqueue(list []Job, now time.Time) []Command {
	if s.jobs.known == nil {
		s.jobs.known = make(map[Job]bool)
	}
	for _, j := range list {
		if s.jobs.known[j] {
			continue
		}
		a := s.agentNamed(j.Resource.Agent)
		if why, refused := a.refuses(); refused {
			s.out = append(s.out, RefuseJob{Job: j, Why: why})
			continue
		}
		s.seq++
		s.jobs.known[j] = true
		a.jobs.waiting[j.kind()] = append(a.jobs.waiting[j.kind()], &waitingJob{job: j, seq: s.seq})
		s.updateHeaps(a)
	}
	return s.decide(now)
}

// CancelJobs drops the waiting jobs of a dry run. What is running ends as usual.
func (s *Scheduler) CancelJobs(run intent.ActionID, now time.Time) []Command {
	mine := func(w *waitingJob) bool {
		if w.job.Run != run {
			return false
		}
		delete(s.jobs.known, w.job)
		return true
	}
	for _, a := range s.agents {
		for kind, list := range a.jobs.waiting {
			a.jobs.waiting[kind] = slices.DeleteFunc(list, mine)
		}
		s.updateHeaps(a)
	}
	return s.decide(now)
}

// JobDone takes the end of a job. When successive looks do not reach the target of an agent, as many as open a
// breaker, the jobs that wait there are refused.
func (s *Scheduler) JobDone(j Job, unreachable bool, now time.Time) []Command {
	a := s.agents[j.Resource.Agent]
	if a == nil || a.jobs.running == nil || *a.jobs.running != j {
		return nil
	}
	a.jobs.running = nil
	s.jobs.running[j.kind()]--
	delete(s.jobs.known, j)
	if n := s.known[j.Resource]; n != nil {
		s.wake(n) // its deployment may be waiting for the look
	}
	if !unreachable {
		a.jobs.missed = 0
	} else if a.jobs.missed++; s.policy.BreakerFailures > 0 && a.jobs.missed >= s.policy.BreakerFailures {
		a.jobs.missed = 0
		s.refuseJobs(a, RefusedUnreachable)
	}
	s.updateHeaps(a)
	return s.decide(now)
}

// hasJobs reports whether a job waits on a, so that what comes next there is not a wish.
func (a *agent) hasJobs() bool {
	return len(a.jobs.waiting[dryJob])+len(a.jobs.waiting[factJob]) > 0
}

// waitsFor reports whether a job of a priority waits on a.
func (a *agent) waitsFor(p Priority) bool {
	return len(a.jobs.waiting[slices.Index(kinds[:], p)]) > 0
}

// nextJob returns the place of the oldest job whose resource is not being deployed; -1 when there is none.
func (a *agent) nextJob(kind jobKind) int {
	return slices.IndexFunc(a.jobs.waiting[kind], func(w *waitingJob) bool {
		return !slices.ContainsFunc(a.running, func(n *node) bool { return n.state.ID == w.job.Resource })
	})
}

// looked reports whether a job is looking at n.
func (n *node) looked() bool {
	return n.agent.jobs.running != nil && n.agent.jobs.running.Resource == n.state.ID
}

// refuses reports whether a takes no jobs at all.
func (a *agent) refuses() (Refusal, bool) {
	if a.paused {
		return RefusedPaused, true
	}
	return RefusedUnreachable, a.breaker.Open()
}

// refuseJobs refuses what waits on an agent.
func (s *Scheduler) refuseJobs(a *agent, why Refusal) {
	for kind, list := range a.jobs.waiting {
		for _, w := range list {
			delete(s.jobs.known, w.job)
			s.out = append(s.out, RefuseJob{Job: w.job, Why: why})
		}
		a.jobs.waiting[kind] = nil
	}
	s.updateHeaps(a)
}

// updateJobHeaps updates the heaps of agents that could do a job; updateHeaps calls it.
func (s *Scheduler) updateJobHeaps(a *agent) {
	for kind := range jobKinds {
		h := &s.jobs.able[kind]
		h.kind = kind
		able := a.nextJob(kind) >= 0 && a.free() && a.jobs.running == nil && !a.breaker.Open() &&
			(len(a.ready) == 0 || a.ready[0].prio > kinds[kind]) && (kind == dryJob || len(a.jobs.waiting[dryJob]) == 0)
		at := a.jobs.heapAt[kind] - 1
		switch {
		case able && at < 0:
			heap.Push(h, a)
		case able:
			heap.Fix(h, at)
		case at >= 0:
			h.remove(at)
		}
	}
}

// remove removes the agent at a place without comparing it: it may have no job left.
func (h *jobHeap) remove(at int) {
	last := len(h.agents) - 1
	if at != last {
		h.Swap(at, last)
	}
	h.Pop()
	if at != last {
		heap.Fix(h, at)
	}
}

// jobBefore starts a job on a if one is more urgent than its wish of priority p and there is room for it.
func (s *Scheduler) jobBefore(a *agent, p Priority, now time.Time) bool {
	for kind := range jobKinds {
		if kinds[kind] < p && a.jobs.heapAt[kind] > 0 && s.jobRoom(kind) {
			s.startJob(a, kind, now)
			return true
		}
	}
	return false
}

// startJobs starts what there is room for, oldest first.
func (s *Scheduler) startJobs(now time.Time) {
	for kind := range jobKinds {
		for s.jobRoom(kind) && len(s.jobs.able[kind].agents) > 0 {
			s.startJob(s.jobs.able[kind].agents[0], kind, now)
		}
	}
}

func (s *Scheduler) jobRoom(kind jobKind) bool {
	most := [jobKinds]int{dryJob: s.limits.DryRuns, factJob: s.limits.Facts}
	return s.jobs.running[kind] < most[kind]
}

func (s *Scheduler) startJob(a *agent, kind jobKind, now time.Time) {
	at := a.nextJob(kind)
	j := a.jobs.waiting[kind][at].job
	if at == 0 {
		a.jobs.waiting[kind][0] = nil
		a.jobs.waiting[kind] = a.jobs.waiting[kind][1:]
	} else {
		a.jobs.waiting[kind] = slices.Delete(a.jobs.waiting[kind], at, at+1)
	}
	a.jobs.running = &j
	s.jobs.running[kind]++
	s.noteStart(a, now)
	s.updateHeaps(a)
	s.out = append(s.out, StartJob{Job: j})
}

// Jobs counts the jobs of a priority, DryRun or FactRefresh, that run.
func (s *Scheduler) Jobs(p Priority) int { return s.jobs.running[slices.Index(kinds[:], p)] }

// jobHeap orders agents by the oldest job of a kind that waits there.
type jobHeap struct {
	kind   jobKind
	agents []*agent
}

func (h *jobHeap) Len() int { return len(h.agents) }
func (h *jobHeap) Less(i, j int) bool {
	return h.agents[i].jobs.waiting[h.kind][0].seq < h.agents[j].jobs.waiting[h.kind][0].seq
}
func (h *jobHeap) Swap(i, j int) {
	h.agents[i], h.agents[j] = h.agents[j], h.agents[i]
	h.agents[i].jobs.heapAt[h.kind], h.agents[j].jobs.heapAt[h.kind] = i+1, j+1
}
func (h *jobHeap) Push(x any) {
	a := x.(*agent)
	h.agents = append(h.agents, a)
	a.jobs.heapAt[h.kind] = len(h.agents)
}
func (h *jobHeap) Pop() any {
	a := h.agents[len(h.agents)-1]
	h.agents[len(h.agents)-1] = nil
	h.agents = h.agents[:len(h.agents)-1]
	a.jobs.heapAt[h.kind] = 0
	return a
}
