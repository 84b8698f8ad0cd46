package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// GitChange is one file as a revert wants it.
type GitChange = forge.Change

// OpenRevert opens a pull request at the forge that takes a commit of the
// environment's branch back, and gives its page. Asked again it gives the one
// that is open. Conflict when the commit cannot be taken back by itself, or
// there is no forge.
func (c *Control) OpenRevert(
	ctx context.Context,
	env intent.EnvironmentID,
	commit, why string,
) (page string, err error) {
	const op = "control.OpenRevert"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return "", err
	}
	f, err := c.forgeOf(ctx, e)
	if errors.Is(err, errNoForge) {
		return "", fault.New(op, fault.Conflict, "the environment "+e.Name+" has no forge, or no token for it").
			Hint("set the secret forge-token, or revert the commit by hand: git revert " + commit)
	}
	if err != nil {
		return "", err
	}
	branch, err := c.pullBranch(ctx, e)
	if err != nil {
		return "", err
	}
	if branch == "" {
		return "", fault.New(op, fault.Conflict, "the environment "+e.Name+" follows no branch")
	}
	source, err := c.gitSource(ctx, e)
	if err != nil {
		return "", err
	}
	tip, changes, err := c.cfg.Git.Revert(ctx, source, commit)
	if err != nil {
		return "", err
	}
	if why = strings.TrimSpace(why); why == "" {
		why = "Asked for in the environment " + e.Name + "."
	}
	return f.OpenRevert(ctx, forge.Revert{
		Commit: commit, Base: branch, Tip: tip, Branch: "ordain/revert-" + intent.Revision{Commit: commit}.Short(), Changes: changes,
		Title: fmt.Sprintf(
			"Revert %s",
			intent.Revision{Commit: commit}.Short(),
		), Body: fmt.Sprintf("%s\n\nThis reverts commit %s.", why, commit),
	})
}
