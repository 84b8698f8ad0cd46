package scheduler

import (
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Each agent has a breaker. While it is open nothing starts there but a probe:
//
//	        failures in a row            the pause is over, or somebody asks
//	closed ───────────────────▶ open ─────────────────────────────────────▶ probing
//	   ▲                          ▲            not reached: the pause doubles  │ │
//	   │                          └────────────────────────────────────────────┘ │
//	   └─────────────────────────────────── reached ────────────────────────────┘
//
// A person who deploys asks, and so does a new version that changed something on the agent; neither should wait for a
// pause that has grown long.

const longestPause = time.Hour

// misses counts the failures to reach a target since it was last reached.
type misses struct {
	count   int
	first   intent.ResourceID
	several bool // of more than one resource
}

// contact updates the breaker with an outcome.
func (s *Scheduler) contact(n *node, o Outcome, now time.Time) {
	a := n.agent
	switch {
	case o.Unreachable && a.breaker.Open():
		if n.runProbe {
			a.breaker.Failures++
			s.scheduleProbe(a, min(2*a.breaker.Pause, longestPause), now, false)
		}
	case o.Unreachable:
		a.misses.several = a.misses.several || a.misses.count > 0 && a.misses.first != o.ID
		a.misses.first = o.ID
		a.misses.count++
		// One resource that fails says little about a target that has others.
		limit := s.policy.BreakerFailures
		if limit > 0 && a.misses.count >= limit && (a.misses.several || a.resources <= 1) {
			a.breaker = intent.Breaker{Since: &now, Failures: a.misses.count}
			s.open[a.name] = a
			s.scheduleProbe(a, s.policy.BreakerPause, now, true)
			s.refuseJobs(a, RefusedUnreachable)
		}
	case resultOf(o.Status) != intent.RunSkipped && o.Status != intent.StatusUnavailable:
		s.reached(a)
	case a.breaker.Open() && n.runProbe: // it was not tried
		s.scheduleProbe(a, a.breaker.Pause, now, false)
	}
}

// scheduleProbe lets the next probe start after a pause.
func (s *Scheduler) scheduleProbe(a *agent, pause time.Duration, now time.Time, opened bool) {
	at := now.Add(pause)
	a.breaker.Pause, a.breaker.ProbeAt = pause, &at
	s.out = append(s.out, SetBreaker{Agent: a.name, Breaker: a.breaker, Opened: opened})
}

func (s *Scheduler) reached(a *agent) {
	a.misses = misses{}
	if a.breaker.Open() {
		a.breaker, a.probe = intent.Breaker{}, false
		delete(s.open, a.name)
		s.out = append(s.out, SetBreaker{Agent: a.name})
		s.updateHeaps(a)
	}
}

func (s *Scheduler) closeBreakers() {
	for _, name := range slices.Sorted(maps.Keys(s.open)) {
		s.reached(s.open[name])
	}
}

// allowProbe lets one task try the target of an agent, without a pause.
func (s *Scheduler) allowProbe(a *agent) {
	if a.breaker.Open() && len(a.running) == 0 && !a.probe {
		a.probe = true
		s.updateHeaps(a)
	}
}

// probeDue allows the probes whose pause is over. What starts then follows from the order of wishes, not from that of
// the agents here.
func (s *Scheduler) probeDue(now time.Time) {
	for _, a := range s.open {
		if !a.breaker.ProbeAt.After(now) {
			s.allowProbe(a)
		}
	}
}

// nextProbe returns when the first probe is due; zero when none is waiting.
func (s *Scheduler) nextProbe() time.Time {
	var first time.Time
	for _, a := range s.open {
		if at := *a.breaker.ProbeAt; len(a.running) == 0 && !a.probe && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Breaker returns the breaker of an agent.
func (s *Scheduler) Breaker(agent string) intent.Breaker {
	if a := s.agents[agent]; a != nil {
		return a.breaker
	}
	return intent.Breaker{}
}
