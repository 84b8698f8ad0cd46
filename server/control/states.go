package control

import (
	"context"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// Unpark unparks the named resources, or all if none is named, and retries those that
// are not as intended at once. It returns the resources that were parked, or NotFound
// if a named one does not exist.
func (c *Control) Unpark(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceID, error) {
	for _, id := range ids {
		if _, err := c.cfg.Store.Resource(ctx, env, id); fault.Is(err, fault.NotFound) {
			return nil, fault.New("control.Unpark", fault.NotFound, "there is no resource "+id.String())
		} else if err != nil {
			return nil, err
		}
	}
	freed, err := c.cfg.Store.Asking(env, intent.RequestUnpark, ids).Unpark(ctx, env, ids)
	if err != nil || len(freed) == 0 {
		return freed, err
	}
	c.cfg.Keepers.Attend(ctx, env)
	c.publish(env, bus.Resource, "")
	return freed, nil
}

// RemoveVenvs removes the virtual environments in which handlers ran, so that they are made anew. Those in which tasks
// run now go when the tasks have ended. It returns Conflict for a halted environment, in which nothing would make them.
func (c *Control) RemoveVenvs(ctx context.Context, e intent.Environment) error {
	if e.Halted {
		return fault.New("control.RemoveVenvs", fault.Conflict, "the environment "+e.Name+" is halted").
			Hint("resume it first")
	}
	audit.Subject(ctx, "virtual environments of executors")
	return c.ask(ctx, e.ID, intent.RequestVenvs, nil)
}

// Executors reports on the executors of an environment. Here is false if another
// server runs them, or none does yet. It returns NotFound for an unknown environment.
func (c *Control) Executors(ctx context.Context, env intent.EnvironmentID) (intent.Executors, error) {
	if _, err := c.cfg.Store.Environment(ctx, env); err != nil {
		return intent.Executors{}, err
	}
	return c.cfg.Keepers.Executors(ctx, env), nil
}
