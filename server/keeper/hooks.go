package keeper

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const (
	deliveryBatch = 1000
	// deliveryPatience is how long a webhook waits for a repository that cannot be reached.
	deliveryPatience = 15 * time.Minute
	// burstQuiet is how long no webhook must arrive for a burst to end.
	burstQuiet = 50 * time.Millisecond
	// burstMost is how long a burst may delay the compile that its webhooks ask for.
	burstMost        = 2 * time.Second
	deliveryRetryMin = time.Second
	deliveryRetryMax = time.Minute
)

// keepDeliveries handles webhooks until ctx ends. They wait in the database, so the
// next owner finds those that a killed server left.
//
// This is the only place that delays webhooks. The first one is handled at once. Those
// that follow wait until the burst is over, and then one look at the repository answers
// them all: a burst leads to one or two compiles.
func (k *keeper) keepDeliveries(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := k.handleDeliveries(ctx)
		switch {
		case err != nil:
			pause(ctx, k.deliveryTrouble(ctx, err))
		case found:
			k.failedLooks = 0
			k.awaitQuiet(ctx)
		default:
			k.failedLooks = 0
			select {
			case <-ctx.Done():
			case <-k.deliveryWakes:
			}
		}
	}
}

// awaitQuiet waits until no webhook came for burstQuiet, but not longer than burstMost.
func (k *keeper) awaitQuiet(ctx context.Context) {
	most := time.NewTimer(burstMost)
	defer most.Stop()
	quiet := time.NewTimer(burstQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-most.C:
			return
		case <-quiet.C:
			return
		case <-k.deliveryWakes:
			quiet.Reset(burstQuiet)
		}
	}
}

// handleDeliveries handles all waiting webhooks, and reports whether there were any.
// Webhooks that fail with an error go on waiting.
func (k *keeper) handleDeliveries(ctx context.Context) (found bool, err error) {
	waiting, err := k.cfg.Store.WaitingDeliveries(ctx, k.env, deliveryBatch)
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	j := &judgement{
		Registry: k.Registry, e: e, failedLooks: k.failedLooks, outcomes: map[uuid.UUID]intent.DeliveryOutcome{},
	}
	trouble := j.judge(ctx, waiting)
	if ctx.Err() != nil {
		return false, nil
	}
	if len(j.outcomes) > 0 {
		if err := k.cfg.Store.FinishDeliveries(ctx, k.env, j.outcomes); err != nil {
			return true, err
		}
		k.publish(k.env, bus.Delivery, "")
	}
	return true, trouble
}

// deliveryTrouble logs a failure and returns how long to wait after it.
func (k *keeper) deliveryTrouble(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	wait := min(deliveryRetryMin<<min(k.failedLooks, 10), deliveryRetryMax)
	k.failedLooks++
	k.log.Warn("cannot handle webhooks yet", "error", err, "next", wait)
	return wait
}
