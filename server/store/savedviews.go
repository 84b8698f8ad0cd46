package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ownerOf is the person whose views these are; nil stands for everyone who uses a server without people.
func ownerOf(person uuid.UUID) *uuid.UUID {
	if person == uuid.Nil {
		return nil
	}
	return &person
}

// SavedViews lists the views of a person in an environment, by name; uuid.Nil stands for a server without people.
func (s *Store) SavedViews(
	ctx context.Context, env intent.EnvironmentID, person uuid.UUID,
) (out []intent.SavedView, err error) {
	err = s.read(ctx, "store.SavedViews", func(q querier) error {
		out, err = many[intent.SavedView](ctx, q, statements.SavedViews, env, ownerOf(person))
		return err
	})
	return out, err
}

// PutSavedView saves a view, or replaces the one of this name. Conflict when the person has too many.
func (s *Store) PutSavedView(
	ctx context.Context, env intent.EnvironmentID, person uuid.UUID, v intent.SavedView, at time.Time,
) error {
	const op = "store.PutSavedView"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, statements.SavedViewPut, env, ownerOf(person), v.Name, v.Filter, at,
			intent.MaxSavedViews, v.List)
		if err == nil && done.RowsAffected() == 0 {
			return fault.New(op, fault.Conflict, fmt.Sprintf("there are %d views already", intent.MaxSavedViews)).
				Hint("delete one first")
		}
		return err
	})
}

// DeleteSavedView deletes a view. It is no error if there is none of this name.
func (s *Store) DeleteSavedView(
	ctx context.Context, env intent.EnvironmentID, person uuid.UUID, name string,
) error {
	return s.write(ctx, "store.DeleteSavedView", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.SavedViewDelete, env, ownerOf(person), name)
		return err
	})
}
