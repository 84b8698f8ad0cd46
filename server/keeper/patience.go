package keeper

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// persist repeats what needs the database until it is done; see patiently. It
// logs an error, for work whose result nobody waits for.
func (k *keeper) persist(ctx context.Context, what string, do func() error) bool {
	err := k.patiently(ctx, what, do)
	if err != nil && ctx.Err() == nil {
		k.log.Error("could not "+what, "error", err)
	}
	return err == nil
}

// patiently repeats what needs the database while it is away, until it is
// done, ctx ends, or there is an error that does not pass by itself.
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

// pause waits for a time, or until ctx ends.
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

// wake fills a channel that holds one wake.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
