package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ordain.dev/ordain/internal/intent"
)

type agentRow struct {
	Name        string
	Paused      bool
	PausedBy    string
	PausedAt    *time.Time
	Resources   int
	Status      string
	ProcessName string

	BreakerSince    *time.Time
	BreakerProbe    *time.Time
	BreakerPause    int // seconds
	BreakerFailures int
}

func (r agentRow) value() (intent.Agent, error) {
	return intent.Agent{
		Name:      r.Name,
		Paused:    r.Paused,
		PausedBy:  r.PausedBy,
		PausedAt:  utc(r.PausedAt),
		Resources: r.Resources,
		Breaker: intent.Breaker{
			Since:    utc(r.BreakerSince),
			ProbeAt:  utc(r.BreakerProbe),
			Pause:    time.Duration(r.BreakerPause) * time.Second,
			Failures: r.BreakerFailures,
		},
	}, nil
}

// Agents lists the agents that have resources in the active version, and those that are paused.
func (s *Store) Agents(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Agent], error) {
	return page(ctx, s, "store.Agents", AgentList, q, agentRow.value, env)
}

// SetAgentPaused pauses or resumes one agent, or all known ones when name is empty, and records who did. An agent may
// be paused before a version has it.
func (s *Store) SetAgentPaused(
	ctx context.Context,
	env intent.EnvironmentID,
	name string,
	paused bool,
	by intent.Actor,
) error {
	return s.write(ctx, "store.SetAgentPaused", func(tx pgx.Tx) error {
		if err := s.exists(ctx, tx, env); err != nil {
			return err
		}
		var tag pgconn.CommandTag
		var err error
		if name == "" {
			tag, err = tx.Exec(ctx, statements.AgentPauseAll, env, paused, cleanText(by.By), by.At)
		} else {
			tag, err = tx.Exec(ctx, statements.AgentPause, env, name, paused, cleanText(by.By), by.At)
		}
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return intervene(ctx, tx, env, did(paused, intent.DidPause, intent.DidUnpause), name, by)
	})
}

// UnmanagedAgents returns the agents that the released model does not want to be started by the server: those whose
// std::AgentConfig has autostart = false.
func (s *Store) UnmanagedAgents(ctx context.Context, env intent.EnvironmentID) (map[string]bool, error) {
	out := map[string]bool{}
	err := s.read(ctx, "store.UnmanagedAgents", func(q querier) error {
		rows, err := q.Query(ctx, statements.AgentUnmanaged, env)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, name := range names {
			out[name] = true
		}
		return err
	})
	return out, err
}
