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

type parameterRow struct {
	ID       uuid.UUID
	Name     string
	Resource string
	Value    string
	Source   string
	Updated  time.Time
	Expires  bool
	Metadata json.RawMessage
	SetBy    string
}

func (r parameterRow) value() (intent.Parameter, error) {
	p := intent.Parameter{
		ID: r.ID, Name: r.Name, Value: r.Value, Source: r.Source, Updated: r.Updated.UTC(), Expires: r.Expires,
		SetBy: r.SetBy,
	}
	var err error
	if r.Resource != "" {
		if p.Resource, err = intent.ParseResourceID(r.Resource); err != nil {
			return p, err
		}
	}
	p.Metadata, err = fromJSON[map[string]any](r.Metadata)
	return p, err
}

// resourceText returns the resource column: empty for a parameter of the environment.
func resourceText(id intent.ResourceID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// SetParameter stores a parameter or a fact. An existing one keeps its id.
func (s *Store) SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error {
	return s.write(ctx, "store.SetParameter", func(tx pgx.Tx) error { return setParameter(ctx, tx, env, p) })
}

func setParameter(ctx context.Context, tx pgx.Tx, env uuid.UUID, p intent.Parameter) error {
	if p.ID == uuid.Nil {
		p.ID = uuid.New()
	}
	if p.Metadata == nil {
		p.Metadata = map[string]any{}
	}
	metadata, err := json.Marshal(p.Metadata)
	if err != nil {
		return fault.Wrap("store.SetParameter", fault.Invalid, err)
	}
	_, err = tx.Exec(ctx, statements.ParameterSet, p.ID, env, p.Name, resourceText(p.Resource), cleanText(p.Value),
		p.Source, p.Updated, p.Expires, string(metadata), p.SetBy)
	return err
}

// Parameters lists parameters, or facts.
func (s *Store) Parameters(
	ctx context.Context,
	env intent.EnvironmentID,
	facts bool,
	q intent.ListQuery,
) (intent.Page[intent.Parameter], error) {
	l := ParameterList
	if facts {
		l = FactList
	}
	return page(ctx, s, "store.Parameters", l, q, parameterRow.value, env)
}

// Parameter returns a parameter, or with a resource a fact of that.
func (s *Store) Parameter(
	ctx context.Context,
	env intent.EnvironmentID,
	name string,
	resource intent.ResourceID,
) (out intent.Parameter, err error) {
	err = s.read(ctx, "store.Parameter", func(q querier) error {
		row, err := one[parameterRow](ctx, q, statements.ParameterGet, env, name, resourceText(resource))
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// DeleteParameter deletes a parameter, or with a resource a fact of that.
func (s *Store) DeleteParameter(
	ctx context.Context,
	env intent.EnvironmentID,
	name string,
	resource intent.ResourceID,
) error {
	return s.write(ctx, "store.DeleteParameter", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ParameterDelete, env, name, resourceText(resource)))
	})
}
