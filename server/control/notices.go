package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// Notifications lists what people should hear of.
func (c *Control) Notifications(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Notification], error) {
	return c.cfg.Store.Notifications(ctx, env, q)
}

// Notification finds one.
func (c *Control) Notification(
	ctx context.Context,
	env intent.EnvironmentID,
	id uuid.UUID,
) (intent.Notification, error) {
	return c.cfg.Store.Notification(ctx, env, id)
}

// MarkNotification sets whether one was read and cleared; nil leaves it as it is.
func (c *Control) MarkNotification(
	ctx context.Context,
	env intent.EnvironmentID,
	id uuid.UUID,
	read, cleared *bool,
) (intent.Notification, error) {
	n, err := c.cfg.Store.MarkNotification(ctx, env, id, read, cleared)
	if err == nil {
		c.publish(env, bus.Notification, id.String())
	}
	return n, err
}

// MarkNotificationsRead marks all of an environment as read.
func (c *Control) MarkNotificationsRead(ctx context.Context, env intent.EnvironmentID) error {
	err := c.cfg.Store.MarkNotificationsRead(ctx, env)
	if err == nil {
		c.publish(env, bus.Notification, "")
	}
	return err
}

// UnreadNotifications counts what nobody read and nobody cleared.
func (c *Control) UnreadNotifications(ctx context.Context, env intent.EnvironmentID) (int, error) {
	return c.cfg.Store.UnreadNotifications(ctx, env)
}
