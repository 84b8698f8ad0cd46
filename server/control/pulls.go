package control

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/forge"
)

// PullMoved records that a pull request has to be looked up at the forge. It returns
// Conflict if the environment shows no previews.
func (c *Control) PullMoved(ctx context.Context, env intent.EnvironmentID, number int) error {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	return forge.LookUp(ctx, c.cfg.Store, c.cfg.Bus, e, number, c.cfg.Now())
}

// ApprovePull lets the code of exactly one commit of a pull request run for a
// preview, and records the person who approved it.
func (c *Control) ApprovePull(ctx context.Context, env intent.EnvironmentID, number int, commit, by string) error {
	const op = "control.ApprovePull"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	by, commit = strings.TrimSpace(who(ctx, by)), strings.TrimSpace(commit)
	audit.Because(ctx, by, "")
	audit.Subject(ctx, fmt.Sprintf("pull request %d at %.40s", number, commit))
	switch {
	case by == "" || len(by) > 200:
		return fault.New(op, fault.Invalid, "name the person who approves, in at most 200 bytes")
	case commit == "":
		return fault.New(op, fault.Invalid, "name the commit to approve").
			Hint("use the whole hash, as `ordain pull show` and the console show it")
	}
	if err := forge.PreviewsWanted(op, e); err != nil {
		return err
	}
	actor := c.actor(ctx)
	actor.By = by
	if err := c.cfg.Store.ApprovePull(ctx, env, number, commit, actor); err != nil {
		return err
	}
	c.cfg.Logger.Info("a pull request was approved", "environment", env, "pull", number, "commit", commit, "by", by)
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if err != nil {
		return err
	}
	return c.cfg.Forge.StartPreview(ctx, e, p)
}

// PreviewPull computes the preview of a pull request again. A pull request that is
// not known yet is looked up first.
func (c *Control) PreviewPull(ctx context.Context, env intent.EnvironmentID, number int) error {
	const op = "control.PreviewPull"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if fault.Is(err, fault.NotFound) {
		return forge.LookUp(ctx, c.cfg.Store, c.cfg.Bus, e, number, c.cfg.Now())
	}
	if err != nil {
		return err
	}
	if err := forge.PreviewsWanted(op, e); err != nil {
		return err
	}
	switch {
	case p.State != intent.PullIsOpen:
		return fault.New(op, fault.Conflict, fmt.Sprintf("pull request %d is %s", number, p.State))
	case !p.MayRun():
		return fault.New(op, fault.Conflict,
			fmt.Sprintf("the code of pull request %d does not run here before somebody approves it", number)).
			Hint(forge.ApproveCommand(e, p))
	}
	return c.cfg.Forge.StartPreview(ctx, e, p)
}

// PullReview returns what policies say of a pull request; changed lists the resources that its preview would create,
// change or purge.
func (c *Control) PullReview(
	ctx context.Context, e intent.Environment, p intent.PullRequest, changed iter.Seq[intent.ResourceID],
) (forge.Review, error) {
	return c.cfg.Forge.Review(ctx, e, p, changed)
}

// PullText returns the text of the comment on a pull request, whether or not it is posted.
func (c *Control) PullText(ctx context.Context, env intent.EnvironmentID, number int) (string, error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return "", err
	}
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if err != nil {
		return "", err
	}
	report, err := c.cfg.Forge.Report(ctx, e, p)
	return report.Text(), err
}

// OpenRevert opens a pull request at the forge that reverts a commit of the
// environment's branch, and returns the URL of its page; if one is open already, it
// returns that one. It returns Conflict if the commit cannot be reverted by itself, or
// if there is no forge.
func (c *Control) OpenRevert(
	ctx context.Context,
	env intent.EnvironmentID,
	commit, why string,
) (page string, err error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return "", err
	}
	return c.cfg.Forge.OpenRevert(ctx, e, commit, why)
}

// RetryOutbox retries work for a forge that was given up.
func (c *Control) RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64) error {
	return c.cfg.Forge.Retry(ctx, env, id)
}
