package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// RequestFacts records that resources are to be asked for their facts.
func (s *Store) RequestFacts(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
	at time.Time,
) error {
	return s.write(ctx, "store.RequestFacts", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.FactRequestAdd, env, idTexts(ids), at)
		return err
	})
}

// FactRequests lists the resources that are to be asked for their facts, longest waiting first.
func (s *Store) FactRequests(ctx context.Context, env intent.EnvironmentID) (out []intent.ResourceID, err error) {
	err = s.read(ctx, "store.FactRequests", func(q querier) error {
		out, err = resourceIDs(ctx, q, statements.FactRequestList, env)
		return err
	})
	return out, err
}

// resourceIDs reads a column of resource ids.
func resourceIDs(ctx context.Context, q querier, sql string, args ...any) ([]intent.ResourceID, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	return parseIDs(texts)
}

// FactsAnswered deletes the requests of resources that have been asked.
func (s *Store) FactsAnswered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error {
	return s.write(ctx, "store.FactsAnswered", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.FactRequestDone, env, idTexts(ids))
		return err
	})
}

type factsDueRow struct {
	Resource string
	Updated  *time.Time
	Unknown  bool
}

func (r factsDueRow) value() (intent.FactsDue, error) {
	id, err := intent.ParseResourceID(r.Resource)
	return intent.FactsDue{Resource: id, Updated: utc(r.Updated), Unknown: r.Unknown}, err
}

// FactsDue lists the resources of the active version that have facts which expire, with the time when the oldest was
// learnt, and those whose facts the model waits for.
func (s *Store) FactsDue(ctx context.Context, env intent.EnvironmentID) (out []intent.FactsDue, err error) {
	return listed(ctx, s, "store.FactsDue", factsDueRow.value, statements.FactsDue, env)
}

type knownUnknownRow struct {
	Name     string
	Resource string
}

func (r knownUnknownRow) value() (intent.Unknown, error) {
	u := intent.Unknown{Parameter: r.Name}
	if r.Resource == "" {
		return u, nil
	}
	var err error
	u.Resource, err = intent.ParseResourceID(r.Resource)
	return u, err
}

// UnknownsKnown lists the values that the newest version did without and that have become known since its compile
// began: a compile now would find more.
func (s *Store) UnknownsKnown(ctx context.Context, env intent.EnvironmentID) (out []intent.Unknown, err error) {
	return listed(ctx, s, "store.UnknownsKnown", knownUnknownRow.value, statements.UnknownsKnown, env)
}
