package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

func (s *server) queueCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/queue",
		"Show what the scheduler of an environment runs, what comes next and why it waits, agent by agent. "+
			"Inmanta has no such call.", access.SeeAgents, s.getQueue)
}

// queueIn asks for the queue of one agent, or of as many agents as limit says, the busiest first.
type queueIn struct {
	inEnvironment
	Agent string `arg:"agent"`
	Limit int    `arg:"limit"`
	// Next is how many waiting tasks of each agent are shown.
	Next int `arg:"next"`
}

func (a *queueIn) setDefaults() { a.Limit, a.Next = 100, 3 }

// queue is what a scheduler runs and has to run. Available is false when no server process answers for it.
type queue struct {
	Available bool         `json:"available"`
	Halted    bool         `json:"halted"`
	Full      bool         `json:"full"`
	Running   int          `json:"running"`
	Waiting   int          `json:"waiting"`
	Jobs      int          `json:"jobs"`
	Agents    []agentQueue `json:"agents"`
	More      int          `json:"more_agents"`
}

type agentQueue struct {
	Agent   string       `json:"agent"`
	Running []queuedTask `json:"running"`
	Next    []queuedTask `json:"next"`
	Waiting int          `json:"waiting"`
	Jobs    int          `json:"jobs"`
	Why     *string      `json:"why"`
	Until   *timestamp   `json:"until"`
}

type queuedTask struct {
	ResourceID string     `json:"resource_id"`
	Priority   string     `json:"priority"`
	Reason     string     `json:"reason"`
	Since      *timestamp `json:"since"`
	WaitsFor   *string    `json:"waits_for"`
	Gate       *string    `json:"gate"`
	Sent       bool       `json:"sent"`
	Job        bool       `json:"job"`
}

func (s *server) getQueue(ctx context.Context, a queueIn) (queue, error) {
	if a.Limit < 1 || a.Limit > intent.MostQueueAgents {
		return queue{}, invalid("limit has to be a number from 1 to %d", intent.MostQueueAgents)
	}
	if a.Next < 0 || a.Next > intent.MostQueueNext {
		return queue{}, invalid("next has to be a number from 0 to %d", intent.MostQueueNext)
	}
	q, err := s.control.Queue(ctx, a.Env, intent.QueueQuestion{Agent: a.Agent, Agents: a.Limit, Next: a.Next})
	out := queue{
		Available: q.Here, Halted: q.Halted, Full: q.Full, Running: q.Running, Waiting: q.Waiting, Jobs: q.Jobs,
		Agents: []agentQueue{}, More: q.More,
	}
	for _, one := range q.Agents {
		out.Agents = append(out.Agents, agentQueue{
			Agent: one.Agent, Running: queuedTasks(one.Running), Next: queuedTasks(one.Next), Waiting: one.Waiting,
			Jobs: one.Jobs, Why: orNull(string(one.Why)), Until: unlessZero(one.Until),
		})
	}
	return out, err
}

func queuedTasks(list []intent.QueuedTask) []queuedTask {
	out := []queuedTask{}
	for _, t := range list {
		one := queuedTask{
			ResourceID: t.Resource.String(), Priority: t.Priority, Reason: t.Reason, Since: unlessZero(t.Since),
			Sent: t.Sent, Job: t.Job,
		}
		if !t.WaitsFor.IsZero() {
			one.WaitsFor = new(t.WaitsFor.String())
		}
		if t.Gate.Held() {
			one.Gate = new(t.Gate.String())
		}
		out = append(out, one)
	}
	return out
}
