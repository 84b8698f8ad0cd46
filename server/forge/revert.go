package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/client"
)

// OpenRevert opens a pull request at the forge that takes a commit of the
// environment's branch back, and returns its page. Asked again it returns the one
// that is open. Conflict when the commit cannot be taken back by itself, or
// there is no forge.
func (s *Service) OpenRevert(
	ctx context.Context,
	e intent.Environment,
	commit, why string,
) (page string, err error) {
	const op = "forge.OpenRevert"
	f, err := s.cfg.Forges.Open(ctx, e)
	if errors.Is(err, ErrNoForge) {
		return "", fault.New(op, fault.Conflict, "the environment "+e.Name+" has no forge, or no token for it").
			Hint("set the secret forge-token, or revert the commit by hand: git revert " + commit)
	}
	if err != nil {
		return "", err
	}
	branch, err := s.branch(ctx, e)
	if err != nil {
		return "", err
	}
	if branch == "" {
		return "", fault.New(op, fault.Conflict, "the environment "+e.Name+" follows no branch")
	}
	src, err := s.cfg.Sources.Of(ctx, e)
	if err != nil {
		return "", err
	}
	tip, changes, err := s.cfg.Git.Revert(ctx, src, commit)
	if err != nil {
		return "", err
	}
	if why = strings.TrimSpace(why); why == "" {
		why = "Asked for in the environment " + e.Name + "."
	}
	short := intent.Revision{Commit: commit}.Short()
	return f.Propose(ctx, client.Proposal{
		What: "the revert", Base: branch, Tip: tip, Branch: "ordain/revert-" + short, Changes: changes,
		Title: "Revert " + short, Body: fmt.Sprintf("%s\n\nThis reverts commit %s.", why, commit),
	})
}
