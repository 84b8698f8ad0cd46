package keeper

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// persist is patiently for work whose result no caller waits for: it logs the error.
func (k *keeper) persist(ctx context.Context, what string, do func() error) bool {
	err := k.patiently(ctx, what, do)
	if err != nil && ctx.Err() == nil {
		k.log.Error("could not "+what, "error", err)
	}
	return err == nil
}

// patiently calls do again while the database is unavailable, until it succeeds, ctx
// ends, or it fails with another error.
func (k *keeper) patiently(ctx context.Context, what string, do func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := do()
		if err == nil || !fault.Is(err, fault.Unavailable) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.log.Warn("could not "+what+" yet", "error", err)
		pause(ctx, wait)
	}
}

// pause waits for the given time or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wake sends to a channel that holds one wake, unless it is full.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
