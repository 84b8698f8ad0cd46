package webhooks

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// limiter lets so many through per second from each source, and a burst at once.
type limiter struct {
	rate, burst float64
	now         func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
	swept   time.Time
}

// bucket holds what a source may still send, as of a time.
type bucket struct {
	left float64
	at   time.Time
}

// maxSources bounds how many sources are remembered.
const maxSources = 10_000

func newLimiter(rate, burst float64, now func() time.Time) *limiter {
	return &limiter{rate: rate, burst: max(burst, 1), now: now, buckets: map[string]*bucket{}, swept: now()}
}

// take lets one through, giving zero, or says how long the source should wait.
func (l *limiter) take(source string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.buckets[source]
	if b == nil {
		l.sweep(now)
		b = &bucket{left: l.burst, at: now}
		l.buckets[source] = b
	}
	b.left = min(l.burst, b.left+l.rate*max(now.Sub(b.at).Seconds(), 0))
	b.at = now
	if b.left >= 1 {
		b.left--
		return 0
	}
	return time.Duration((1 - b.left) / l.rate * float64(time.Second))
}

// sweep forgets sources that may send a whole burst again. When too many are
// left all are forgotten: that many sources are no single one to hold back.
func (l *limiter) sweep(now time.Time) {
	if len(l.buckets) < maxSources && now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for source, b := range l.buckets {
		if b.left+l.rate*now.Sub(b.at).Seconds() >= l.burst {
			delete(l.buckets, source)
		}
	}
	if len(l.buckets) >= maxSources {
		clear(l.buckets)
	}
}

// Counts says how many webhooks were answered since the server began.
type Counts struct {
	Accepted  int64 `json:"accepted"`     // 202
	Repeated  int64 `json:"repeated"`     // 200
	Malformed int64 `json:"malformed"`    // 400
	Refused   int64 `json:"refused"`      // 401
	TooBig    int64 `json:"too_big"`      // 413
	Limited   int64 `json:"rate_limited"` // 429
	Failed    int64 `json:"failed"`       // 503
}

type counts struct {
	accepted, repeated, malformed, refused, tooBig, limited, failed atomic.Int64
}

func (c *counts) answered(status int) {
	switch status {
	case http.StatusAccepted:
		c.accepted.Add(1)
	case http.StatusOK:
		c.repeated.Add(1)
	case http.StatusBadRequest:
		c.malformed.Add(1)
	case http.StatusUnauthorized:
		c.refused.Add(1)
	case http.StatusRequestEntityTooLarge:
		c.tooBig.Add(1)
	case http.StatusTooManyRequests:
		c.limited.Add(1)
	case http.StatusServiceUnavailable:
		c.failed.Add(1)
	}
}

// Counts tells how webhooks were answered.
func (h *Handler) Counts() Counts {
	c := &h.counts
	return Counts{
		Accepted: c.accepted.Load(), Repeated: c.repeated.Load(), Malformed: c.malformed.Load(), Refused: c.refused.Load(),
		TooBig: c.tooBig.Load(), Limited: c.limited.Load(), Failed: c.failed.Load(),
	}
}
