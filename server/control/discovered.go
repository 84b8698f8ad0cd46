package control

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// SetDiscovered records what was discovered outside, over what is known of it.
func (c *Control) SetDiscovered(ctx context.Context, env intent.EnvironmentID, found []intent.Discovered) error {
	return c.cfg.Store.SetDiscovered(ctx, env, found)
}

// Discovered gives one record of what was discovered.
func (c *Control) Discovered(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
) (intent.Discovered, error) {
	return c.cfg.Store.Discovered(ctx, env, id)
}

// DiscoveredList lists what was discovered.
func (c *Control) DiscoveredList(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Discovered], error) {
	return c.cfg.Store.DiscoveredList(ctx, env, q)
}

// DeleteDiscovered forgets what was discovered.
func (c *Control) DeleteDiscovered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error {
	return c.cfg.Store.DeleteDiscovered(ctx, env, ids)
}
