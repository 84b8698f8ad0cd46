package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

type compileRow struct {
	ID             uuid.UUID
	Environment    uuid.UUID
	Requested      time.Time
	Started        *time.Time
	Completed      *time.Time
	TriggerType    string
	TriggerMessage string
	Metadata       json.RawMessage
	UpdateSource   bool
	Reinstall      bool
	Export         bool
	Variables      json.RawMessage
	Partial        bool
	RemovedSets    []string
	Success        *bool
	Version        *int
	Revision       json.RawMessage
	Substitute     *uuid.UUID
	Diagnostics    json.RawMessage
	SupersededBy   *uuid.UUID
	CancelledBy    string
	CancelledWhy   string
	CancelledAt    *time.Time
}

// revisionJSON is the revision column.
type revisionJSON struct {
	Commit  string     `json:"commit"`
	Branch  string     `json:"branch"`
	Author  string     `json:"author"`
	Email   string     `json:"email"`
	Subject string     `json:"subject"`
	Time    time.Time  `json:"time"`
	Signer  signerJSON `json:"signer,omitzero"`
}

// signerJSON is the signer of a revision; left out when its signature was not checked.
type signerJSON struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

func (j revisionJSON) value() intent.Revision {
	return intent.Revision{
		Commit:  j.Commit,
		Branch:  j.Branch,
		Author:  j.Author,
		Email:   j.Email,
		Subject: j.Subject,
		Time:    j.Time,
		Signer:  intent.Signer(j.Signer),
	}
}

func revisionOf(r intent.Revision) revisionJSON {
	return revisionJSON{
		Commit:  r.Commit,
		Branch:  r.Branch,
		Author:  r.Author,
		Email:   r.Email,
		Subject: r.Subject,
		Time:    r.Time,
		Signer:  signerJSON(r.Signer),
	}
}

func (r compileRow) value() (intent.Compile, error) {
	metadata, err1 := fromJSON[map[string]any](r.Metadata)
	variables, err2 := fromJSON[map[string]string](r.Variables)
	c := intent.Compile{
		ID: r.ID, Environment: r.Environment, Requested: r.Requested.UTC(), Started: utc(r.Started),
		Completed: utc(r.Completed),
		Trigger:   intent.Trigger{Type: r.TriggerType, Message: r.TriggerMessage}, Metadata: metadata,
		Update: r.UpdateSource, Reinstall: r.Reinstall, Export: r.Export, Variables: variables,
		Partial: r.Partial, RemovedSets: append([]string(nil), r.RemovedSets...),
		Success: r.Success, Version: r.Version, Substitute: r.Substitute, Diagnostics: r.Diagnostics,
		SupersededBy: r.SupersededBy, Cancelled: actorOf(r.CancelledBy, r.CancelledWhy, r.CancelledAt),
	}
	var err3 error
	if len(r.Revision) > 0 {
		var j revisionJSON
		j, err3 = fromJSON[revisionJSON](r.Revision)
		revision := j.value()
		c.Revision = &revision
	}
	return c, errors.Join(err1, err2, err3)
}

// EnqueueCompile records a request; recording it again changes nothing.
func (s *Store) EnqueueCompile(ctx context.Context, c intent.Compile) error {
	const op = "store.EnqueueCompile"
	return s.write(ctx, op, func(tx pgx.Tx) error { return enqueue(ctx, tx, op, c) })
}

func enqueue(ctx context.Context, tx pgx.Tx, op string, c intent.Compile) error {
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err)
	}
	if c.Variables == nil {
		c.Variables = map[string]string{}
	}
	c.RemovedSets = slices.Sorted(slices.Values(c.RemovedSets))
	if c.RemovedSets == nil {
		c.RemovedSets = []string{}
	}
	_, err = tx.Exec(ctx, statements.CompileEnqueue, c.ID, c.Environment, c.Requested, cleanText(c.Trigger.Type),
		cleanText(c.Trigger.Message), string(metadata), c.Update, c.Reinstall, c.Export, toJSON(c.Variables),
		c.Partial, c.RemovedSets)
	return err
}

