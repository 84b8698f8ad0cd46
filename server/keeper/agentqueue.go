package keeper

import (
	"context"
	"encoding/json"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

const questionQueue = "queue"

// Queue reports what the scheduler of an environment runs and has to run, wherever its owner is. Here is false when no
// owner answers.
func (r *Registry) Queue(ctx context.Context, env intent.EnvironmentID, q intent.QueueQuestion) (out intent.Queue) {
	ctx, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	if d := r.Deployer(env); d != nil {
		return d.Queue(ctx, q)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return intent.Queue{}
	}
	answer, err := r.cfg.Bus.Ask(ctx, env, questionQueue, body)
	if err != nil || json.Unmarshal(answer, &out) != nil {
		return intent.Queue{}
	}
	return out
}

// answerQueue answers what other processes ask about environments that are owned here. Where the answer is too large
// for the way back, it is about fewer agents.
func (r *Registry) answerQueue(ctx context.Context, env intent.EnvironmentID, body []byte) ([]byte, bool) {
	d := r.Deployer(env)
	if d == nil {
		return nil, false
	}
	var q intent.QueueQuestion
	if json.Unmarshal(body, &q) != nil || q.Agents < 0 || q.Agents > intent.MostQueueAgents || q.Next < 0 ||
		q.Next > intent.MostQueueNext {
		return nil, false
	}
	for {
		answer, err := json.Marshal(d.Queue(ctx, q))
		if err != nil {
			return nil, false
		}
		if len(answer) <= bus.MaxAnswer || q.Agents == 0 {
			return answer, true
		}
		q.Agents /= 2
	}
}
