package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// deliveryJSON and outcomeJSON are the form in which many deliveries go to the database at once.
type deliveryJSON struct {
	ID       uuid.UUID        `json:"id"`
	Forge    string           `json:"forge"`
	Key      string           `json:"key"`
	Received time.Time        `json:"received"`
	Size     int64            `json:"size"`
	Event    intent.HookEvent `json:"event"`
	ReplayOf *uuid.UUID       `json:"replay_of"`
	Verified bool             `json:"verified"`
}

type outcomeJSON struct {
	Delivery    uuid.UUID  `json:"delivery"`
	Environment uuid.UUID  `json:"environment"`
	Module      string     `json:"module"`
	State       string     `json:"state"`
	Reason      string     `json:"reason"`
	Compile     *uuid.UUID `json:"compile"`
	Handled     *time.Time `json:"handled"`
}

type deliveryRow struct {
	ID          uuid.UUID
	Forge       string
	Key         string
	Received    time.Time
	Size        int64
	Event       json.RawMessage
	ReplayOf    *uuid.UUID
	Verified    bool
	Environment uuid.UUID
	Name        string
	Module      string
	State       string
	Reason      string
	Compile     *uuid.UUID
	Handled     *time.Time
}

// deliveryListRow adds the columns that the list is sorted and filtered by.
type deliveryListRow struct {
	deliveryRow
	Repository, Ref, Commit, Kind string
}

func (r deliveryRow) value() (intent.Delivery, error) {
	event, err := fromJSON[intent.HookEvent](r.Event)
	return intent.Delivery{
		ID: r.ID, Forge: r.Forge, Key: r.Key, Received: r.Received.UTC(), Size: r.Size, Event: event,
		ReplayOf: r.ReplayOf, Verified: r.Verified,
		Outcomes: []intent.DeliveryOutcome{{
			Environment: r.Environment, Name: r.Name, Module: r.Module, State: intent.OutcomeState(r.State),
			Reason: r.Reason, Compile: r.Compile, Handled: utc(r.Handled),
		}},
	}, err
}

// RecordDeliveries records webhooks, all of them or none. It returns, for each, the environments that did not have it
// before. A delivery without an outcome is not recorded.
func (s *Store) RecordDeliveries(ctx context.Context, deliveries []intent.Delivery) ([][]intent.EnvironmentID, error) {
	const op = "store.RecordDeliveries"
	given, outcomes := make([]deliveryJSON, 0, len(deliveries)), []outcomeJSON{}
	for _, d := range deliveries {
		given = append(given, deliveryJSON{
			ID: d.ID, Forge: d.Forge, Key: cleanText(d.Key), Received: micro(d.Received), Size: d.Size, Event: d.Event,
			ReplayOf: d.ReplayOf, Verified: d.Verified,
		})
		for _, o := range d.Outcomes {
			outcomes = append(outcomes, outcomeOf(d.ID, o))
		}
	}
	var rows []struct{ Delivery, Environment uuid.UUID }
	// Repeating this is harmless: a delivery that is recorded already is left as it is.
	err := s.state(ctx, op, func(q querier) (err error) {
		rows, err = many[struct{ Delivery, Environment uuid.UUID }](ctx, q, statements.DeliveryRecord,
			toCleanJSON(given), toJSON(outcomes))
		return err
	})
	if err != nil {
		return nil, err
	}
	took := map[uuid.UUID][]intent.EnvironmentID{}
	for _, r := range rows {
		took[r.Delivery] = append(took[r.Delivery], r.Environment)
	}
	out := make([][]intent.EnvironmentID, len(deliveries))
	for i, d := range deliveries {
		out[i] = took[d.ID]
	}
	return out, nil
}

func outcomeOf(delivery uuid.UUID, o intent.DeliveryOutcome) outcomeJSON {
	return outcomeJSON{
		Delivery: delivery, Environment: o.Environment, Module: cleanText(o.Module), State: string(o.State),
		Reason: cleanText(o.Reason), Compile: o.Compile, Handled: o.Handled,
	}
}

