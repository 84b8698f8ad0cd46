package control

import (
	"context"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
)

// CancelCompile ends a compile that waits or runs, with its processes. What is deployed stays. It returns Conflict if
// the compile has ended. One that has begun to store its version ends by itself all the same.
func (c *Control) CancelCompile(ctx context.Context, env intent.EnvironmentID, id intent.CompileID) error {
	const op = "control.CancelCompile"
	by := c.actor(ctx)
	if len(by.By) > maxWords || len(by.Reason) > maxWords {
		return fault.New(op, fault.Invalid, "the name or the reason is too long")
	}
	audit.Subject(ctx, "compile "+id.String())
	audit.Because(ctx, by.By, by.Reason)
	preview, err := c.previewOf(ctx, env, id)
	if err != nil {
		return err
	}
	what := intent.CancelRequest{Compile: id, By: by.By, Reason: by.Reason}
	err = c.cfg.Store.Asking(env, intent.RequestCancel, what).CancelCompile(ctx, env, id, by)
	if err != nil && (preview == nil || !fault.Is(err, fault.NotFound)) { // a preview that waits has no run yet
		return err
	}
	c.publish(env, bus.Compile, id.String())
	if preview != nil {
		err := c.cfg.Keepers.CancelDryRun(ctx, env, preview.ID)
		if !fault.Is(err, fault.Conflict) { // it has ended meanwhile
			return err
		}
	}
	c.cfg.Keepers.Attend(ctx, env)
	return nil
}

// previewOf returns the dry run whose commit a compile is for; nil when there is none.
func (c *Control) previewOf(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.CompileID,
) (*intent.DryRun, error) {
	open, err := c.cfg.Store.OpenDryRuns(ctx, env)
	for i := range open {
		if open[i].Compile != nil && *open[i].Compile == id {
			return &open[i], nil
		}
	}
	return nil, err
}
