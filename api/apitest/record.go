package apitest

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Store is the fake seen as the record that the API reads.
type Store struct{ *Control }

// Record returns the fake as a Store.
func (c *Control) Record() Store { return Store{c} }

// OpenCompiles lists the compiles that have not completed.
func (s Store) OpenCompiles(ctx context.Context, id uuid.UUID) ([]intent.Compile, error) {
	return s.CompileQueue(ctx, id)
}

// GitBlocks lists the blocked commits.
func (s Store) GitBlocks(ctx context.Context, id uuid.UUID) ([]intent.Block, error) {
	return s.BlockedCommits(ctx, id)
}

// GitCommits lists the newest commits.
func (s Store) GitCommits(ctx context.Context, id uuid.UUID, _ int) ([]intent.GitCommit, error) {
	return s.Control.GitCommits(ctx, id)
}

// Outbox lists the work for the forge.
func (s Store) Outbox(ctx context.Context, id uuid.UUID, _ int) ([]intent.Outbox, error) {
	return s.Control.Outbox(ctx, id)
}

// Overrides lists the overrides.
func (s Store) Overrides(ctx context.Context, id uuid.UUID, _ int) ([]intent.Override, error) {
	return s.Control.Overrides(ctx, id)
}

// Interventions lists what people did.
func (s Store) Interventions(ctx context.Context, id uuid.UUID, _ int) ([]intent.Intervention, error) {
	return s.Control.Interventions(ctx, id)
}
