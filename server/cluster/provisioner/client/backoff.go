package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Backoff says how long to wait between tries: First after the first one, twice as long after each further one,
// Most at most. The zero value begins with 200 ms and ends with 15 s.
type Backoff struct{ First, Most time.Duration }

// Pause returns how long to wait after try n, counted from 0. It takes off up to a half at random, so that many
// provisioners do not come back at the same moment when a server has been away.
func (b Backoff) Pause(n int) time.Duration {
	if b.First == 0 {
		b.First = 200 * time.Millisecond
	}
	if b.Most == 0 {
		b.Most = 15 * time.Second
	}
	pause := b.Most
	if n < 30 && b.First<<n < b.Most {
		pause = b.First << n
	}
	return pause - rand.N(pause/2+1)
}

// Sleep waits, and returns the context's error if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retryAfter returns how long the server asks to be left alone.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}
