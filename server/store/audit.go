package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type auditRow struct {
	ID                                           int64
	At                                           time.Time
	Actor, Kind, Credential, Address, Door, Verb string
	Project                                      *uuid.UUID
	ProjectName                                  string
	Environment                                  *uuid.UUID
	EnvironmentName                              string
	Subject                                      string
	Before, After                                *json.RawMessage
	Reason, Outcome, Problem                     string
}

func (r auditRow) value() (intent.AuditEntry, error) {
	e := intent.AuditEntry{
		ID: r.ID, At: r.At.UTC(), Actor: r.Actor, Kind: r.Kind, Credential: r.Credential, Address: r.Address,
		Door: r.Door, Verb: r.Verb, ProjectName: r.ProjectName, EnvironmentName: r.EnvironmentName,
		Subject: r.Subject, Reason: r.Reason, Outcome: intent.AuditOutcome(r.Outcome), Problem: r.Problem,
	}
	if r.Project != nil {
		e.Project = *r.Project
	}
	if r.Environment != nil {
		e.Environment = *r.Environment
	}
	if r.Before != nil {
		e.Before = *r.Before
	}
	if r.After != nil {
		e.After = *r.After
	}
	return e, nil
}

// AddAudit adds an entry to the audit trail.
func (s *Store) AddAudit(ctx context.Context, e intent.AuditEntry) error {
	orNull := func(text json.RawMessage) *string {
		if len(text) == 0 {
			return nil
		}
		clean := cleanText(string(text))
		return &clean
	}
	return s.write(ctx, "store.AddAudit", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.AuditAdd, e.At, cleanText(e.Actor), e.Kind, cleanText(e.Credential),
			cleanText(e.Address), e.Door, e.Verb, known(e.Project), e.ProjectName, known(e.Environment),
			e.EnvironmentName, cleanText(e.Subject), orNull(e.Before), orNull(e.After), cleanText(e.Reason),
			string(e.Outcome), cleanText(e.Problem))
		return err
	})
}

// Audit returns a page of the audit trail: of an environment, of a project, or of the whole server when both are zero.
func (s *Store) Audit(
	ctx context.Context, project intent.ProjectID, env intent.EnvironmentID, q intent.ListQuery,
) (intent.Page[intent.AuditEntry], error) {
	return page(ctx, s, "store.Audit", AuditList, q, auditRow.value, known(project), known(env))
}

// AuditAfter returns the entries after the one with this id, in the order in which they were written, at most limit.
func (s *Store) AuditAfter(
	ctx context.Context, project intent.ProjectID, env intent.EnvironmentID, id int64, limit int,
) ([]intent.AuditEntry, error) {
	return listed(ctx, s, "store.AuditAfter", auditRow.value, statements.AuditAfter, known(project), known(env), id,
		limit)
}

// DeleteAuditBefore drops the entries of before a time, and never such as are younger than 30 days.
func (s *Store) DeleteAuditBefore(ctx context.Context, before time.Time) error {
	if youngest := time.Now().AddDate(0, 0, -31); before.After(youngest) {
		before = youngest
	}
	return s.write(ctx, "store.DeleteAudit", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.AuditRetention); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.AuditDelete, before)
		return err
	})
}

// known returns nil for a zero id.
func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
