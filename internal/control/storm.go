package control

import (
	"context"
	"sync"
	"time"
)

// storm notices that webhooks arrive in a burst. What they ask for waits until
// it is over: the answers come first, and all of them are acted on at once.
type storm struct {
	mu   sync.Mutex
	last time.Time // when one arrived
	run  int       // so many came, each within stormQuiet of the one before
}

const (
	// stormLook is how long a webhook waits to see whether it comes alone.
	stormLook = 3 * time.Millisecond
	// stormSize is how many make a burst.
	stormSize = 4
	// stormQuiet without a webhook ends a burst.
	stormQuiet = 25 * time.Millisecond
	// stormMost is how long a burst may hold back what it asks for.
	stormMost = time.Second
)

// arrived notes a webhook.
func (s *storm) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.last) > stormQuiet {
		s.run = 0
	}
	s.last = now
	s.run++
}

// wait gives how long it is until the burst may be over; zero when none is on.
func (s *storm) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run < stormSize {
		return 0
	}
	return stormQuiet - time.Since(s.last)
}

// pass returns when no burst is on, or when it was held back long enough.
func (s *storm) pass(ctx context.Context) {
	began := time.Now()
	for more := stormLook; more > 0 && ctx.Err() == nil; more = min(s.wait(), stormMost-time.Since(began)) {
		pause(ctx, more)
	}
}
