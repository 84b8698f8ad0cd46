package control

import (
	"context"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// SetParameter stores a parameter or fact, and who set it. If the model was waiting for it, the environment is compiled
// again.
func (c *Control) SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error {
	audit.Subject(ctx, parameterSubject(p.Name, p.Resource))
	given, _ := ctx.Value(actorKey{}).(intent.Actor)
	p.SetBy = who(ctx, given.By)
	if err := c.cfg.Store.SetParameter(ctx, env, p); err != nil {
		return err
	}
	c.publish(env, bus.Resource, "")
	c.cfg.Keepers.CompileForFacts(ctx, env)
	return nil
}

// DeleteParameter deletes a parameter or fact. It returns NotFound when there is none.
func (c *Control) DeleteParameter(
	ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID,
) error {
	audit.Subject(ctx, parameterSubject(name, resource))
	if err := c.cfg.Store.DeleteParameter(ctx, env, name, resource); err != nil {
		return err
	}
	c.publish(env, bus.Resource, "")
	return nil
}

func parameterSubject(name string, resource intent.ResourceID) string {
	if resource.IsZero() {
		return "parameter " + name
	}
	return "parameter " + name + " " + resource.String()
}
