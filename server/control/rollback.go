package control

import (
	"context"
	"fmt"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// RollBack deploys the content of an earlier version again, as a version of its
// own, and blocks the commit that is left; to is 0 for the last one before that
// was deployed and is of another, unblocked commit. What takes away much is held
// like any version; once confirmed it is a rollback like any other.
func (c *Control) RollBack(ctx context.Context, env intent.EnvironmentID, to int) (intent.Version, error) {
	const op = "control.RollBack"
	by := c.actor(ctx)
	if err := saidWhy(op, by); err != nil {
		return intent.Version{}, err
	}
	if to < 0 {
		return intent.Version{}, fault.New(op, fault.Invalid, fmt.Sprintf("there is no version %d", to))
	}
	number, err := c.cfg.Store.RollBack(ctx, env, to, by)
	if err != nil {
		c.held(env, number, err)
		return intent.Version{}, err
	}
	v, err := c.cfg.Store.Version(ctx, env, number)
	if err != nil {
		return v, err
	}
	c.cfg.Logger.Info(
		"rolled back",
		"environment",
		env,
		"version",
		number,
		"to",
		v.Provenance.RolledBack.To,
		"by",
		by.By,
		"reason",
		by.Reason,
	)
	c.rolledBack(ctx, env, number)
	c.released(env, number)
	return v, nil
}

// rolledBack shows that the newest commit of the branch is blocked, where it is.
func (c *Control) rolledBack(ctx context.Context, env intent.EnvironmentID, number int) {
	v, err := c.cfg.Store.Version(ctx, env, number)
	if err != nil || v.Provenance.RolledBack == nil {
		return
	}
	commit := v.Provenance.RolledBack.Blocked
	last, err := c.cfg.Store.LastCompile(ctx, env)
	if err != nil || last == nil || last.Revision == nil || last.Revision.Commit != commit {
		return
	}
	b, err := c.cfg.Store.GitBlock(ctx, env, commit)
	if err != nil || b == nil {
		return
	}
	refusal := blocked(*b)
	s := intent.GitState{
		Kind:    refusal.Kind,
		Commit:  commit,
		Message: refusal.Message,
		Advice:  refusal.Advice,
		Checked: c.cfg.Now(),
	}
	if err := c.cfg.Store.SetGitState(ctx, env, s); err != nil {
		c.cfg.Logger.Warn("the state of Git could not be recorded", "environment", env, "error", err)
	}
	c.publish(env, bus.Environment, "")
}

// saidWhy refuses what somebody does without a reason, or with a whole book of one.
func saidWhy(op string, by intent.Actor) error {
	if by.Reason == "" || len(by.Reason) > maxWords || len(by.By) > maxWords {
		return fault.New(op, fault.Invalid, fmt.Sprintf("say why, in at most %d bytes; it is kept", maxWords))
	}
	return nil
}

// blocked is why a commit that a person took back is not compiled.
func blocked(b intent.Block) *intent.Refusal {
	short := intent.Revision{Commit: b.Commit}.Short()
	return &intent.Refusal{
		Kind: intent.GitBlocked, Commit: b.Commit, Message: fmt.Sprintf("%s is blocked: %s took it back: %s", short, b.By, b.Reason),
		Advice: "push a fix: a newer commit is deployed as usual; or free this one with `ordain git unblock`",
	}
}

// BlockedCommits lists the commits that people took back, newest first.
func (c *Control) BlockedCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.Block, error) {
	return c.cfg.Store.GitBlocks(ctx, env)
}

// UnblockCommit frees a commit that was taken back, and compiles what the branch
// points to. commit may be shortened.
func (c *Control) UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Block, error) {
	const op = "control.UnblockCommit"
	by := c.actor(ctx)
	if err := saidWhy(op, by); err != nil {
		return intent.Block{}, err
	}
	all, err := c.cfg.Store.GitBlocks(ctx, env)
	if err != nil {
		return intent.Block{}, err
	}
	var found []intent.Block
	for _, b := range all {
		if abbreviates(commit, b.Commit) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		return intent.Block{}, fault.New(op, fault.Conflict, strconv.Itoa(len(found))+" blocked commits begin so").
			Hint("give at least seven characters of one; `ordain git blocks` lists them")
	}
	b := found[0]
	if err := c.cfg.Store.UnblockCommit(ctx, env, b.Commit, by); err != nil {
		return b, err
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{
		Update: true, Trigger: intent.Trigger{Type: "unblock", Message: by.By + " freed " + intent.Revision{Commit: b.Commit}.Short() + ": " + by.Reason},
	})
	if fault.Is(err, fault.Invalid) { // bound to no repository any more: it is free all the same
		err = nil
	}
	return b, err
}
