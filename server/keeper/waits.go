package keeper

import (
	"context"
	"encoding/json"
	"fmt"

	"ordain.dev/ordain/internal/intent"
)

// Turn says for what turn an environment waits before its next compile can start. It returns nil when no process owns
// the environment, or its owner does not answer.
func (r *Registry) Turn(ctx context.Context, env intent.EnvironmentID) *intent.Wait {
	if r.keeper(env) != nil {
		return r.compiles.waits(env)
	}
	ctx, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	answer, err := r.cfg.Bus.Ask(ctx, env, questionTurn, nil)
	var out intent.Wait
	if err != nil || json.Unmarshal(answer, &out) != nil {
		return nil
	}
	return &out
}

// answerTurn answers what other processes ask about environments that are owned here.
func (r *Registry) answerTurn(_ context.Context, env intent.EnvironmentID, _ []byte) ([]byte, bool) {
	if r.keeper(env) == nil {
		return nil, false
	}
	answer, err := json.Marshal(r.compiles.waits(env))
	return answer, err == nil
}

// waits says for what an environment waits. One that has its turn, or has not asked for it yet, is about to start.
func (t *turns) waits(env intent.EnvironmentID) *intent.Wait {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiting {
		if w.env != env {
			continue
		}
		if t.free > 0 {
			return &intent.Wait{Kind: intent.WaitsQuota, Text: t.projects.reached(w.project)}
		}
		return &intent.Wait{
			Kind: intent.WaitsPlace,
			Text: "a free place: this server runs as many compiles at a time as it may",
		}
	}
	return &intent.Wait{Kind: intent.WaitsStart, Text: "its start"}
}

// reached says that a project has as many turns as it may have.
func (p *projectTurns) reached(project intent.ProjectID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("the quota %s of its project: %d of %d run", intent.QuotaCompiles, p.held[project],
		p.most[project])
}
