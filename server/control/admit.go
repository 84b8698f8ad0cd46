package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// A commit is admitted before anything of it is checked out or run: it is held
// against what the environment asks (signatures, the history that is deployed,
// the refs that may be). One that is refused ends its compile; the state of the
// environment's Git says why, and what is deployed stays.

// admit is the stage of a compile that does so.
func (r *run) admit(ctx context.Context) error {
	if r.compile.Revision == nil || r.preview {
		return nil
	}
	policy := r.e.GitPolicy()
	rev := *r.compile.Revision
	var block *intent.Block
	var branch string
	err := r.patiently(ctx, "read what is deployed", func() (err error) {
		if block, err = r.control.cfg.Store.GitBlock(ctx, r.env, rev.Commit); err == nil {
			branch, err = r.base(ctx, &policy, rev.Commit)
		}
		return err
	})
	if err != nil {
		return err
	}
	if block != nil {
		return r.stage(
			ctx,
			intent.StageVerify,
			func(Output) (string, error) { return "", r.refuse(ctx, rev, blocked(*block)) },
		)
	}
	if !policy.Asks() || rev.Commit == policy.Base && policy.Verify == "off" {
		r.gitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		return nil
	}
	who, err := r.control.cfg.Git.Verify(ctx, r.source, rev, policy)
	if refusal := (*intent.Refusal)(nil); branch != "" && errors.As(err, &refusal) &&
		refusal.Kind == intent.GitRewritten {
		// What was rolled back is history all the same: a fix may go on from it.
		policy.Base = branch
		who, err = r.control.cfg.Git.Verify(ctx, r.source, rev, policy)
	}
	if err == nil && policy.Verify == "off" && len(policy.Refs) == 0 {
		r.gitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		return nil // that history goes on is not worth a stage of the report
	}
	return r.stage(ctx, intent.StageVerify, func(out Output) (string, error) {
		if refusal := (*intent.Refusal)(nil); errors.As(err, &refusal) {
			return "", r.refuse(ctx, rev, refusal)
		}
		if err != nil {
			return "", err
		}
		r.gitState(ctx, intent.GitState{Kind: intent.GitOK, Commit: rev.Commit})
		if who.Name == "" {
			out(fmt.Sprintf("%s may be deployed\n", rev.Short()), "")
			return "", nil
		}
		out(fmt.Sprintf("%s is signed by %s (%s)\n", rev.Short(), who.Name, who.Key), "")
		rev.Signer = who
		return "", r.choose(ctx, rev)
	})
}

// refuse records why a commit may not be deployed.
func (r *run) refuse(ctx context.Context, rev intent.Revision, refusal *intent.Refusal) error {
	r.gitState(
		ctx,
		intent.GitState{Kind: refusal.Kind, Commit: rev.Commit, Message: refusal.Message, Advice: refusal.Advice},
	)
	r.refused = true
	return refusal
}

// base fills in what is deployed, and whether a person accepted the commit. After
// a rollback, branch is how far the branch had been deployed.
func (r *run) base(ctx context.Context, policy *intent.GitPolicy, commit string) (branch string, err error) {
	active, err := r.control.cfg.Store.ActiveVersion(ctx, r.env)
	if err != nil || active == nil {
		return "", err
	}
	policy.Base = active.Provenance.Commit
	if strings.HasPrefix(r.e.Source.Branch, "semver:") && r.compile.Revision.Branch != active.Provenance.Branch {
		policy.Rewrites = true // releases need not descend from each other; one that moved is a rewrite
	}
	if b := active.Provenance.RolledBack; b != nil {
		branch = b.Branch
	}
	if policy.Rewrites {
		return branch, nil
	}
	accepted, err := r.control.cfg.Store.Acceptance(ctx, r.env, commit)
	policy.Rewrites = accepted != nil
	return branch, err
}

// gitState records how it goes; what cannot be recorded is logged.
func (k *keeper) gitState(ctx context.Context, s intent.GitState) {
	s.Checked = k.control.cfg.Now()
	k.persist(ctx, "record the state of Git", func() error { return k.control.cfg.Store.SetGitState(ctx, k.env, s) })
	k.control.publish(k.env, bus.Environment, "")
}

// gitFailed records why a repository could not be fetched from.
func (k *keeper) gitFailed(ctx context.Context, err error) {
	s := intent.GitState{Kind: intent.GitFailing, Message: err.Error()}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Advice != "" {
		whole := *f
		whole.Advice = ""
		s.Message, s.Advice = whole.Error(), f.Advice
	}
	k.gitState(ctx, s)
}

// Looked is told by the watcher how its look at the source of an environment
// went, when that is otherwise than the last time.
func (c *Control) Looked(ctx context.Context, env intent.EnvironmentID, failed error) {
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k == nil {
		return
	}
	if failed != nil {
		k.gitFailed(ctx, failed)
		return
	}
	state, err := c.cfg.Store.GitState(ctx, env)
	if err != nil || state == nil || state.Kind != intent.GitFailing {
		return
	}
	k.gitState(ctx, intent.GitState{Kind: intent.GitOK})
}

// shownCommits is how many of the newest commits are listed.
const shownCommits = 100

// GitState tells how it goes between an environment and its repository; nil when
// nothing is known yet.
func (c *Control) GitState(ctx context.Context, env intent.EnvironmentID) (*intent.GitState, error) {
	return c.cfg.Store.GitState(ctx, env)
}

// GitCommits lists the newest commits, and what became of them.
func (c *Control) GitCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.GitCommit, error) {
	return c.cfg.Store.GitCommits(ctx, env, shownCommits)
}

// AcceptCommit lets the commit through that was refused because it does not
// descend from what is deployed, and compiles it. commit may be shortened.
func (c *Control) AcceptCommit(
	ctx context.Context,
	env intent.EnvironmentID,
	commit string,
) (intent.Acceptance, error) {
	const op = "control.AcceptCommit"
	by := c.actor(ctx)
	if by.Reason == "" {
		return intent.Acceptance{}, fault.New(op, fault.Invalid, "say why this commit is accepted; it is kept")
	}
	state, err := c.cfg.Store.GitState(ctx, env)
	if err != nil {
		return intent.Acceptance{}, err
	}
	if state == nil || state.Kind != intent.GitRewritten || !abbreviates(commit, state.Commit) {
		return intent.Acceptance{}, fault.New(op, fault.Conflict, "no such commit waits to be accepted").
			Hint("only the newest commit of the environment, refused because it rewrites history, can be")
	}
	a := intent.Acceptance{Commit: state.Commit, By: by.By, Reason: by.Reason, At: by.At}
	if err := c.cfg.Store.AcceptCommit(ctx, env, a); err != nil {
		return a, err
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{
		Update: true, Trigger: intent.Trigger{Type: "accept", Message: by.By + " accepted " + intent.Revision{Commit: a.Commit}.Short() + ": " + by.Reason},
	})
	return a, err
}

// abbreviates tells whether a text is a commit, or its first seven characters or more.
func abbreviates(text, commit string) bool {
	return len(text) >= 7 && len(text) <= len(commit) && commit[:len(text)] == text
}
