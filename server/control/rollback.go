package control

import (
	"context"
	"fmt"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// RollBack deploys the content of an earlier version again, as a new version, and
// blocks the commit that it leaves. If to is 0, it goes back to the last deployed
// version of another commit that is not blocked. If the new version removes too much,
// it is held like any other version.
func (c *Control) RollBack(ctx context.Context, env intent.EnvironmentID, to int) (intent.Version, error) {
	const op = "control.RollBack"
	by, err := c.reasoned(ctx, op)
	if err != nil {
		return intent.Version{}, err
	}
	if to < 0 {
		return intent.Version{}, fault.New(op, fault.Invalid, fmt.Sprintf("there is no version %d", to))
	}
	audit.Subject(ctx, fmt.Sprintf("to version %d", to))
	number, err := c.cfg.Store.Asking(env, intent.RequestRelease, nil).RollBack(ctx, env, to, by)
	if err != nil {
		c.cfg.Keepers.Held(env, number, err)
		return intent.Version{}, err
	}
	v, err := c.cfg.Store.Version(ctx, env, number)
	if err != nil {
		return v, err
	}
	c.cfg.Logger.Info("rolled back", "environment", env, "version", number, "to", v.Provenance.RolledBack.To, "by",
		by.By, "reason", by.Reason)
	c.showBlocked(ctx, env, number)
	c.released(ctx, env, number)
	return v, nil
}
