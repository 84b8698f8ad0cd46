package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type gitStateRow struct {
	Kind    string
	Commit  string
	Message string
	Advice  string
	Since   time.Time
	Checked time.Time
	Reason  string
}

// SetGitState records the state of an environment's connection to its repository.
func (s *Store) SetGitState(ctx context.Context, env intent.EnvironmentID, state intent.GitState) error {
	return s.write(ctx, "store.SetGitState", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.GitStateSet, env, string(state.Kind), cleanText(state.Commit),
			cleanText(state.Message), cleanText(state.Advice), state.Checked,
			cleanText(state.Reason))
		return err
	})
}

// GitState returns what was recorded last; nil when nothing was.
func (s *Store) GitState(ctx context.Context, env intent.EnvironmentID) (out *intent.GitState, err error) {
	err = s.read(ctx, "store.GitState", func(q querier) error {
		row, err := one[gitStateRow](ctx, q, statements.GitStateGet, env)
		if isNoRows(err) {
			return nil
		}
		out = &intent.GitState{
			Kind: intent.GitKind(row.Kind), Commit: row.Commit, Message: row.Message, Advice: row.Advice,
			Reason: row.Reason, Since: row.Since.UTC(), Checked: row.Checked.UTC(),
		}
		return err
	})
	return out, err
}

// AcceptCommit records that a person accepts a commit, and the intervention.
func (s *Store) AcceptCommit(ctx context.Context, env intent.EnvironmentID, a intent.Acceptance) error {
	return s.write(ctx, "store.AcceptCommit", func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.GitAccept, env, a.Commit, cleanText(a.By), cleanText(a.Reason),
			a.At); err != nil {
			return err
		}
		return intervene(ctx, tx, env, intent.DidAccept, "",
			intent.Actor{By: a.By, At: a.At, Reason: "commit " + a.Commit + ": " + a.Reason})
	})
}

type acceptanceRow struct {
	Commit string
	By     string
	Reason string
	At     time.Time
}

// Acceptance returns who accepted a commit; nil when nobody did.
func (s *Store) Acceptance(
	ctx context.Context,
	env intent.EnvironmentID,
	commit string,
) (out *intent.Acceptance, err error) {
	err = s.read(ctx, "store.Acceptance", func(q querier) error {
		row, err := one[acceptanceRow](ctx, q, statements.GitAcceptance, env, commit)
		if isNoRows(err) {
			return nil
		}
		out = &intent.Acceptance{Commit: row.Commit, By: row.By, Reason: row.Reason, At: row.At.UTC()}
		return err
	})
	return out, err
}

type gitCommitRow struct {
	Compile        uuid.UUID
	Requested      time.Time
	Started        *time.Time
	Completed      *time.Time
	Success        *bool
	TriggerType    string
	TriggerMessage string
	Revision       json.RawMessage
	Version        *int
	Status         *string
	Released       *time.Time
	Held           *bool
	Superseded     bool
	Cancelled      bool
}

func (r gitCommitRow) value() (intent.GitCommit, error) {
	revision, err := fromJSON[revisionJSON](r.Revision)
	c := intent.GitCommit{
		Revision: revision.value(), Compile: r.Compile, Trigger: intent.Trigger{Type: r.TriggerType,
			Message: r.TriggerMessage},
		Requested: r.Requested.UTC(), Completed: utc(r.Completed), Success: r.Success, Released: utc(r.Released),
		Superseded: r.Superseded, Cancelled: r.Cancelled,
	}
	if r.Version == nil || r.Status == nil || r.Held == nil {
		return c, err
	}
	c.Version, c.Status, c.Held = *r.Version, intent.VersionStatus(*r.Status), *r.Held
	return c, err
}

// GitCommits lists the newest compiles that had a commit, and what became of them.
func (s *Store) GitCommits(
	ctx context.Context,
	env intent.EnvironmentID,
	limit int,
) (out []intent.GitCommit, err error) {
	return listed(ctx, s, "store.GitCommits", gitCommitRow.value, statements.GitCommits, env, limit)
}
