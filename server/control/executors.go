package control

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// Executors tells what runs the handlers of an environment; not Here when
// another server does, or nobody yet. NotFound for an unknown environment.
func (c *Control) Executors(ctx context.Context, env intent.EnvironmentID) (intent.Executors, error) {
	if _, err := c.cfg.Store.Environment(ctx, env); err != nil {
		return intent.Executors{}, err
	}
	if d := c.deployer(env); d != nil {
		return d.Executors(), nil
	}
	return intent.Executors{}, nil
}
