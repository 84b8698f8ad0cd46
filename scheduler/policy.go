package scheduler

import (
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Policy says when to stop trying. The zero value never stops.
type Policy struct {
	// MaxAttempts parks a resource that failed this often for one intent; 0 never.
	MaxAttempts int
	// ReportDrift makes the repair timer look and enforce nothing.
	ReportDrift bool
	// HealLimit parks a resource whose same drift was healed this often within HealWindow; 0 never.
	HealLimit  int
	HealWindow time.Duration // default a week
	// BreakerFailures opens the breaker of an agent after this many successive failures to reach its target; 0 never.
	// BreakerPause is the first pause before a probe; it doubles up to an hour.
	BreakerFailures int
	BreakerPause    time.Duration // default a minute
	// Protected resources are never purged, whatever the intent is.
	Protected intent.Patterns
}

func (p Policy) withDefaults() Policy {
	if p.HealWindow <= 0 {
		p.HealWindow = 7 * 24 * time.Hour
	}
	if p.BreakerPause <= 0 {
		p.BreakerPause = time.Minute
	}
	return p
}

// SetPolicy changes the policy. Parked resources stay parked; open breakers close where breakers are turned off;
// waiting repairs become looks where drift is only reported from now on; what is no longer protected is purged.
func (s *Scheduler) SetPolicy(p Policy, now time.Time) []Command {
	before := s.policy
	s.policy = p.withDefaults()
	if p.BreakerFailures == 0 {
		s.closeBreakers()
	}
	if p.ReportDrift {
		for _, n := range s.nodes {
			if !n.queued || n.prio != RepairTimer {
				continue
			}
			if n.report = true; n.dirty() && !n.state.Drifted {
				s.dequeue(n)
			}
		}
		s.refreshWindows(now) // a look is not held
	}
	s.scheduleRetries()
	if !slices.Equal(p.Protected, before.Protected) {
		s.unprotect()
	}
	return s.decide(now)
}

// unprotect wishes for purges that only protection held back.
func (s *Scheduler) unprotect() {
	for _, n := range s.nodes {
		if n.state.Blocked == intent.TemporarilyBlocked && s.graph.resources[n.pos].Purged && !s.forbidden(n) &&
			s.badDependency(n) == nil {
			s.enqueue(n, NewVersion, "no longer protected")
		}
	}
}

// forbidden reports whether a run of n would purge something protected.
func (s *Scheduler) forbidden(n *node) bool {
	return !n.report && s.graph.resources[n.pos].Purged && s.policy.Protected.Match(n.state.ID)
}

// park leaves n alone until a person or new intent unparks it.
func (s *Scheduler) park(n *node, why intent.Parking, now time.Time) {
	st := &n.state
	st.Parked, st.ParkedAt, st.RetryAt = why, &now, nil
	st.FailedCode = s.code[st.ID.Type]
	if n.queued && n.prio.Periodic() {
		s.dequeue(n)
	}
}

// unpark ends the parking of n.
func (s *Scheduler) unpark(n *node) {
	if n.state.Parked == intent.NotParked {
		return
	}
	n.state = Unparked(n.state)
	s.scheduleRetry(n)
	s.out = append(s.out, SetState{State: n.state, Freed: true})
}

// Unpark unparks resources on a person's request; those that are not as intended are tried at once. No resources means
// all that are parked.
func (s *Scheduler) Unpark(ids []intent.ResourceID, now time.Time) []Command {
	for _, n := range s.chosen(Filter{Resources: ids}) {
		if n.state.Parked == intent.NotParked {
			continue
		}
		s.unpark(n)
		if n.dirty() && !n.running {
			s.allowProbe(n.agent)
			s.enqueue(n, UserDeploy, "unparked")
		}
	}
	return s.decide(now)
}
