package control

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// Override lets changes start in spite of windows and freezes, on the agents that it
// names (all if it names none), until its end.
func (c *Control) Override(ctx context.Context, env intent.EnvironmentID, o intent.Override) (intent.Override, error) {
	o.ID, o.Created, o.Ended, o.EndedBy = uuid.New(), c.cfg.Now().UTC().Truncate(time.Microsecond), nil, ""
	o.By = who(ctx, o.By)
	audit.Because(ctx, o.By, o.Reason)
	audit.Change(ctx, nil, map[string]any{"until": o.Until, "agents": o.Agents})
	o.Until = o.Until.UTC().Truncate(time.Microsecond)
	if err := o.Check(); err != nil {
		return o, fault.Wrap("control.Override", fault.Invalid, err)
	}
	if err := c.cfg.Store.Asking(env, intent.RequestLook, nil).AddOverride(ctx, env, o); err != nil {
		return o, err
	}
	c.changed(ctx, env)
	c.publish(env, bus.Resource, "")
	c.publish(env, bus.Notification, "")
	return o, nil
}

// EndOverride ends an override early.
func (c *Control) EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) error {
	audit.Subject(ctx, "override "+id.String())
	if err := c.cfg.Store.Asking(env, intent.RequestLook, nil).EndOverride(ctx, env, id, c.actor(ctx)); err != nil {
		return err
	}
	c.changed(ctx, env)
	c.publish(env, bus.Resource, "")
	c.publish(env, bus.Notification, "")
	return nil
}
