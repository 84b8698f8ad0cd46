package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type agentRow struct {
	Name        string
	Paused      bool
	Resources   int
	Status      string
	ProcessName string
}

func (r agentRow) value() (intent.Agent, error) {
	return intent.Agent{Name: r.Name, Paused: r.Paused, Resources: r.Resources}, nil
}

// Agents lists the agents that have resources in the active version, and those that are paused.
func (s *Store) Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error) {
	return page(ctx, s, "store.Agents", lists.agents, q, agentRow.value, env)
}

// SetAgentPaused pauses one agent, or all known ones when name is empty. An
// agent may be paused before a version has it.
func (s *Store) SetAgentPaused(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error {
	return s.write(ctx, "store.SetAgentPaused", func(tx pgx.Tx) error {
		if err := s.exists(ctx, tx, env); err != nil {
			return err
		}
		if name == "" {
			_, err := tx.Exec(ctx, statements.AgentPauseAll, env, paused)
			return err
		}
		_, err := tx.Exec(ctx, statements.AgentPause, env, name, paused)
		return err
	})
}
