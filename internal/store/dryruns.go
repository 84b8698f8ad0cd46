package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type dryRunRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Version     int
	Date        time.Time
	Total       int
	Todo        int
}

func (r dryRunRow) value() (intent.DryRun, error) {
	d := intent.DryRun(r)
	d.Date = d.Date.UTC()
	return d, nil
}

// CreateDryRun records a dry run; NotFound when there is no such version.
func (s *Store) CreateDryRun(ctx context.Context, d intent.DryRun) error {
	return s.write(ctx, "store.CreateDryRun", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.DryRunCreate, d.ID, d.Environment, d.Version, d.Date, d.Total, d.Todo)
		return err
	})
}

// AddDryRunDiffs stores results. A resource counts once.
func (s *Store) AddDryRunDiffs(ctx context.Context, env intent.EnvironmentID, id intent.ActionID, diffs []intent.ResourceDiff) error {
	resources, kinds, attributes := make([]string, 0, len(diffs)), make([]string, 0, len(diffs)), make([]string, 0, len(diffs))
	seen := make(map[intent.ResourceID]bool, len(diffs))
	for _, d := range diffs {
		if seen[d.ID] {
			continue
		}
		seen[d.ID] = true
		text, err := changesJSON(d.Attributes)
		if err != nil {
			return err
		}
		resources, kinds, attributes = append(resources, d.ID.String()), append(kinds, string(d.Kind)), append(attributes, text)
	}
	return s.write(ctx, "store.AddDryRunDiffs", func(tx pgx.Tx) error {
		if _, err := one[dryRunRow](ctx, tx, statements.DryRunLock, env, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statements.DryRunAdd, id, resources, kinds, attributes)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.DryRunCount, id, tag.RowsAffected())
		return err
	})
}

// DryRuns lists the dry runs of a version, newest first.
func (s *Store) DryRuns(ctx context.Context, env intent.EnvironmentID, version int) (out []intent.DryRun, err error) {
	err = s.read(ctx, "store.DryRuns", func(q querier) error {
		rows, err := many[dryRunRow](ctx, q, statements.DryRunList, env, version)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return requireVersion(ctx, q, env, version)
		}
		out, err = convert(rows, dryRunRow.value)
		return err
	})
	return out, err
}

type dryRunDiffRow struct {
	Resource   string
	Kind       string
	Attributes json.RawMessage
}

func (r dryRunDiffRow) value() (intent.ResourceDiff, error) {
	id, err1 := intent.ParseResourceID(r.Resource)
	attributes, err2 := fromJSON[map[string]intent.AttributeChange](r.Attributes)
	return intent.ResourceDiff{ID: id, Kind: intent.DiffKind(r.Kind), Attributes: attributes}, errors.Join(err1, err2)
}

// DryRun gives one with what it found so far, by resource id.
func (s *Store) DryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) (out intent.DryRun, diffs []intent.ResourceDiff, err error) {
	err = s.read(ctx, "store.DryRun", func(q querier) error {
		row, err := one[dryRunRow](ctx, q, statements.DryRunGet, env, id)
		if err != nil {
			return err
		}
		if out, err = row.value(); err != nil {
			return err
		}
		rows, err := many[dryRunDiffRow](ctx, q, statements.DryRunDiffs, id)
		if err == nil {
			diffs, err = convert(rows, dryRunDiffRow.value)
		}
		return err
	})
	return out, diffs, err
}
