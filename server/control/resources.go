package control

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// Deploy runs resources again: those that are not as intended or, if full is set, all
// of them (repair). No agents means all. It returns the agents that have work, or
// NotFound if nothing was released yet or an agent does not exist.
func (c *Control) Deploy(ctx context.Context, env intent.EnvironmentID, full bool, agents []string) ([]string, error) {
	if v, err := c.cfg.Store.ActiveVersion(ctx, env); err != nil {
		return nil, err
	} else if v == nil {
		return nil, fault.New("control.Deploy", fault.NotFound, "no version is released yet")
	}
	audit.Change(ctx, nil, map[string]any{"repair": full, "agents": agents})
	page, err := c.cfg.Store.Agents(ctx, env, intent.ListQuery{})
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(agents))
	for _, a := range agents {
		wanted[a] = true
	}
	var found []string
	for _, a := range page.Items {
		if len(agents) == 0 || wanted[a.Name] {
			found = append(found, a.Name)
		}
	}
	if len(agents) > 0 && len(found) == 0 {
		return nil, noAgent("control.Deploy", agents[0], page.Items)
	}
	request := intent.DeployRequest{Full: full}
	if len(agents) > 0 {
		request.Agents = found
	}
	return found, c.ask(ctx, env, intent.RequestDeploy, request)
}

// DeployResource runs one resource again, whatever its state, and no other one. Something else keeps changing a
// contested resource back, so deploying that also takes unpark. It returns the states of those direct requirements that
// are not deployed: the resource waits for them, and is skipped while one of them failed.
func (c *Control) DeployResource(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	unpark bool,
) (needs map[intent.ResourceID]intent.Status, err error) {
	const op = "control.DeployResource"
	detail, err := c.cfg.Store.Resource(ctx, env, id)
	if err != nil {
		return nil, err
	}
	audit.Subject(ctx, "resource "+id.String())
	audit.Change(ctx, nil, map[string]any{"unpark": unpark})
	contested := detail.State.Parked == intent.ParkedContested
	switch {
	case detail.State.Orphaned > 0:
		return nil, fault.New(op, fault.Conflict, "the model no longer has "+id.String()).
			Hint("it is left as it was; put it back into the model to deploy it")
	case contested && !unpark:
		return nil, fault.New(op, fault.Conflict, id.String()+" is contested: something else keeps changing it back").
			Hint("find out what does, then ask for it to be unparked, too: " +
				"ordain resource deploy ENVIRONMENT ID --unpark")
	case contested:
		_, err = c.Unpark(ctx, env, []intent.ResourceID{id})
	default:
		request := intent.DeployRequest{Full: true, Resources: []intent.ResourceID{id}}
		err = c.ask(ctx, env, intent.RequestDeploy, request)
	}
	if err != nil {
		return nil, err
	}
	needs = detail.RequiresStatus
	maps.DeleteFunc(needs, func(_ intent.ResourceID, s intent.Status) bool { return s == intent.StatusDeployed })
	return needs, nil
}

// noAgent returns the fault for an unknown agent, with a suggestion.
func noAgent(op, name string, known []intent.Agent) error {
	names := make([]string, len(known))
	for i, a := range known {
		names[i] = a.Name
	}
	err := fault.New(op, fault.NotFound, "there is no agent "+name)
	if near := diag.Nearest(name, names); near != "" {
		return err.Hint("did you mean " + near + "?")
	}
	return err.Hint("an agent exists once a version with resources of it was released")
}

// knownAgent returns NotFound for an agent that no released version had.
func (c *Control) knownAgent(ctx context.Context, env intent.EnvironmentID, name string) error {
	page, err := c.cfg.Store.Agents(ctx, env, intent.ListQuery{Limit: 1000, Sort: "name"})
	if err != nil {
		return err
	}
	for _, a := range page.Items {
		if a.Name == name {
			return nil
		}
	}
	// Beyond the first thousand.
	exact, err := c.cfg.Store.Agents(ctx, env,
		intent.ListQuery{Limit: 1000, Filters: map[string][]string{"name": {name}}})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(exact.Items, func(a intent.Agent) bool { return a.Name == name }) {
		return nil
	}
	return noAgent("control.Agent", name, page.Items)
}

// PauseAgent pauses or unpauses one agent, or all if name is empty. It returns
// NotFound for an agent that no released version had.
func (c *Control) PauseAgent(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error {
	if name != "" {
		if err := c.knownAgent(ctx, env, name); err != nil {
			return err
		}
	}
	audit.Subject(ctx, "agent "+cmp.Or(name, "(all)"))
	audit.Change(ctx, nil, map[string]bool{"paused": paused})
	err := c.cfg.Store.Asking(env, intent.RequestPause, intent.PauseRequest{Agent: name, Paused: paused}).
		SetAgentPaused(ctx, env, name, paused, c.actor(ctx))
	if err != nil {
		return err
	}
	c.cfg.Keepers.Attend(ctx, env)
	c.publish(env, bus.Resource, "")
	return nil
}
