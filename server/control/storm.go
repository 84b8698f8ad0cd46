package control

import (
	"context"
	"sync"
	"time"
)

// storm notices that webhooks arrive in a burst. What they ask for waits until
// it is over, and so does every compile: the answers come first, and all of them
// are acted on at once.
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
	// stormMost is how long a burst may hold something back.
	stormMost = 2 * time.Second
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

// pass returns when no burst is on, or when it was held back long enough. It
// is for what a webhook asks for, and looks first whether more of them come.
func (s *storm) pass(ctx context.Context) {
	since := time.Now()
	pause(ctx, stormLook)
	s.over(ctx, since)
}

// over is pass for what takes the processors, whoever asked for it: it may be
// held back until stormMost since a time.
func (s *storm) over(ctx context.Context, since time.Time) {
	for ctx.Err() == nil {
		more := min(s.wait(), stormMost-time.Since(since))
		if more <= 0 {
			return
		}
		pause(ctx, more)
	}
}
