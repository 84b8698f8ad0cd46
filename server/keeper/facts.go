package keeper

import (
	"context"
	"fmt"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// FactsChanged requests a compile if the newest version lacked a fact or parameter that
// is known by now. It works in the background, so that the caller does not wait.
func (r *Registry) FactsChanged(env intent.EnvironmentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx := r.ctx; ctx != nil && ctx.Err() == nil {
		r.ending.Go(func() { r.CompileForFacts(ctx, env) })
	}
}

// CompileForFacts is FactsChanged for a caller that can wait. It logs errors.
func (r *Registry) CompileForFacts(ctx context.Context, env intent.EnvironmentID) {
	known, err := r.cfg.Store.UnknownsKnown(ctx, env)
	if err == nil && len(known) > 0 {
		err = r.compileForFacts(ctx, env, known)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Error("cannot tell whether the model was waiting for a fact", "environment", env, "error", err)
	}
}

func (r *Registry) compileForFacts(ctx context.Context, env intent.EnvironmentID, known []intent.Unknown) error {
	e, err := r.cfg.Store.Environment(ctx, env)
	if err != nil || e.Source.URL == "" {
		return err
	}
	open, err := r.cfg.Store.OpenCompiles(ctx, env)
	if err != nil || slices.ContainsFunc(open, willSeeAll) {
		return err // one is about to begin
	}
	message := "the model waited for " + known[0].Parameter
	if id := known[0].Resource; !id.IsZero() {
		message += " of " + id.String()
	}
	if more := len(known) - 1; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	_, _, err = r.Enqueue(ctx, e, CompileRequest{
		Trigger:  intent.Trigger{Type: "param", Message: message},
		Metadata: map[string]any{"type": "param", "message": message},
	})
	return err
}
