package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Release makes a version the intent and starts to deploy it. Conflict when
// it is released already or older than the active one, and when it takes away
// so much that a person has to confirm it; then it is held.
func (c *Control) Release(ctx context.Context, env intent.EnvironmentID, number int) error {
	if err := c.cfg.Store.ReleaseVersion(ctx, env, number, c.cfg.Now()); err != nil {
		c.held(env, number, err)
		return err
	}
	c.released(env, number)
	return nil
}

// Confirm releases a version that is held, and records who wanted that and why.
func (c *Control) Confirm(ctx context.Context, env intent.EnvironmentID, number int, by, reason string) error {
	confirmation := intent.Confirmation{By: strings.TrimSpace(by), Reason: strings.TrimSpace(reason), At: c.cfg.Now()}
	if by, reason := len(confirmation.By), len(confirmation.Reason); by == 0 || reason == 0 || by > maxWords ||
		reason > maxWords {
		return fault.New("control.Confirm", fault.Invalid, fmt.Sprintf("say who confirms and why, each in at most %d bytes", maxWords)).
			Hint("both are kept with the version")
	}
	if err := c.cfg.Store.ConfirmVersion(ctx, env, number, confirmation); err != nil {
		c.held(env, number, err)
		return err
	}
	c.rolledBack(ctx, env, number)
	c.cfg.Logger.Info(
		"a held version was confirmed",
		"environment",
		env,
		"version",
		number,
		"by",
		confirmation.By,
		"reason",
		confirmation.Reason,
	)
	c.released(env, number)
	return nil
}

// maxWords is how long a name or a reason may be.
const maxWords = 1000

// held tells pages of a release that was refused because the version is held.
func (c *Control) held(env intent.EnvironmentID, number int, err error) {
	var held *intent.HeldError
	if !errors.As(err, &held) {
		return
	}
	c.publish(env, bus.Version, strconv.Itoa(number))
	c.publish(env, bus.Notification, "")
}

// HeldVersions lists the versions that wait for a confirmation, newest first.
func (c *Control) HeldVersions(ctx context.Context, env intent.EnvironmentID) ([]intent.Version, error) {
	return c.cfg.Store.HeldVersions(ctx, env)
}

// released tells pages and the deployer of the new intent.
func (c *Control) released(env intent.EnvironmentID, number int) {
	c.publish(env, bus.Version, strconv.Itoa(number))
	if d := c.deployer(env); d != nil {
		d.VersionReleased(number)
	}
}

// Versions lists versions.
func (c *Control) Versions(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Version], error) {
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
func (c *Control) VersionResources(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
) ([]intent.Resource, error) {
	return c.cfg.Store.VersionResources(ctx, env, number)
}

// VersionResourcePage lists them by page.
func (c *Control) VersionResourcePage(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	q intent.ListQuery,
) (intent.Page[intent.Resource], error) {
	return c.cfg.Store.VersionResourcePage(ctx, env, number, q)
}

// VersionResource finds one resource as a version has it.
func (c *Control) VersionResource(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
) (intent.Resource, error) {
	return c.cfg.Store.VersionResource(ctx, env, number, id)
}

// DiffVersions compares two versions, from the older to the newer.
func (c *Control) DiffVersions(
	ctx context.Context,
	env intent.EnvironmentID,
	from, to int,
) ([]intent.ResourceDiff, error) {
	if from >= to {
		return nil, fault.New("control.DiffVersions", fault.Invalid, "the first version must be older than the second")
	}
	return c.cfg.Store.DiffVersions(ctx, env, from, to)
}