// StartCompile takes the next request of an environment and marks it started; nil when none is waiting. A compile
// that was started but not completed, because the server was killed, comes first and starts over with the revision
// that it had; nothing is merged into it. Otherwise this run also answers the waiting requests that were made before
// now and are equal in export, reinstall and variables and ask for no more of an update: their Substitute is set, and
// they get its started, completed, success and version. Conflict when another process owns the environment, since
// both would run the same compile.
func (s *Store) StartCompile(
	ctx context.Context,
	env intent.EnvironmentID,
	now time.Time,
) (out *intent.Compile, err error) {
	const op = "store.StartCompile"
	backend := s.locks.Backend()
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		out = nil
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		var elsewhere bool
		if err := tx.QueryRow(ctx, statements.OwnedElsewhere, int64(locks.Environments),
			int64(uint32(environmentKey(env))), int32(backend)).Scan(&elsewhere); err != nil {
			return err
		}
		if elsewhere {
			return fault.New(op, fault.Conflict, "another server compiles this environment")
		}
		row, err := one[compileRow](ctx, tx, statements.CompileStartOver, env, now)
		if isNoRows(err) {
			row, err = one[compileRow](ctx, tx, statements.CompileStartNext, env, now)
		}
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := row.value()
		if err != nil {
			return err
		}
		out = &c
		if c.Revision != nil {
			return nil // requests made since may be about a later commit
		}
		_, err = tx.Exec(ctx, statements.CompileMerge, row.ID, now)
		return err
	})
	return out, err
}

// SetCompileRevision records the commit of a run, for all requests that it answers.
func (s *Store) SetCompileRevision(ctx context.Context, id intent.CompileID, rev intent.Revision) error {
	return s.write(ctx, "store.SetCompileRevision", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.CompileRevision, id, toJSON(revisionOf(rev)))); err != nil {
			return err
		}
		return s.queueForForge(ctx, tx, statements.OutboxCompile, id, time.Now())
	})
}

// FinishCompile ends a run and all requests that it answers, and records its notice with that. Ending it again
// changes nothing.
func (s *Store) FinishCompile(ctx context.Context, id intent.CompileID, end intent.CompileEnd) error {
	return s.write(ctx, "store.FinishCompile", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.CompileFinish, id, end.Success, end.Version,
			rawJSON(end.Diagnostics), end.At, end.SupersededBy, end.Cancelled)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.PromotionCompiled, id, end.Success, end.Version); err != nil {
			return err
		}
		if err := s.queueForForge(ctx, tx, statements.OutboxCompile, id, end.At); err != nil || end.Notice == nil {
			return err
		}
		row, err := one[compileRow](ctx, tx, statements.CompileGet, id)
		if err != nil {
			return err
		}
		return addNotice(ctx, tx, row.Environment, *end.Notice, end.At)
	})
}

// Compile returns one report with its stages; those of its substitute when it has one.
func (s *Store) Compile(
	ctx context.Context,
	id intent.CompileID,
) (out intent.Compile, stages []intent.Stage, err error) {
	err = s.read(ctx, "store.Compile", func(q querier) error {
		row, err := one[compileRow](ctx, q, statements.CompileGet, id)
		if err != nil {
			return err
		}
		if out, err = row.value(); err != nil {
			return err
		}
		run := id
		if row.Substitute != nil {
			run = *row.Substitute
		}
		stages, err = readStages(ctx, q, run)
		return err
	})
	return out, stages, err
}

// Compiles lists the compile reports of an environment.
func (s *Store) Compiles(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Compile], error) {
	return page(ctx, s, "store.Compiles", CompileList, q, compileRow.value, env)
}

// OpenCompiles lists the requests that are not completed, the running one included, oldest first.
func (s *Store) OpenCompiles(ctx context.Context, env intent.EnvironmentID) (out []intent.Compile, err error) {
	return listed(ctx, s, "store.OpenCompiles", compileRow.value, statements.CompileOpen, env)
}

// LastCompile returns the newest completed compile that had a revision, nil when there is none.
func (s *Store) LastCompile(ctx context.Context, env intent.EnvironmentID) (out *intent.Compile, err error) {
	err = s.read(ctx, "store.LastCompile", func(q querier) error {
		out = nil
		row, err := one[compileRow](ctx, q, statements.CompileLast, env)
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := row.value()
		out = &c
		return err
	})
	return out, err
}

// DeleteCompilesBefore deletes reports that completed before a time, and returns how many.
func (s *Store) DeleteCompilesBefore(ctx context.Context, t time.Time) (n int, err error) {
	err = s.write(ctx, "store.DeleteCompilesBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.CompileDelete, t)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

// StartPreview records that a compile runs beside the queue, for a dry run. Recording it again changes nothing.
func (s *Store) StartPreview(ctx context.Context, c intent.Compile) error {
	const op = "store.StartPreview"
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err)
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.CompilePreview, c.ID, c.Environment, c.Requested, cleanText(c.Trigger.Type),
			cleanText(c.Trigger.Message), string(metadata))
		return err
	})
}
