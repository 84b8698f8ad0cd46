package store

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

type agentHealthRow struct {
	Name        string
	Paused      bool
	Unreachable bool
	Status      string
	Count       int
}

// AgentHealth counts the resources of each agent by status. The agents are those of Agents, by name.
func (s *Store) AgentHealth(ctx context.Context, env intent.EnvironmentID) ([]intent.AgentHealth, error) {
	rows, err := listed(ctx, s, "store.AgentHealth", func(r agentHealthRow) (agentHealthRow, error) { return r, nil },
		statements.AgentHealth, env)
	var out []intent.AgentHealth
	for _, r := range rows { // those of one agent are together
		if len(out) == 0 || out[len(out)-1].Name != r.Name {
			out = append(out, intent.AgentHealth{
				Name: r.Name, Paused: r.Paused, Unreachable: r.Unreachable, Resources: map[intent.Status]int{},
			})
		}
		if r.Count > 0 {
			out[len(out)-1].Resources[intent.Status(r.Status)] = r.Count
		}
	}
	return out, err
}
