package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// An agent may have a gap between two starts. After a start it is *cooling*
// for so long, and nothing starts there.

// cool takes note of a start.
func (s *Scheduler) noteStart(a *agent, now time.Time) {
	a.last = now
	s.startCooling(a)
}

// coolAnew lets an agent cool whose limit or last start is another.
func (s *Scheduler) startCooling(a *agent) {
	if a.limit.MinGap > 0 && !a.last.IsZero() && !a.cooling {
		a.cooling = true
		s.cooling = append(s.cooling, a)
	}
}

// warm lets those go on whose gap is over.
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

// nextWarm is when the first of them may go on that has something to start; zero: none has.
func (s *Scheduler) nextCooled() (first time.Time) {
	for _, a := range s.cooling {
		if !a.paused && a.room() && (len(a.ready) > 0 || a.hasJobs()) {
			first = intent.Earlier(first, a.last.Add(a.limit.MinGap))
		}
	}
	return first
}

// lastStarts takes from the record when something last ran on each agent: a
// restart does not shorten a gap. When those that were cut off had begun, it does not say.
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
