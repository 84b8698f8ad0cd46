package control

import (
	"context"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/keeper"
)

// AcceptCommit accepts a commit that was refused because it does not descend from
// the deployed one, and compiles it. commit may be abbreviated.
func (c *Control) AcceptCommit(
	ctx context.Context,
	env intent.EnvironmentID,
	commit string,
) (intent.Acceptance, error) {
	const op = "control.AcceptCommit"
	by := c.actor(ctx)
	if by.Reason == "" {
		return intent.Acceptance{}, fault.New(op, fault.Invalid, "give a reason for accepting this commit; it is kept")
	}
	audit.Subject(ctx, "commit "+commit)
	state, err := c.cfg.Store.GitState(ctx, env)
	if err != nil {
		return intent.Acceptance{}, err
	}
	if state == nil || state.Kind != intent.GitRewritten || !abbreviates(commit, state.Commit) {
		return intent.Acceptance{}, fault.New(op, fault.Conflict, "no such commit is waiting to be accepted").
			Hint("only the newest commit of the environment can be, if it was refused for rewriting history")
	}
	a := intent.Acceptance{Commit: state.Commit, By: by.By, Reason: by.Reason, At: by.At}
	if err := c.cfg.Store.AcceptCommit(ctx, env, a); err != nil {
		return a, err
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{Update: true, Trigger: intent.Trigger{
		Type: "accept", Message: by.By + " accepted " + short(a.Commit) + ": " + by.Reason,
	}})
	return a, err
}

// UnblockCommit unblocks a commit and compiles the tip of the branch. commit may be
// abbreviated.
func (c *Control) UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Block, error) {
	const op = "control.UnblockCommit"
	by, err := c.reasoned(ctx, op)
	if err != nil {
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
		return intent.Block{}, fault.New(op, fault.Conflict, strconv.Itoa(len(found))+" blocked commits begin with it").
			Hint("give at least seven characters of one; `ordain git blocks` lists them")
	}
	b := found[0]
	audit.Subject(ctx, "commit "+b.Commit)
	if err := c.cfg.Store.UnblockCommit(ctx, env, b.Commit, by); err != nil {
		return b, err
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{Update: true, Trigger: intent.Trigger{
		Type: "unblock", Message: by.By + " unblocked " + short(b.Commit) + ": " + by.Reason,
	}})
	if fault.Is(err, fault.Invalid) { // bound to no repository any more: it is unblocked all the same
		err = nil
	}
	return b, err
}

// showBlocked records that the newest commit of the branch is blocked, if the
// released version is a rollback from that commit.
func (c *Control) showBlocked(ctx context.Context, env intent.EnvironmentID, number int) {
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
	refusal := keeper.Blocked(*b)
	err = c.cfg.Store.SetGitState(ctx, env, intent.GitState{
		Kind: refusal.Kind, Commit: commit, Message: refusal.Message, Advice: refusal.Advice, Checked: c.cfg.Now(),
	})
	if err != nil {
		c.cfg.Logger.Warn("the state of Git could not be recorded", "environment", env, "error", err)
	}
	c.publish(env, bus.Environment, "")
}
