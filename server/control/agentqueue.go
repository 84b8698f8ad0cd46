package control

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// Queue reports what the scheduler of an environment runs and has to run. Here is false when its owner does not answer,
// or there is none yet. It returns NotFound for an unknown environment.
func (c *Control) Queue(
	ctx context.Context, env intent.EnvironmentID, q intent.QueueQuestion,
) (intent.Queue, error) {
	if _, err := c.cfg.Store.Environment(ctx, env); err != nil {
		return intent.Queue{}, err
	}
	q.Agents = min(max(q.Agents, 0), intent.MostQueueAgents)
	q.Next = min(max(q.Next, 0), intent.MostQueueNext)
	return c.cfg.Keepers.Queue(ctx, env, q), nil
}
