package control

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Release makes a version the intent and starts to deploy it. Conflict when
// it is released already or older than the active one.
func (c *Control) Release(ctx context.Context, env intent.EnvironmentID, number int) error {
	if err := c.cfg.Store.ReleaseVersion(ctx, env, number, c.cfg.Now()); err != nil {
		return err
	}
	c.released(env, number)
	return nil
}

// released tells pages and the deployer of the new intent.
func (c *Control) released(env intent.EnvironmentID, number int) {
	c.publish(env, bus.Version, strconv.Itoa(number))
	if d := c.deployer(env); d != nil {
		d.VersionReleased(number)
	}
}

// Versions lists versions.
func (c *Control) Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error) {
	return c.cfg.Store.Versions(ctx, env, q)
}

// Version finds one.
func (c *Control) Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error) {
	return c.cfg.Store.Version(ctx, env, number)
}

// ActiveVersion gives the intent, nil before the first release.
func (c *Control) ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) {
	return c.cfg.Store.ActiveVersion(ctx, env)
}

// DeleteVersion deletes a version that is not active.
func (c *Control) DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error {
	if err := c.cfg.Store.DeleteVersion(ctx, env, number); err != nil {
		return err
	}
	c.publish(env, bus.Version, strconv.Itoa(number))
	return nil
}

// VersionResources gives all resources of a version.
func (c *Control) VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error) {
	return c.cfg.Store.VersionResources(ctx, env, number)
}

// VersionResourcePage lists them by page.
func (c *Control) VersionResourcePage(ctx context.Context, env intent.EnvironmentID, number int, q intent.ListQuery) (intent.Page[intent.Resource], error) {
	return c.cfg.Store.VersionResourcePage(ctx, env, number, q)
}

// VersionResource finds one resource as a version has it.
func (c *Control) VersionResource(ctx context.Context, env intent.EnvironmentID, number int, id intent.ResourceID) (intent.Resource, error) {
	return c.cfg.Store.VersionResource(ctx, env, number, id)
}

// DiffVersions compares two versions, from the older to the newer.
func (c *Control) DiffVersions(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceDiff, error) {
	if from >= to {
		return nil, fault.New("control.DiffVersions", fault.Invalid, "the first version must be older than the second")
	}
	return c.cfg.Store.DiffVersions(ctx, env, from, to)
}

// StartDryRun begins a dry run of a version; its diffs arrive one by one.
func (c *Control) StartDryRun(ctx context.Context, env intent.EnvironmentID, number int) (intent.ActionID, error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	if e.Halted {
		return uuid.Nil, fault.New("control.StartDryRun", fault.Conflict, "the environment "+e.Name+" is halted").Hint("resume it first")
	}
	v, err := c.cfg.Store.Version(ctx, env, number)
	if err != nil {
		return uuid.Nil, err
	}
	d := c.deployer(env)
	if d == nil {
		return uuid.Nil, fault.New("control.StartDryRun", fault.Unavailable, "the scheduler of "+e.Name+" is not running")
	}
	run := intent.DryRun{ID: uuid.New(), Environment: env, Version: number, Date: c.cfg.Now(), Total: v.Total, Todo: v.Total}
	if err := c.cfg.Store.CreateDryRun(ctx, run); err != nil {
		return uuid.Nil, err
	}
	c.publish(env, bus.DryRun, run.ID.String())
	d.DryRun(run.ID, number)
	return run.ID, nil
}

// DryRuns lists the dry runs of a version, newest first.
func (c *Control) DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error) {
	return c.cfg.Store.DryRuns(ctx, env, number)
}

// DryRun gives one with what it found so far.
func (c *Control) DryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) (intent.DryRun, []intent.ResourceDiff, error) {
	return c.cfg.Store.DryRun(ctx, env, id)
}
