package keeper

import (
	"context"
	"errors"
	"fmt"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// recordGitState records the state of an environment's repository, and logs an error if
// it cannot.
func (k *keeper) recordGitState(ctx context.Context, s intent.GitState) {
	s.Checked = k.cfg.Now()
	k.persist(ctx, "record the state of Git", func() error { return k.cfg.Store.SetGitState(ctx, k.env, s) })
	k.publish(k.env, bus.Environment, "")
}

// recordGitFailure records why a repository could not be fetched from.
func (k *keeper) recordGitFailure(ctx context.Context, err error) {
	s := intent.GitState{Kind: intent.GitFailing, Message: err.Error()}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Advice != "" {
		whole := *f
		whole.Advice = ""
		s.Message, s.Advice = whole.Error(), f.Advice
	}
	k.recordGitState(ctx, s)
}

// looked is called by the watcher when polling a source begins to fail or works again.
func (r *Registry) looked(ctx context.Context, env intent.EnvironmentID, failed error) {
	k := r.keeper(env)
	if k == nil {
		return
	}
	if failed != nil {
		k.recordGitFailure(ctx, failed)
		return
	}
	state, err := r.cfg.Store.GitState(ctx, env)
	if err != nil || state == nil || state.Kind != intent.GitFailing {
		return
	}
	k.recordGitState(ctx, intent.GitState{Kind: intent.GitOK})
}

// Blocked is the refusal of a commit that a person rolled back.
func Blocked(b intent.Block) *intent.Refusal {
	return &intent.Refusal{
		Kind: intent.GitBlocked, Commit: b.Commit,
		Message: fmt.Sprintf("%s is blocked: %s took it back: %s", short(b.Commit), b.By, b.Reason),
		Advice:  "push a fix: a newer commit is deployed as usual; or unblock this one with `ordain git unblock`",
	}
}
