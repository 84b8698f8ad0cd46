package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// TaskDone takes the outcome of a Start. It returns the state that follows, then what can start now. An outcome that
// nothing waits for is ignored.
func (s *Scheduler) TaskDone(o Outcome, now time.Time) []Command {
	n := s.known[o.ID]
	if n == nil || !n.running || n.runVersion != o.Version {
		return nil
	}
	s.removeRunning(n)
	s.promoteBehind(n.agent, now)
	n.state.IsDeploying = false
	if n.pos < 0 {
		// It left the model while it ran: its outcome no longer matters.
		s.out = append(s.out, SetState{State: n.state})
		s.contact(n, o, now)
	} else {
		parked, drift := n.state.Parked, DriftNone
		if n.runReport {
			o.Change = intent.NoChange
			drift = s.recordLook(n, o, now)
		} else {
			drift = s.record(n, o, now)
		}
		s.scheduleRetry(n)
		s.out = append(s.out, SetState{
			State: n.state, Drift: drift, Parked: n.state.Parked != intent.NotParked && parked == intent.NotParked,
		})
		s.contact(n, o, now)
		s.wishForDependents(n, o)
	}
	s.wake(n)
	s.updateHeaps(n.agent)
	return s.decide(now)
}

// record updates the state with an outcome. When newer intent arrived meanwhile, the resource still has to be
// updated.
func (s *Scheduler) record(n *node, o Outcome, now time.Time) Drift {
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
		s.recovered(n)
	case st.LastRun == intent.RunSuccessful:
		st.DeployedHash = "" // something else is out there
		s.recovered(n)
	case st.LastRun == intent.RunFailed:
		st.DeployedHash = "" // what is out there is unknown
		if current {
			s.failed(n, o, now)
		}
	case o.Status == intent.StatusSkippedForDependency && s.badDependency(n) != nil:
		st.Blocked = intent.TemporarilyBlocked
	}
	if st.LastRun == intent.RunSkipped {
		st.RetryAt = nil // it did not fail; the timer tries it again
	} else {
		st.LastDeployed = n.runVersion
	}
	if changed(o) && s.graph.resources[n.pos].SendEvent {
		st.LastEvents = &now
	}
	if n.queued { // no longer as intended, it may hold wishes that it did not hold
		s.raiseEpochs(n)
	}
	if s.blocked[n.pos] {
		st.Blocked = intent.IsBlocked
	}
	return s.judge(n, o, now)
}

// recovered forgets failures. What is contested stays parked.
func (s *Scheduler) recovered(n *node) {
	st := &n.state
	st.Attempts, st.RetryAt = 0, nil
	if st.Parked != intent.ParkedContested {
		st.Parked, st.ParkedAt, st.FailedCode = intent.NotParked, nil, ""
	}
}

// failed counts a failure and sets when to try again, or parks. An unreachable target says nothing about the
// resource: it never parks it, and counts for no more than half of the way there.
func (s *Scheduler) failed(n *node, o Outcome, now time.Time) {
	st, most := &n.state, s.policy.MaxAttempts
	if !o.Unreachable || most == 0 || st.Attempts < most/2 {
		st.Attempts++
	}
	st.FailedCode = s.code[st.ID.Type]
	switch {
	case st.Parked != intent.NotParked:
	case most > 0 && st.Attempts >= most && !o.Unreachable:
		s.park(n, intent.ParkedAttempts, now)
	default:
		s.failedAgain(n, now)
	}
}

// wishForDependents wishes for those that an outcome concerns: resources that waited for the recovery of n, and those
// that receive an event when n changed something.
func (s *Scheduler) wishForDependents(n *node, o Outcome) {
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

// resultOf derives how a run ended from the status that the handler reported.
func resultOf(status intent.Status) intent.HandlerResult {
	switch status {
	case intent.StatusDeployed, intent.StatusNonCompliant:
		return intent.RunSuccessful
	case intent.StatusSkipped, intent.StatusSkippedForDependency:
		return intent.RunSkipped
	}
	return intent.RunFailed
}
