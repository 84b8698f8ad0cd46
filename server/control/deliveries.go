package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Redeliver records a webhook again for one environment, as if the forge had sent it for
// the first time. A webhook that was refused stays refused.
func (c *Control) Redeliver(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error) {
	const op = "control.Redeliver"
	d, err := c.cfg.Store.Delivery(ctx, env, id)
	if err != nil {
		return d, err
	}
	if !d.Verified {
		return d, fault.New(op, fault.Conflict, "this webhook was refused: nothing proves that the forge sent it").
			Hint("set the same secret in the forge and in the environment, and let the forge send it again")
	}
	replay := d
	replay.ID, replay.Key, replay.Received, replay.ReplayOf = uuid.New(), "", c.cfg.Now(), &d.ID
	replay.Outcomes = []intent.DeliveryOutcome{
		{Environment: env, Module: d.Outcomes[0].Module, State: intent.OutcomeWaiting},
	}
	took, err := c.cfg.Keepers.RecordDelivery(ctx, replay)
	if err != nil {
		return d, err
	}
	if len(took) == 0 {
		return d, fault.New(op, fault.NotFound, "the environment was deleted")
	}
	return c.cfg.Store.Delivery(ctx, env, replay.ID)
}
