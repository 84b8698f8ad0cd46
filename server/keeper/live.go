package keeper

import (
	"context"
	"encoding/json"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// What only the owner of an environment knows is asked of it through the bus. No decision
// depends on it: pages show it, or say that nobody answered.

const (
	questionExecutors = "executors"
	questionTurn      = "turn"
	// livePatience is how long an owner has to answer.
	livePatience = time.Second
)

// Executors reports on the executors of an environment, wherever its owner is. Here is false when no owner answers.
func (r *Registry) Executors(ctx context.Context, env intent.EnvironmentID) (out intent.Executors) {
	if d := r.Deployer(env); d != nil {
		return d.Executors()
	}
	ctx, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	answer, err := r.cfg.Bus.Ask(ctx, env, questionExecutors, nil)
	if err != nil || json.Unmarshal(answer, &out) != nil {
		return intent.Executors{}
	}
	return out
}

// answerExecutors answers what other processes ask about environments that are owned here.
func (r *Registry) answerExecutors(_ context.Context, env intent.EnvironmentID, _ []byte) ([]byte, bool) {
	d := r.Deployer(env)
	if d == nil {
		return nil, false
	}
	answer, err := json.Marshal(d.Executors())
	return answer, err == nil
}
