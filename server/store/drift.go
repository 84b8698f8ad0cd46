package store

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type driftRow struct {
	ID        uuid.UUID
	Resource  string
	Attribute string
	Desired   json.RawMessage
	Found     json.RawMessage
	Version   int
	Since     time.Time
	Seen      time.Time
	Ended     *time.Time
	Ending    string
}

func (r driftRow) value() (intent.Drift, error) {
	id, err := intent.ParseResourceID(r.Resource)
	return intent.Drift{
		ID: r.ID, Resource: id, Attribute: r.Attribute, Desired: r.Desired, Found: r.Found, Version: r.Version,
		Since: r.Since.UTC(), Seen: r.Seen.UTC(), Ended: utc(r.Ended), Ending: intent.DriftEnding(r.Ending),
	}, err
}

// Drift lists the records of drift: what was found to differ from the intent.
func (s *Store) Drift(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Drift], error) {
	return page(ctx, s, "store.Drift", DriftList, q, driftRow.value, env)
}

// DeleteDriftBefore deletes records that ended before a time, and returns how many.
func (s *Store) DeleteDriftBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (n int, err error) {
	err = s.write(ctx, "store.DeleteDriftBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.DriftDelete, env, t)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

// recordDrift brings the records of one resource in line with what an action found. Repeating it for the same action
// changes nothing.
func recordDrift(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, d intent.FinishedAction) error {
	id, at := d.Action.Resource.String(), *d.Action.Finished
	names := slices.AppendSeq([]string{}, maps.Keys(d.Drift.Found)) // never nil, which would be NULL
	slices.Sort(names)
	desired, found := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		var err error
		if desired[i], err = cleanValue(d.Drift.Found[name].Desired); err != nil {
			return err
		}
		if found[i], err = cleanValue(d.Drift.Found[name].Current); err != nil {
			return err
		}
		names[i] = cleanText(name)
	}
	if d.Drift.Open && len(names) > 0 {
		if _, err := tx.Exec(ctx, statements.DriftOpen, env, id, names, desired, found, d.Action.Version, d.Action.ID,
			d.Action.Started, d.State.IntentHash); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		if _, err := tx.Exec(ctx, statements.DriftSeen, env, id, names, found, d.Action.Started); err != nil {
			return err
		}
	}
	if d.Drift.Healed {
		if _, err := tx.Exec(ctx, statements.DriftHeal, env, id, names, at); err != nil {
			return err
		}
	}
	if d.Drift.Complete {
		if _, err := tx.Exec(ctx, statements.DriftGone, env, id, names, at); err != nil {
			return err
		}
	}
	return nil
}

// cleanValue encodes a value as JSON that PostgreSQL can look into.
func cleanValue(v any) (string, error) {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = cleanJSON(b)
	}
	if err != nil {
		return "", fault.Wrap("store.drift", fault.Invalid, err).Say("an attribute that drifted cannot be stored")
	}
	return string(b), nil
}

// Unpark ends the parking of resources, of all parked ones when ids is empty, and returns which were parked.
func (s *Store) Unpark(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) (out []intent.ResourceID, err error) {
	var names []string // nil: all
	for _, id := range ids {
		names = append(names, id.String())
	}
	err = s.write(ctx, "store.Unpark", func(tx pgx.Tx) error {
		if err := s.exists(ctx, tx, env); err != nil {
			return err
		}
		var err error
		out, err = resourceIDs(ctx, tx, statements.StateUnpark, env, names)
		return err
	})
	return out, err
}