// WaitingDeliveries lists the oldest deliveries that an environment has not handled.
func (s *Store) WaitingDeliveries(
	ctx context.Context,
	env intent.EnvironmentID,
	limit int,
) (out []intent.Delivery, err error) {
	return listed(ctx, s, "store.WaitingDeliveries", deliveryRow.value, statements.DeliveryWaiting, env, limit)
}

// WaitingEnvironments lists the environments with deliveries that they have not handled.
func (s *Store) WaitingEnvironments(ctx context.Context) (out []intent.EnvironmentID, err error) {
	err = s.read(ctx, "store.WaitingEnvironments", func(q querier) error {
		rows, err := q.Query(ctx, statements.DeliveryWaitingFor)
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		}
		return err
	})
	return out, err
}

// FinishDeliveries records how deliveries ended for an environment, by delivery. One that ended before stays as it
// is.
func (s *Store) FinishDeliveries(
	ctx context.Context,
	env intent.EnvironmentID,
	outcomes map[uuid.UUID]intent.DeliveryOutcome,
) error {
	rows := make([]outcomeJSON, 0, len(outcomes))
	for id, o := range outcomes {
		rows = append(rows, outcomeOf(id, o))
	}
	return s.write(ctx, "store.FinishDeliveries", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.DeliveryFinish, env, toJSON(rows))
		return err
	})
}

// Deliveries lists the webhooks of an environment.
func (s *Store) Deliveries(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Delivery], error) {
	return page(ctx, s, "store.Deliveries", DeliveryList, q,
		func(r deliveryListRow) (intent.Delivery, error) { return r.value() }, env)
}

// Delivery returns a webhook of an environment.
func (s *Store) Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (out intent.Delivery, err error) {
	err = s.read(ctx, "store.Delivery", func(q querier) error {
		row, err := one[deliveryRow](ctx, q, statements.DeliveryGet, env, id)
		if isNoRows(err) {
			return fault.New("store.Delivery", fault.NotFound, "this environment has no delivery "+id.String())
		}
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// DeleteDeliveriesBefore deletes the webhooks of an environment that came before a time, and returns how many.
func (s *Store) DeleteDeliveriesBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (n int, err error) {
	err = s.write(ctx, "store.DeleteDeliveriesBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.OutcomeDelete, env, t)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		n = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, statements.DeliveryCollect)
		return err
	})
	return n, err
}

// HookSecrets returns the sealed webhook secrets of all environments, by name.
func (s *Store) HookSecrets(ctx context.Context) (map[intent.EnvironmentID]map[string][]byte, error) {
	out := map[intent.EnvironmentID]map[string][]byte{}
	err := s.read(ctx, "store.HookSecrets", func(q querier) error {
		rows, err := many[struct {
			Environment uuid.UUID
			Name        string
			Sealed      []byte
		}](ctx, q, statements.HookSecrets)
		for _, r := range rows {
			if out[r.Environment] == nil {
				out[r.Environment] = map[string][]byte{}
			}
			out[r.Environment][r.Name] = r.Sealed
		}
		return err
	})
	return out, err
}

// SetModules records the repositories of the modules that a project uses, by the name of the module.
func (s *Store) SetModules(ctx context.Context, env intent.EnvironmentID, urls map[string]string) error {
	names, list := []string{}, []string{}
	for name, url := range urls {
		names, list = append(names, cleanText(name)), append(list, cleanText(url))
	}
	return s.write(ctx, "store.SetModules", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.ModulesSet, env, names, list)
		return err
	})
}

// Modules returns what SetModules recorded, for all environments.
func (s *Store) Modules(ctx context.Context) (map[intent.EnvironmentID]map[string]string, error) {
	out := map[intent.EnvironmentID]map[string]string{}
	err := s.read(ctx, "store.Modules", func(q querier) error {
		rows, err := many[struct {
			Environment uuid.UUID
			Name, URL   string
		}](ctx, q, statements.ModulesList)
		for _, r := range rows {
			if out[r.Environment] == nil {
				out[r.Environment] = map[string]string{}
			}
			out[r.Environment][r.Name] = r.URL
		}
		return err
	})
	return out, err
}
