package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// An agent may have a minimum gap between two starts. After a start it is *cooling* for that long, and nothing starts
// there.

// noteStart records that something started on an agent.
func (s *Scheduler) noteStart(a *agent, now time.Time) {
	a.last = now
	s.startCooling(a)
}

// startCooling lets an agent cool after its limit or its last start changed.
func (s *Scheduler) startCooling(a *agent) {
	if a.limit.MinGap > 0 && !a.last.IsZero() && !a.cooling {
		a.cooling = true
		s.cooling = append(s.cooling, a)
	}
}

// endCooling ends the cooling of agents whose gap is over.
func (s *Scheduler) endCooling(now time.Time) {
	kept := s.cooling[:0]
	for _, a := range s.cooling {
		if a.limit.MinGap > 0 && now.Before(a.last.Add(a.limit.MinGap)) {
			kept = append(kept, a)
			continue
		}
		a.cooling = false
		s.updateHeaps(a)
	}
	clear(s.cooling[len(kept):])
	s.cooling = kept
}

// nextCooled returns when the gap of the first agent ends that has something to start; zero when none has.
func (s *Scheduler) nextCooled() (first time.Time) {
	for _, a := range s.cooling {
		if !a.paused && a.room() && (len(a.ready) > 0 || a.hasJobs()) {
			first = intent.Earlier(first, a.last.Add(a.limit.MinGap))
		}
	}
	return first
}

// lastStarts reads from the record when something last ran on each agent, so that a restart does not shorten a gap.
// When tasks that were cut off had begun is not recorded.
func (s *Scheduler) lastStarts(cutOff []*node, now time.Time) {
	for _, n := range cutOff {
		n.agent.last = now
	}
	for _, n := range s.known {
		if at := n.state.LastRunAt; at != nil && at.After(n.agent.last) {
			n.agent.last = *at
		}
	}
}
