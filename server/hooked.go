package server

import (
	"context"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// hooked gives the methods of control the names that webhooks.Server asks for.
type hooked struct{ control *control.Control }

func (h hooked) Targets(ctx context.Context) ([]intent.HookTarget, error) {
	return h.control.HookTargets(ctx)
}

func (h hooked) Record(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error) {
	return h.control.RecordDelivery(ctx, d)
}
