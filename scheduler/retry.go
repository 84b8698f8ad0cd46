package scheduler

import (
	"cmp"
	"container/heap"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/intent"
)

// A resource that failed has a time at which it is tried again. Where the deploy timer is an interval, that time
// makes a wish of its own, with the timer's priority; where it is a cron expression, the timer's first firing after
// that time does.

// retryable reports whether the deploy timer may try n again, now or later. What was only reported is left to the
// repair timer.
func (s *Scheduler) retryable(n *node) bool {
	return n.dirty() && !n.reported() && n.state.Blocked == intent.NotBlocked && n.state.Parked == intent.NotParked
}

// failedAgain sets when n is tried again: after a pause that doubles with each failure up to a cap, shortened by up
// to a quarter so that many that failed together do not return together. The jitter depends only on the seed, the
// resource and the attempt.
func (s *Scheduler) failedAgain(n *node, now time.Time) {
	attempts := max(n.state.Attempts, 1)
	pause := s.limits.RetryCap
	if shift := attempts - 1; shift < 32 && s.limits.RetryBase<<shift>>shift == s.limits.RetryBase {
		pause = min(pause, s.limits.RetryBase<<shift)
	}
	at := now.Add(pause - time.Duration(float64(pause)*jitter(s.limits.Seed, n.state.ID, attempts)/4)).
		Truncate(time.Microsecond)
	n.state.RetryAt = &at
}

// jitter returns a number in [0, 1) (FNV-1a over its arguments).
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

// scheduleRetry brings the heap of retries in line with the state of n.
func (s *Scheduler) scheduleRetry(n *node) {
	wanted := n.pos >= 0 && n.state.RetryAt != nil && s.retryable(n) && s.retriesByTime(n.agent)
	switch {
	case wanted && n.retryAt == 0:
		heap.Push(&s.retries, n)
	case wanted:
		heap.Fix(&s.retries, n.retryAt-1)
	case n.retryAt > 0:
		heap.Remove(&s.retries, n.retryAt-1)
	}
}

// scheduleRetries rebuilds that heap.
func (s *Scheduler) scheduleRetries() {
	for _, n := range s.retries {
		n.retryAt = 0
	}
	clear(s.retries)
	s.retries = s.retries[:0]
	for _, n := range s.nodes {
		if n.state.RetryAt != nil && s.retryable(n) && s.retriesByTime(n.agent) {
			s.retries = append(s.retries, n)
			n.retryAt = len(s.retries)
		}
	}
	heap.Init(&s.retries)
}

// retriesByTime reports whether the deploy timer of an agent is an interval.
func (s *Scheduler) retriesByTime(a *agent) bool {
	schedule := s.timers.deploy.schedule
	if a.timers.ownDeploy {
		schedule = a.timers.deploy.schedule
	}
	_, every := schedule.(cron.ConstantDelaySchedule)
	return every
}

// retryDue wishes for those whose time has come.
func (s *Scheduler) retryDue(now time.Time) {
	for len(s.retries) > 0 && !s.retries[0].state.RetryAt.After(now) {
		n := heap.Pop(&s.retries).(*node)
		if !n.running {
			s.enqueue(n, DeployTimer, fmt.Sprintf("retry after %s", plural(n.state.Attempts, "failed attempt")))
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// nextRetry returns when the first of them is due; zero when none is due by itself.
func (s *Scheduler) nextRetry() time.Time {
	if s.halted || len(s.retries) == 0 {
		return time.Time{}
	}
	return *s.retries[0].state.RetryAt
}

// retryHeap orders nodes by the time at which they are tried again.
type retryHeap []*node

func (h retryHeap) Len() int { return len(h) }
func (h retryHeap) Less(i, j int) bool {
	if c := h[i].state.RetryAt.Compare(*h[j].state.RetryAt); c != 0 {
		return c < 0
	}
	return cmp.Less(h[i].pos, h[j].pos)
}
func (h retryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].retryAt, h[j].retryAt = i+1, j+1
}
func (h *retryHeap) Push(x any) {
	n := x.(*node)
	*h = append(*h, n)
	n.retryAt = len(*h)
}
func (h *retryHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	n.retryAt = 0
	return n
}
