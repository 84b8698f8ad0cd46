package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// CancelCompile ends a request to compile that waits. One that runs is marked, and its owner has to end it: Asking
// tells the owner so. A request that another run answers cannot be cancelled alone, and one that ended not at all:
// Conflict.
func (s *Store) CancelCompile(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.CompileID,
	by intent.Actor,
) error {
	const op = "store.CancelCompile"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		who, why := cleanText(by.By), cleanText(by.Reason)
		row, err := one[compileRow](ctx, tx, statements.CompileGet, id)
		switch {
		case isNoRows(err) || err == nil && row.Environment != env:
			return fault.New(op, fault.NotFound, "this environment has no such run")
		case err != nil:
			return err
		case row.Completed != nil:
			return fault.New(op, fault.Conflict, "the run has ended, so it cannot be cancelled any more")
		case row.Substitute != nil:
			return answeredBy(op, *row.Substitute)
		case row.CancelledBy != "":
			return fault.New(op, fault.Conflict, "the run is being cancelled by "+row.CancelledBy)
		case row.Started != nil:
			_, err := tx.Exec(ctx, statements.CompileCancel, id, env, by.At, who, why)
			return err
		}
		if _, err := tx.Exec(ctx, statements.CompileCancelWaiting, id, env, by.At, who, why); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.PromotionCompiled, id, false, (*int)(nil))
		return err
	})
}

func answeredBy(op string, run uuid.UUID) error {
	return fault.New(op, fault.Conflict, "another run answers this request: "+run.String()).Hint("cancel that run")
}
