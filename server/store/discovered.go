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

type discoveredRow struct {
	ID        string
	Discovery string
	Record    json.RawMessage
	Found     time.Time
	Managed   bool
}

func (r discoveredRow) value() (intent.Discovered, error) {
	id, err1 := intent.ParseResourceID(r.ID)
	by, err2 := intent.ParseResourceID(r.Discovery)
	d := intent.Discovered{ID: id, Discovery: by, Record: r.Record, Found: r.Found.UTC(), Managed: r.Managed}
	return d, errors.Join(err1, err2)
}

// discoveredListRow adds the columns that the list is sorted and filtered by.
type discoveredListRow struct {
	discoveredRow
	Type  string
	Agent string
	Value string
}

func (r discoveredListRow) value() (intent.Discovered, error) { return r.discoveredRow.value() }

// SetDiscovered stores discovered resources. A record that is there already is replaced, unless it is newer.
func (s *Store) SetDiscovered(ctx context.Context, env intent.EnvironmentID, found []intent.Discovered) error {
	return s.write(ctx, "store.SetDiscovered", func(tx pgx.Tx) error { return setDiscovered(ctx, tx, env, found) })
}

func setDiscovered(ctx context.Context, tx pgx.Tx, env uuid.UUID, found []intent.Discovered) error {
	last := make(map[intent.ResourceID]intent.Discovered, len(found)) // one statement may change a row only once
	for _, d := range found {
		last[d.ID] = d
	}
	if len(last) == 0 {
		return nil
	}
	var ids, types, agents, values, by, records []string
	var at []time.Time
	for id, d := range last {
		record, err := cleanJSON(d.Record)
		if err != nil {
			return fault.Wrap("store.SetDiscovered", fault.Invalid, err).Say("the record of " + id.String())
		}
		ids, types = append(ids, id.String()), append(types, id.Type)
		agents, values = append(agents, id.Agent), append(values, id.Value)
		by, records, at = append(by, d.Discovery.String()), append(records, string(record)), append(at, d.Found)
	}
	_, err := tx.Exec(ctx, statements.DiscoveredSet, env, ids, types, agents, values, by, records, at)
	return err
}

// Discovered returns one record.
func (s *Store) Discovered(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
) (out intent.Discovered, err error) {
	err = s.read(ctx, "store.Discovered", func(q querier) error {
		row, err := one[discoveredRow](ctx, q, statements.DiscoveredGet, env, id.String())
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// DiscoveredList lists the discovered resources.
func (s *Store) DiscoveredList(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Discovered], error) {
	return page(ctx, s, "store.DiscoveredList", DiscoveredList, q, discoveredListRow.value, env)
}

// DeleteDiscovered deletes records, all of them or none: NotFound when one of them does not exist.
func (s *Store) DeleteDiscovered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error {
	const op = "store.DeleteDiscovered"
	distinct := make(map[string]bool, len(ids))
	for _, id := range ids {
		distinct[id.String()] = true
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.DiscoveredDelete, env, sortedKeys(distinct))
		if err == nil && int(tag.RowsAffected()) != len(distinct) {
			return fault.New(op, fault.NotFound, "not all of these resources were discovered")
		}
		return err
	})
}
