package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// MarkNotification sets whether a notification was read and cleared; nil leaves a mark as it is.
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

// MarkNotificationsRead marks all notifications of an environment as read.
func (c *Control) MarkNotificationsRead(ctx context.Context, env intent.EnvironmentID) error {
	err := c.cfg.Store.MarkNotificationsRead(ctx, env)
	if err == nil {
		c.publish(env, bus.Notification, "")
	}
	return err
}
