package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
)

// Before anything of a commit is checked out or run, the commit is checked against the
// environment's policy: signatures, descent from the deployed commit, allowed refs. If
// it is refused, its compile ends and the environment's Git state says why; the deployed
// version stays.

// admit is the stage of a compile that checks the commit.
func (c *compilation) admit(ctx context.Context) error {
	rev := *c.compile.Revision
	policy := c.e.GitPolicy()
	var block *intent.Block
	var deployed string
	err := c.patiently(ctx, "read what is deployed", func() (err error) {
		if block, err = c.cfg.Store.GitBlock(ctx, c.env, rev.Commit); err == nil {
			deployed, err = c.addBase(ctx, &policy, rev.Commit)
		}
		return err
	})
	if err != nil {
		return err
	}
	if block != nil {
		return c.stage(ctx, intent.StageVerify, func(build.Output) (string, error) {
			return "", c.refuse(ctx, rev, Blocked(*block))
		})
	}
	if !policy.Asks() || rev.Commit == policy.Base && policy.Verify == "off" {
		c.recordGitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		return nil
	}
	who, err := c.cfg.Git.Verify(ctx, c.source, rev, policy)
	if refusal := (*intent.Refusal)(nil); deployed != "" && errors.As(err, &refusal) &&
		refusal.Kind == intent.GitRewritten {
		// A commit that was rolled back is still history: a fix may descend from it.
		policy.Base = deployed
		who, err = c.cfg.Git.Verify(ctx, c.source, rev, policy)
	}
	if err == nil && policy.Verify == "off" && len(policy.Refs) == 0 {
		c.recordGitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		return nil // a check of descent alone is not worth a stage in the report
	}
	return c.stage(ctx, intent.StageVerify, func(out build.Output) (string, error) {
		if refusal := (*intent.Refusal)(nil); errors.As(err, &refusal) {
			return "", c.refuse(ctx, rev, refusal)
		}
		if err != nil {
			return "", err
		}
		c.recordGitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		if who.Name == "" {
			out(fmt.Sprintf("%s may be deployed\n", rev.Short()), "")
			return "", nil
		}
		out(fmt.Sprintf("%s is signed by %s (%s)\n", rev.Short(), who.Name, who.Key), "")
		rev.Signer = who
		return "", c.choose(ctx, rev)
	})
}

// refuse records why a commit may not be deployed.
func (c *compilation) refuse(ctx context.Context, rev intent.Revision, refusal *intent.Refusal) error {
	c.recordGitState(ctx, intent.GitState{
		Kind: refusal.Kind, Commit: rev.Commit, Message: refusal.Message, Advice: refusal.Advice,
	})
	c.refused = true
	return refusal
}

// addBase adds the deployed commit to the policy, and whether a person accepted this
// commit. After a rollback it returns the commit up to which the branch had been deployed.
func (c *compilation) addBase(
	ctx context.Context,
	policy *intent.GitPolicy,
	commit string,
) (deployed string, err error) {
	active, err := c.cfg.Store.ActiveVersion(ctx, c.env)
	if err != nil || active == nil {
		return "", err
	}
	policy.Base = active.Provenance.BranchCommit()
	if strings.HasPrefix(c.e.Source.Branch, "semver:") && c.compile.Revision.Branch != active.Provenance.Branch {
		policy.Rewrites = true // tags need not descend from each other; a tag that moved is a rewrite
	}
	if b := active.Provenance.RolledBack; b != nil {
		deployed = b.Branch
	}
	if policy.Rewrites {
		return deployed, nil
	}
	accepted, err := c.cfg.Store.Acceptance(ctx, c.env, commit)
	policy.Rewrites = accepted != nil
	return deployed, err
}
