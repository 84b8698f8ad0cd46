package scheduler

import (
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Where tasks take a millisecond, an agent mostly waits for its next one to be sent. So a task may be sent before the
// one that is running has ended, and waits *behind* it in the executor, which still does one after the other:
//
//	             Behind            the one before ends
//	ready wish ─────────▶ behind ───────────────────────▶ running
//	     ▲                  │ Recall, and it had not begun
//	     └──── Withdrawn ───┘
//
// What is behind counts as running for everything that needs it. It is sent only where nothing could come in between
// that the scheduler knows of: what it needs has ended, no job is waiting, no window is about to open or close, the
// last task there reached its target. When a task does not reach its target, the executor returns what is behind it
// by itself. When something else comes (a pause, a halt, a new version, other rules, a more urgent wish or job, a
// wish for something that it needs, no room for others), all that is behind on the agent is recalled. If one of these
// has begun nevertheless, it is the one running task that everything waits for anyway.

// beforeEdge is how long before a window opens or closes nothing is sent before its turn.
const beforeEdge = time.Second

// Recall asks for what is behind on an agent and has not begun. Withdrawn or TaskDone must come for each of these
// tasks.
type Recall struct {
	Agent string
	Tasks []intent.ResourceID
}

func (Recall) isCommand() {}

// Behind starts up to n tasks behind the one that runs on an agent: those that would start there next if nothing else
// came, in that order. It stops at the first one that is not ready. Beside these it may recall what has to wait for
// one of them.
func (s *Scheduler) Behind(agent string, n int, ready func(Start) bool, now time.Time) []Command {
	a := s.agents[agent]
	if a == nil || a.recalled {
		return nil
	}
	for a.behind < n && s.mayAddBehind(a, now) {
		w := a.ready[0]
		if w.report || s.holder(w) != nil || s.badDependency(w) != nil || s.forbidden(w) || s.held(w) {
			break
		}
		c := s.command(w)
		if !ready(c) {
			break
		}
		s.unready(w)
		s.begin(w, c)
		w.behind = true
		if a.behind++; a.behind == 1 {
			s.withBehind = append(s.withBehind, a)
		}
		s.out = append(s.out, c)
	}
	s.recallOvertaken()
	out := s.out
	s.out = nil
	return out
}

// mayAddBehind reports whether one more task may be sent to a behind the one that runs there.
func (s *Scheduler) mayAddBehind(a *agent, now time.Time) bool {
	if len(a.running) == 0 || len(a.ready) == 0 || a.running[0].behind || a.hasJobs() || a.misses.count > 0 ||
		!s.allowsBehind(a) {
		return false
	}
	if edge := s.gates.edge; !edge.IsZero() && edge.Sub(now) < beforeEdge {
		return false
	}
	most := s.bounds().Concurrency // others should find room
	return most <= 0 || s.running < most/2
}

// allowsBehind reports whether the rules, as they are, allow tasks to be behind on a.
func (s *Scheduler) allowsBehind(a *agent) bool {
	return !s.halted && !a.paused && !a.breaker.Open() && a.limit.Concurrency <= 1 && a.limit.MinGap == 0
}

// recall asks for what is behind on a.
func (s *Scheduler) recall(a *agent) {
	if a.behind == 0 || a.recalled {
		return
	}
	a.recalled = true
	c := Recall{Agent: a.name}
	for _, n := range a.running {
		if n.behind {
			c.Tasks = append(c.Tasks, n.state.ID)
		}
	}
	s.out = append(s.out, c)
}

// RecallAll asks for all that is behind, on one agent or on all (empty).
func (s *Scheduler) RecallAll(agent string) []Command {
	for _, a := range s.withBehind {
		if agent == "" || a.name == agent {
			s.recall(a)
		}
	}
	out := s.out
	s.out = nil
	return out
}

// recallOvertaken recalls what something else should go before.
func (s *Scheduler) recallOvertaken() {
	for _, a := range s.withBehind {
		if !a.recalled && s.overtaken(a) {
			s.recall(a)
		}
	}
}

func (s *Scheduler) overtaken(a *agent) bool {
	most := s.bounds().Concurrency
	if !s.allowsBehind(a) || most > 0 && s.running > most {
		return true
	}
	for _, n := range a.running {
		switch {
		case !n.behind:
		case n.pos < 0, s.blocked[n.pos], s.held(n), s.forbidden(n), n.runPrio == RepairTimer && s.policy.ReportDrift:
			return true
		case len(a.ready) > 0 && a.ready[0].prio < n.runPrio:
			return true
		case slices.ContainsFunc(kinds[:], func(p Priority) bool { return p < n.runPrio && a.waitsFor(p) }):
			return true
		case n.clear[n.runPrio] != s.epoch[n.runPrio]:
			if s.needed(n, n.runPrio) != nil {
				return true
			}
			n.clear[n.runPrio] = s.epoch[n.runPrio]
		}
	}
	return false
}

// Withdrawn takes the answer to a Recall for a task that did not begin and never will: the wish is there again, as
// urgent as it was.
func (s *Scheduler) Withdrawn(id intent.ResourceID, version int, now time.Time) []Command {
	n := s.known[id]
	if n == nil || !n.running || n.runVersion != version {
		return nil
	}
	s.removeRunning(n)
	n.state.IsDeploying = false
	if n.pos >= 0 {
		s.wishAgain(n)
	}
	s.wake(n)
	s.updateHeaps(n.agent)
	return s.decide(now)
}

// wishAgain wishes for what was withdrawn.
func (s *Scheduler) wishAgain(n *node) {
	queued, seq, update := n.queued, n.runSeq, n.update
	look := n.runPrio == RepairTimer && s.policy.ReportDrift
	if look && n.dirty() && !n.state.Drifted {
		return // as SetPolicy does
	}
	s.enqueue(n, n.runPrio, n.runReason)
	if !n.queued {
		return
	}
	if !queued {
		n.seq, n.update, n.report = seq, n.runUpdate, look
		return
	}
	n.update = update && n.runUpdate
}

// removeRunning removes n, which ended or never began, from what is running.
func (s *Scheduler) removeRunning(n *node) {
	a := n.agent
	n.running = false
	a.removeRunning(n)
	s.running--
	if n.runPrio.Periodic() {
		s.periodic--
	}
	s.unbehind(n)
}

func (s *Scheduler) unbehind(n *node) {
	if n.behind {
		n.behind = false
		if n.agent.behind--; n.agent.behind == 0 {
			n.agent.recalled = false
			s.withBehind = slices.DeleteFunc(s.withBehind, func(a *agent) bool { return a == n.agent })
		}
	}
}

// promoteBehind lets the first task behind on an agent run, after the end of what ran there.
func (s *Scheduler) promoteBehind(a *agent, now time.Time) {
	if a.behind > 0 && a.running[0].behind {
		s.unbehind(a.running[0])
		s.noteStart(a, now)
	}
}
