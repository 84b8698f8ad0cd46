package control

import (
	"context"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// RetryProcess runs a dead process again, or one that waits for its next attempt at once. A zero environment stands
// for any.
func (c *Control) RetryProcess(ctx context.Context, env intent.EnvironmentID, id int64) error {
	return c.onProcess(ctx, env, id, func() error { return c.cfg.Store.RetryProcess(ctx, env, id) })
}

// CancelProcess ends a process. One that runs ends when its handler notices. A zero environment stands for any.
func (c *Control) CancelProcess(ctx context.Context, env intent.EnvironmentID, id int64) error {
	return c.onProcess(ctx, env, id, func() error {
		return c.cfg.Store.CancelProcess(ctx, env, id, access.Of(ctx).Name)
	})
}

// onProcess does something to a process, and leaves a trace of what it was.
func (c *Control) onProcess(ctx context.Context, env intent.EnvironmentID, id int64, do func() error) error {
	p, err := c.cfg.Store.Process(ctx, env, id)
	if err != nil {
		return err
	}
	audit.Subject(ctx, "process "+strconv.FormatInt(id, 10)+": "+p.Name+" of "+p.Resource.String())
	if p.Environment != (intent.EnvironmentID{}) {
		e, err := c.cfg.Store.Environment(ctx, p.Environment)
		if err != nil {
			return err
		}
		audit.On(ctx, e)
	}
	if err := do(); err != nil {
		return err
	}
	after, err := c.cfg.Store.Process(ctx, env, id)
	if err == nil {
		audit.Change(ctx, string(p.State), string(after.State))
	}
	c.publish(p.Environment, bus.Process, strconv.FormatInt(id, 10))
	return nil
}
