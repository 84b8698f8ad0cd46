package control

import (
	"context"
	"fmt"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// RefreshFacts asks resources for their facts: those named, or all that have
// facts which expire or that the model waits for. It gives which; NotFound when
// one is not in the version that is deployed.
func (c *Control) RefreshFacts(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceID, error) {
	if len(ids) == 0 {
		due, err := c.cfg.Store.FactsDue(ctx, env)
		if err != nil {
			return nil, err
		}
		for _, f := range due {
			if !slices.Contains(ids, f.Resource) {
				ids = append(ids, f.Resource)
			}
		}
	}
	for _, id := range ids {
		r, err := c.cfg.Store.Resource(ctx, env, id)
		if fault.Is(err, fault.NotFound) || err == nil && r.State.Orphaned > 0 {
			return nil, fault.New(
				"control.RefreshFacts",
				fault.NotFound,
				"the version that is deployed has no resource "+id.String(),
			)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	if err := c.cfg.Store.RequestFacts(ctx, env, ids, c.cfg.Now()); err != nil {
		return nil, err
	}
	if d := c.deployer(env); d != nil {
		d.RefreshFacts(ids)
	}
	return ids, nil
}

// FactsChanged is told that facts of an environment were recorded. It must not
// be called by what holds up the environment.
func (c *Control) FactsChanged(env intent.EnvironmentID) {
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	if ctx != nil && ctx.Err() == nil {
		c.factsChanged(ctx, env)
	}
}

// factsChanged compiles again where the newest version did without something
// that is known by now.
func (c *Control) factsChanged(ctx context.Context, env intent.EnvironmentID) {
	known, err := c.cfg.Store.UnknownsKnown(ctx, env)
	if err == nil && len(known) > 0 {
		err = c.compileForFacts(ctx, env, known)
	}
	if err != nil && ctx.Err() == nil {
		c.cfg.Logger.Error("it is not known whether the model waited for a fact", "environment", env, "error", err)
	}
}

func (c *Control) compileForFacts(ctx context.Context, env intent.EnvironmentID, known []intent.Unknown) error {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil || e.Source.URL == "" {
		return err
	}
	open, err := c.cfg.Store.OpenCompiles(ctx, env)
	if err != nil ||
		slices.ContainsFunc(open, func(o intent.Compile) bool { return o.Started == nil && o.Export && !o.Partial }) {
		return err // one is about to begin
	}
	message := "the model waited for " + known[0].Parameter
	if id := known[0].Resource; !id.IsZero() {
		message += " of " + id.String()
	}
	if more := len(known) - 1; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{
		Trigger: intent.Trigger{
			Type:    "param",
			Message: message,
		}, Metadata: map[string]any{"type": "param", "message": message},
	})
	return err
}
