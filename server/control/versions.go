package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// Release makes a version the intent and starts to deploy it. It returns Conflict if
// the version was released already or is older than the active one, and if it removes
// so much that a person has to confirm it; then it is held.
func (c *Control) Release(ctx context.Context, env intent.EnvironmentID, number int) error {
	audit.Subject(ctx, "version "+strconv.Itoa(number))
	err := c.cfg.Store.Asking(env, intent.RequestRelease, nil).ReleaseVersion(ctx, env, number, c.cfg.Now())
	if err != nil {
		c.cfg.Keepers.Held(env, number, err)
		return err
	}
	c.released(ctx, env, number)
	return nil
}

// Confirm releases a held version, and records the person and the reason.
func (c *Control) Confirm(ctx context.Context, env intent.EnvironmentID, number int, by, reason string) error {
	by = who(ctx, by)
	audit.Because(ctx, by, reason)
	audit.Subject(ctx, "version "+strconv.Itoa(number))
	confirmation := intent.Confirmation{By: strings.TrimSpace(by), Reason: strings.TrimSpace(reason), At: c.cfg.Now()}
	if by, reason := len(confirmation.By), len(confirmation.Reason); by == 0 || reason == 0 || by > maxWords ||
		reason > maxWords {
		return fault.New("control.Confirm", fault.Invalid, fmt.Sprintf("say who confirms and why, each in at most %d "+
			"bytes", maxWords)).
			Hint("both are kept with the version")
	}
	if err := c.cfg.Store.Asking(env, intent.RequestRelease, nil).
		ConfirmVersion(ctx, env, number, confirmation); err != nil {
		c.cfg.Keepers.Held(env, number, err)
		return err
	}
	c.showBlocked(ctx, env, number)
	c.cfg.Logger.Info("a held version was confirmed", "environment", env, "version", number, "by", confirmation.By,
		"reason", confirmation.Reason)
	c.released(ctx, env, number)
	return nil
}

// released notifies pages of a new intent, and lets the owner deploy it.
func (c *Control) released(ctx context.Context, env intent.EnvironmentID, number int) {
	c.publish(env, bus.Version, strconv.Itoa(number))
	c.cfg.Keepers.Attend(ctx, env)
}

// DeleteVersion deletes a version that is not active.
func (c *Control) DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error {
	audit.Subject(ctx, "version "+strconv.Itoa(number))
	if err := c.cfg.Store.DeleteVersion(ctx, env, number); err != nil {
		return err
	}
	c.publish(env, bus.Version, strconv.Itoa(number))
	return nil
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
