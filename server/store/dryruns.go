package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type dryRunRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Version     int
	Date        time.Time
	Total       int
	Todo        int
	Asked       string
	Compile     *uuid.UUID
	Filter      json.RawMessage
	Base        int
	Ended       *time.Time
	Ending      string
	Reason      string
	Unknown     int64

	ResourceFilter json.RawMessage // NULL: none
	Context        json.RawMessage
}

func (r dryRunRow) value() (intent.DryRun, error) {
	filter, err := fromJSON[intent.DryRunFilter](r.Filter)
	return intent.DryRun{
		ID: r.ID, Environment: r.Environment, Version: r.Version, Date: r.Date.UTC(), Total: r.Total, Todo: r.Todo,
		Commit: r.Asked, Compile: r.Compile, Filter: filter, Base: r.Base,
		Ended: utc(r.Ended), Ending: intent.DryRunEnding(r.Ending), Reason: r.Reason, Unknown: int(r.Unknown),
		ResourceFilter: r.ResourceFilter, Context: r.Context,
	}, err
}

// CreateDryRun records a dry run; NotFound when there is no such version or environment.
func (s *Store) CreateDryRun(ctx context.Context, d intent.DryRun) error {
	return s.write(ctx, "store.CreateDryRun", func(tx pgx.Tx) error {
		return insertDryRun(ctx, tx, d)
	})
}

func insertDryRun(ctx context.Context, tx pgx.Tx, d intent.DryRun) error {
	var chosen []string // nil: all
	for _, id := range d.Chosen {
		chosen = append(chosen, id.String())
	}
	_, err := tx.Exec(ctx, statements.DryRunCreate, d.ID, d.Environment, d.Version, d.Date, d.Total, d.Todo,
		cleanText(d.Commit), d.Compile, toJSON(d.Filter), d.Base, orNullJSON(d.ResourceFilter), orNullJSON(d.Context),
		chosen)
	return err
}

// orNullJSON returns JSON as a parameter; NULL when there is none.
func orNullJSON(text json.RawMessage) *string {
	if text == nil {
		return nil
	}
	return new(string(text))
}

// DryRunChosen returns the resources that a filter chose for a dry run; nil: all that its Filter matches.
func (s *Store) DryRunChosen(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
) (out []intent.ResourceID, err error) {
	err = s.read(ctx, "store.DryRunChosen", func(q querier) error {
		var chosen []string
		if err := q.QueryRow(ctx, statements.DryRunChosen, env, id).Scan(&chosen); err != nil || chosen == nil {
			return err
		}
		var err error
		out, err = parseIDs(chosen)
		return err
	})
	return out, err
}

// lockDryRun keeps others from changing a dry run until the transaction ends; Conflict when it has ended.
func lockDryRun(ctx context.Context, tx pgx.Tx, op string, env intent.EnvironmentID, id intent.ActionID) error {
	var ended *time.Time
	if err := tx.QueryRow(ctx, statements.DryRunLock, env, id).Scan(&ended); err != nil {
		return err
	}
	if ended != nil {
		return fault.New(op, fault.Conflict, "this dry run has ended")
	}
	return nil
}

// AddDryRunDiffs stores results; a resource counts once. Conflict when the dry run has ended.
func (s *Store) AddDryRunDiffs(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
	diffs []intent.ResourceDiff,
) error {
	const op = "store.AddDryRunDiffs"
	var resources, kinds, attributes, reasons []string
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
		resources, kinds = append(resources, d.ID.String()), append(kinds, string(d.Kind))
		attributes, reasons = append(attributes, text), append(reasons, cleanText(d.Reason))
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if err := lockDryRun(ctx, tx, op, env, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statements.DryRunAdd, id, resources, kinds, attributes, reasons)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.DryRunCount, id, tag.RowsAffected())
		return err
	})
}

// SetDryRunVersion records the version that the commit of a dry run was compiled to, and how many resources are to be
// looked at. Repeating it changes nothing; Conflict when the dry run has ended.
func (s *Store) SetDryRunVersion(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
	version, total int,
) error {
	const op = "store.SetDryRunVersion"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if err := lockDryRun(ctx, tx, op, env, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.DryRunVersion, env, id, version, total)
		return err
	})
}

