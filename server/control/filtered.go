package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// What people and programs do to all resources that a filter matches:
//
//	filter ──store.MatchResources──▶ ids, their versions and agents ──▶ the request to the owner, with the ids in it
//
// The filter is looked up once, when the verb is called. What comes to match later is not part of it.

// DeployMatching deploys the resources that a filter matches: those that are not as intended, or with full all of them
// (repair). Only what the active version has can be deployed, so the filter names no version and orphans do not match.
// It returns what matched, which may be nothing.
func (c *Control) DeployMatching(
	ctx context.Context,
	env intent.EnvironmentID,
	f intent.ResourceFilter,
	full bool,
) (intent.MatchedResources, error) {
	const op = "control.DeployMatching"
	var none intent.MatchedResources
	if err := c.notHalted(ctx, op, env); err != nil {
		return none, err
	}
	switch {
	case f.Version != 0:
		return none, fault.New(op, fault.Invalid,
			"Cannot deploy a specific model version: 'modelVersion' is not allowed for deploy.")
	case f.Orphan != nil && *f.Orphan:
		return none, fault.New(op, fault.Invalid,
			"Cannot deploy orphaned resources: the 'isOrphan' filter must be omitted or set to false.")
	}
	f.Orphan = new(false)
	matched, err := c.cfg.Store.MatchResources(ctx, env, f)
	if err != nil {
		return none, err
	}
	audit.Subject(ctx, countedOn(matched))
	audit.Change(ctx, nil, map[string]any{"repair": full, "resources": len(matched.IDs)})
	if len(matched.IDs) == 0 {
		return matched, nil
	}
	request := intent.DeployRequest{Full: full}
	if !matched.All {
		request.Resources = matched.IDs
	}
	return matched, c.ask(ctx, env, intent.RequestDeploy, request)
}

// FilteredDryRun asks for a dry run of the resources that a filter matches.
type FilteredDryRun struct {
	Filter intent.ResourceFilter
	// Sent is the filter as the client sent it, and Context what the client keeps with the dry run; both are JSON
	// objects, or nil.
	Sent, Context json.RawMessage
}

// DryRunMatching begins a dry run of the resources that a filter matches, of the one version that they all belong to.
func (c *Control) DryRunMatching(
	ctx context.Context,
	env intent.EnvironmentID,
	q FilteredDryRun,
) (intent.DryRun, error) {
	const op = "control.DryRunMatching"
	if err := c.notHalted(ctx, op, env); err != nil {
		return intent.DryRun{}, err
	}
	matched, err := c.cfg.Store.MatchResources(ctx, env, q.Filter)
	if err != nil {
		return intent.DryRun{}, err
	}
	switch {
	case len(matched.IDs) == 0:
		return intent.DryRun{}, fault.New(op, fault.NotFound,
			"No resource matched the filter, while a dryrun needs at least one resource.")
	case len(matched.Versions) > 1:
		texts := make([]string, len(matched.Versions))
		for i, v := range matched.Versions {
			texts[i] = fmt.Sprint(v)
		}
		return intent.DryRun{}, fault.New(op, fault.Invalid, fmt.Sprintf(
			"The resources matching the filter belong to multiple model versions (%s), "+
				"while they must all belong to one.", strings.Join(texts, ", "))).
			Hint("set modelVersion, or isOrphan: false to leave out what the model no longer has")
	}
	run := intent.DryRun{
		ID: uuid.New(), Environment: env, Version: matched.Versions[0], Date: c.cfg.Now(),
		Total: len(matched.IDs), Todo: len(matched.IDs), ResourceFilter: q.Sent, Context: q.Context,
	}
	if !matched.All {
		run.Chosen = matched.IDs
		if run.ResourceFilter == nil { // what a run is limited to is always on record
			run.ResourceFilter = json.RawMessage("{}")
		}
	}
	active, err := c.cfg.Store.ActiveVersion(ctx, env)
	if err != nil {
		return run, err
	}
	if active != nil {
		run.Base = active.Number
	}
	audit.Subject(ctx, countedOn(matched))
	return run, c.createDryRun(ctx, run)
}

// UnparkMatching unparks the resources that a filter matches and returns which were parked.
func (c *Control) UnparkMatching(
	ctx context.Context,
	env intent.EnvironmentID,
	f intent.ResourceFilter,
) ([]intent.ResourceID, error) {
	f.Parked, f.Orphan = new(true), new(false)
	matched, err := c.cfg.Store.MatchResources(ctx, env, f)
	if err != nil || len(matched.IDs) == 0 {
		return nil, err
	}
	audit.Subject(ctx, countedOn(matched))
	freed, err := c.cfg.Store.Asking(env, intent.RequestUnpark, matched.IDs).Unpark(ctx, env, matched.IDs)
	if err != nil || len(freed) == 0 {
		return freed, err
	}
	c.cfg.Keepers.Attend(ctx, env)
	c.publish(env, bus.Resource, "")
	return freed, nil
}

// PauseMatching pauses or unpauses the agents of the resources that a filter matches, and returns them.
func (c *Control) PauseMatching(
	ctx context.Context,
	env intent.EnvironmentID,
	f intent.ResourceFilter,
	paused bool,
) ([]string, error) {
	if err := c.notHalted(ctx, "control.PauseMatching", env); err != nil {
		return nil, err
	}
	matched, err := c.cfg.Store.MatchResources(ctx, env, f)
	if err != nil {
		return nil, err
	}
	agents := matched.Agents()
	slices.Sort(agents)
	audit.Subject(ctx, "agents "+strings.Join(agents, ", "))
	audit.Change(ctx, nil, map[string]bool{"paused": paused})
	by := c.actor(ctx)
	for _, name := range agents {
		request := intent.PauseRequest{Agent: name, Paused: paused}
		asking := c.cfg.Store.Asking(env, intent.RequestPause, request)
		if err := asking.SetAgentPaused(ctx, env, name, paused, by); err != nil {
			return nil, err // those before it stay paused; repeating it is harmless
		}
	}
	if len(agents) > 0 {
		c.cfg.Keepers.Attend(ctx, env)
		c.publish(env, bus.Resource, "")
	}
	return agents, nil
}

// ComplianceReports says of resources of the active version how they compare to their intent. It fails with NotFound
// when the active version does not have all of them.
func (c *Control) ComplianceReports(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []string,
) ([]intent.ComplianceReport, error) {
	found, err := c.cfg.Store.ComplianceReports(ctx, env, ids)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(found))
	for _, r := range found {
		known[r.ID.String()] = true
	}
	const named = 10
	var missing []string
	for _, id := range ids {
		if !known[id] && len(missing) < named {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, fault.New("control.ComplianceReports", fault.NotFound,
			"Unable to find the following resource ids in the active version: "+strings.Join(missing, ", "))
	}
	return found, nil
}

// notHalted returns Conflict for a halted environment.
func (c *Control) notHalted(ctx context.Context, op string, env intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err == nil && e.Halted {
		err = fault.New(op, fault.Conflict, "The environment "+e.Name+" ("+e.ID.String()+") is halted").
			Hint("resume it first")
	}
	return err
}

// countedOn says how many resources an action is about.
func countedOn(m intent.MatchedResources) string {
	return fmt.Sprintf("%d resources of %d agents", len(m.IDs), len(m.Agents()))
}
