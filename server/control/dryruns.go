package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// DryRunRequest is what to find out about: a version, or a commit.
type DryRunRequest struct {
	Version int
	// Commit is a hash, a branch or a tag of the environment's repository. It is
	// compiled beside the environment's own compiles, and its version is never released.
	Commit string
	Filter intent.DryRunFilter
}

// StartDryRun begins a dry run; what it finds arrives one by one.
func (c *Control) StartDryRun(ctx context.Context, env intent.EnvironmentID, q DryRunRequest) (intent.ActionID, error) {
	const op = "control.StartDryRun"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	q.Commit = strings.TrimSpace(q.Commit)
	switch {
	case e.Halted:
		return uuid.Nil, fault.New(op, fault.Conflict, "the environment "+e.Name+" is halted").Hint("resume it first")
	case (q.Version > 0) == (q.Commit != ""):
		return uuid.Nil, fault.New(op, fault.Invalid, "a dry run is of one version or of one commit")
	}
	run := intent.DryRun{
		ID:          uuid.New(),
		Environment: env,
		Version:     q.Version,
		Date:        c.cfg.Now(),
		Commit:      q.Commit,
		Filter:      q.Filter,
	}
	active, err := c.cfg.Store.ActiveVersion(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	if active != nil {
		run.Base = active.Number
	}
	if q.Commit != "" {
		return c.startPreview(ctx, e, run)
	}
	if run.Total, err = c.countMatches(ctx, env, q.Version, q.Filter); err != nil {
		return uuid.Nil, err
	}
	run.Todo = run.Total
	d := c.deployer(env)
	if d == nil {
		return uuid.Nil, fault.New(op, fault.Unavailable, "the scheduler of "+e.Name+" is not running")
	}
	if err := c.cfg.Store.CreateDryRun(ctx, run); err != nil {
		return uuid.Nil, err
	}
	c.publish(env, bus.DryRun, run.ID.String())
	d.DryRun(run.ID)
	return run.ID, nil
}

// countMatches counts the resources of a version that a filter chooses. That
// it chooses none, or names one that is not there, is an error.
func (c *Control) countMatches(
	ctx context.Context,
	env intent.EnvironmentID,
	version int,
	f intent.DryRunFilter,
) (int, error) {
	const op = "control.StartDryRun"
	if f.IsZero() {
		v, err := c.cfg.Store.Version(ctx, env, version)
		return v.Total, err
	}
	resources, err := c.cfg.Store.VersionResources(ctx, env, version)
	if err != nil {
		return 0, err
	}
	n, there := 0, make(map[intent.ResourceID]bool)
	for _, r := range resources {
		there[r.ID] = true
		if f.Match(r.ID) {
			n++
		}
	}
	for _, id := range f.Resources {
		if !there[id] {
			return 0, fault.New(op, fault.NotFound, fmt.Sprintf("version %d has no resource %s", version, id))
		}
	}
	if n == 0 {
		return 0, fault.New(op, fault.NotFound, fmt.Sprintf("version %d has no resource that this chooses", version)).
			Hint("look at the agents and types; * stands for any text")
	}
	return n, nil
}

// CancelDryRun ends a dry run. What a handler is doing for it ends by itself,
// and is not recorded. Conflict when it has ended.
func (c *Control) CancelDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) error {
	if err := c.cfg.Store.EndDryRun(ctx, env, id, intent.DryRunCancelled, "", nil, c.cfg.Now()); err != nil {
		return err
	}
	if d := c.deployer(env); d != nil {
		d.CancelDryRun(id)
	}
	c.mu.Lock()
	if k := c.keepers[env]; k != nil && k.previews.running == id {
		k.previews.cancel()
	}
	c.mu.Unlock()
	c.publish(env, bus.DryRun, id.String())
	return nil
}

// DryRuns lists the dry runs of a version, newest first; version 0: all.
func (c *Control) DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error) {
	return c.cfg.Store.DryRuns(ctx, env, number)
}

// DryRun gives one with what it found so far.
func (c *Control) DryRun(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
) (intent.DryRun, []intent.ResourceDiff, error) {
	return c.cfg.Store.DryRun(ctx, env, id)
}

// NoLongerManaged lists what the version that was active when a dry run was
// asked for has, and the version of the dry run has not: releasing that one
// would leave it alone, as it is.
func (c *Control) NoLongerManaged(ctx context.Context, run intent.DryRun) ([]intent.ResourceID, error) {
	if run.Base == 0 || run.Version == 0 || run.Base == run.Version {
		return nil, nil
	}
	gone, err := c.cfg.Store.GoneResources(ctx, run.Environment, run.Base, run.Version)
	return slices.DeleteFunc(gone, func(id intent.ResourceID) bool { return !run.Filter.Match(id) }), err
}