// EndDryRun ends a dry run. behind names, for resources that it could not look at, a resource that they require and
// that would have to be created first. Conflict when it has ended before.
func (s *Store) EndDryRun(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
	ending intent.DryRunEnding,
	reason string,
	behind map[intent.ResourceID]intent.ResourceID,
	at time.Time,
) error {
	const op = "store.EndDryRun"
	var resources, causes []string
	for r, cause := range behind {
		resources, causes = append(resources, r.String()), append(causes, cause.String())
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if err := lockDryRun(ctx, tx, op, env, id); err != nil {
			return err
		}
		if len(resources) > 0 {
			if _, err := tx.Exec(ctx, statements.DryRunBehind, id, resources, causes); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, statements.DryRunEnd, env, id, string(ending), cleanText(reason), at); err != nil {
			return err
		}
		if ending != intent.DryRunCancelled { // a cancelled one needs no comment, or its caller writes it
			if err := s.queueForForge(ctx, tx, statements.OutboxPullOf, id, at); err != nil {
				return err
			}
		}
		return dryRunNotice(ctx, tx, env, id, at)
	})
}

// dryRunNotice records the notice about a dry run that ended, if there is one.
func dryRunNotice(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, id intent.ActionID, at time.Time) error {
	row, err := one[dryRunRow](ctx, tx, statements.DryRunGet, env, id)
	if err != nil {
		return err
	}
	run, err := row.value()
	if err != nil {
		return err
	}
	kinds, err := many[struct {
		Kind  string
		Count int64
	}](ctx, tx, statements.DryRunKinds, id)
	if err != nil {
		return err
	}
	found := make(map[intent.DiffKind]int, len(kinds))
	for _, k := range kinds {
		found[intent.DiffKind(k.Kind)] = int(k.Count)
	}
	if n := dryRunEnding(run, found); n != nil {
		return addNotice(ctx, tx, env, *n, at)
	}
	return nil
}

// DryRuns lists the dry runs of a version, newest first; with version 0 those of all versions and commits. At most
// 1,000.
func (s *Store) DryRuns(ctx context.Context, env intent.EnvironmentID, version int) (out []intent.DryRun, err error) {
	err = s.read(ctx, "store.DryRuns", func(q querier) error {
		var err error
		out, err = collect(ctx, q, dryRunRow.value, statements.DryRunList, env, version)
		if err == nil && len(out) == 0 && version > 0 {
			return requireVersion(ctx, q, env, version)
		}
		return err
	})
	return out, err
}

// OpenDryRuns lists the dry runs that have not ended, oldest first.
func (s *Store) OpenDryRuns(ctx context.Context, env intent.EnvironmentID) (out []intent.DryRun, err error) {
	return listed(ctx, s, "store.OpenDryRuns", dryRunRow.value, statements.DryRunOpen, env)
}

// GoneResources lists the resources that version from has and version to does not have, by id.
func (s *Store) GoneResources(
	ctx context.Context,
	env intent.EnvironmentID,
	from, to int,
) (out []intent.ResourceID, err error) {
	err = s.read(ctx, "store.GoneResources", func(q querier) error {
		out, err = resourceIDs(ctx, q, statements.VersionGone, env, from, to)
		return err
	})
	return out, err
}

type dryRunDiffRow struct {
	Resource   string
	Kind       string
	Attributes json.RawMessage
	Reason     string
	Behind     string
}

func (r dryRunDiffRow) value() (intent.ResourceDiff, error) {
	id, err1 := intent.ParseResourceID(r.Resource)
	attributes, err2 := fromJSON[map[string]intent.AttributeChange](r.Attributes)
	d := intent.ResourceDiff{ID: id, Kind: intent.DiffKind(r.Kind), Attributes: attributes, Reason: r.Reason}
	var err3 error
	if r.Behind != "" {
		d.Behind, err3 = intent.ParseResourceID(r.Behind)
	}
	return d, errors.Join(err1, err2, err3)
}

// DryRun returns a dry run with what it has found so far, by resource id.
func (s *Store) DryRun(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
) (out intent.DryRun, diffs []intent.ResourceDiff, err error) {
	err = s.read(ctx, "store.DryRun", func(q querier) error {
		row, err := one[dryRunRow](ctx, q, statements.DryRunGet, env, id)
		if err != nil {
			return err
		}
		if out, err = row.value(); err != nil {
			return err
		}
		diffs, err = collect(ctx, q, dryRunDiffRow.value, statements.DryRunDiffs, id)
		return err
	})
	return out, diffs, err
}
