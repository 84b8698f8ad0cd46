package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// TaskDone takes the outcome of a Start. It gives the state that follows, then
// what can start now. An outcome that nothing waits for is ignored.
func (s *Scheduler) TaskDone(o Outcome, now time.Time) []Command {
	n := s.known[o.ID]
	if n == nil || !n.running || n.runVersion != o.Version {
		return nil
	}
	n.running = false
	n.agent.running = nil
	s.running--
	if n.runPrio.Periodic() {
		s.periodic--
	}
	n.state.IsDeploying = false
	if n.pos < 0 {
		// It left the model while it ran: what came of it no longer matters.
		s.out = append(s.out, SetState{State: n.state})
	} else {
		s.record(n, o, now)
		s.out = append(s.out, SetState{State: n.state})
		s.spread(n, o)
	}
	s.wake(n)
	s.touch(n.agent)
	return s.decide(now)
}

// record brings the state up to date with an outcome. When newer intent
// arrived meanwhile, the resource stays as that left it: to be updated.
func (s *Scheduler) record(n *node, o Outcome, now time.Time) {
	st := &n.state
	st.LastRunAt = &now
	st.LastRun = resultOf(o.Status)
	st.Blocked = intent.NotBlocked
	current := n.runHash == st.IntentHash
	if current {
		st.Compliance = intent.NonCompliant
	}
	switch {
	case o.Status == intent.StatusDeployed:
		st.DeployedHash = n.runHash
		st.LastSuccess = &now
		if current {
			st.Compliance = intent.Compliant
		}
		st.Attempts = 0
	case st.LastRun == intent.RunSuccessful:
		st.DeployedHash = "" // something else is out there
		st.Attempts = 0
	case st.LastRun == intent.RunFailed:
		st.DeployedHash = "" // nobody knows what is out there
		if current {
			st.Attempts++
		}
	case o.Status == intent.StatusSkippedForDependency && s.badDependency(n) != nil:
		st.Blocked = intent.TemporarilyBlocked
	}
	if st.LastRun != intent.RunSkipped {
		st.LastDeployed = n.runVersion
	}
	if changed(o) && s.graph.resources[n.pos].SendEvent {
		st.LastEvents = &now
	}
	if n.queued { // not as intended now, it may hold what it did not hold
		s.stirred(n)
	}
	if s.blocked[n.pos] {
		st.Blocked = intent.IsBlocked
	}
}

// spread wishes for those that an outcome concerns: those that waited for the
// recovery of n, and those that want to know when n changed something.
func (s *Scheduler) spread(n *node, o Outcome) {
	if !n.bad() {
		for _, i := range s.graph.after[n.pos] {
			d := s.nodes[i]
			if d.state.Blocked == intent.TemporarilyBlocked && s.badDependency(d) == nil {
				s.enqueue(d, n.runPrio, n.state.ID.String()+" recovered")
			}
		}
	}
	if changed(o) && s.graph.resources[n.pos].SendEvent {
		for _, i := range s.graph.provides[n.pos] {
			d := s.nodes[i]
			if s.graph.resources[i].ReceiveEvents && d.state.Blocked == intent.NotBlocked {
				s.enqueue(d, n.runPrio, n.state.ID.String()+" changed")
			}
		}
	}
}

func changed(o Outcome) bool { return o.Change != "" && o.Change != intent.NoChange }

// resultOf tells how a run ended from what the handler reported.
func resultOf(status intent.Status) intent.HandlerResult {
	switch status {
	case intent.StatusDeployed, intent.StatusNonCompliant:
		return intent.RunSuccessful
	case intent.StatusSkipped, intent.StatusSkippedForDependency:
		return intent.RunSkipped
	}
	return intent.RunFailed
}

// retryAt is when a timer may try a failing resource again: after its last run
// by a pause that doubles with each failure up to a cap, shortened by up to a
// quarter so that many that failed together do not return together. The
// jitter depends on nothing but the seed, the resource and the attempt.
func (s *Scheduler) retryAt(n *node) time.Time {
	if n.state.Attempts == 0 || n.state.LastRunAt == nil {
		return time.Time{}
	}
	pause := s.limits.RetryCap
	if shift := n.state.Attempts - 1; shift < 32 && s.limits.RetryBase<<shift>>shift == s.limits.RetryBase {
		pause = min(pause, s.limits.RetryBase<<shift)
	}
	return n.state.LastRunAt.Add(pause - time.Duration(float64(pause)*jitter(s.limits.Seed, n.state.ID, n.state.Attempts)/4))
}

// jitter gives a number in [0, 1) (FNV-1a over its arguments).
func jitter(seed uint64, id intent.ResourceID, attempt int) float64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	add := func(x uint64) {
		for range 8 {
			h = (h ^ x&0xff) * prime
			x >>= 8
		}
	}
	add(seed)
	for _, part := range []string{id.Type, id.Agent, id.Attribute, id.Value} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	add(uint64(attempt))
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}
