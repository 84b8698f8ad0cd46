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

type pullRow struct {
	Environment uuid.UUID
	Number      int
	State       string
	Title       string
	URL         string
	Author      string
	Fork        bool
	Trusted     bool
	Base        string
	Head        string
	Updated     time.Time
	Approved    string
	ApprovedBy  string
	ApprovedAt  *time.Time
	Dryrun      *uuid.UUID
	PreviewOf   string
	Problem     string
	Comment     string
}

func (r pullRow) value() (intent.PullRequest, error) {
	return intent.PullRequest{
		Environment: r.Environment, Number: r.Number, State: intent.PullState(r.State), Title: r.Title, URL: r.URL,
		Author: r.Author,
		Fork:   r.Fork, Trusted: r.Trusted, Base: r.Base, Head: r.Head, Updated: r.Updated.UTC(),
		Approved: r.Approved, ApprovedBy: r.ApprovedBy, ApprovedAt: utc(r.ApprovedAt),
		DryRun: r.Dryrun, PreviewOf: r.PreviewOf, Problem: r.Problem, Comment: r.Comment,
	}, nil
}

// withPreview adds the dry run of a pull request, unless it was deleted.
func withPreview(ctx context.Context, q querier, p intent.PullRequest) (intent.PullRequest, error) {
	if p.DryRun == nil {
		return p, nil
	}
	row, err := one[dryRunRow](ctx, q, statements.DryRunGet, p.Environment, *p.DryRun)
	if isNoRows(err) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	run, err := row.value()
	p.Preview = &run
	return p, err
}

// PullRequests lists the pull requests of an environment, open ones first, then newest first.
func (s *Store) PullRequests(ctx context.Context, env intent.EnvironmentID) (out []intent.PullRequest, err error) {
	err = s.read(ctx, "store.PullRequests", func(q querier) error {
		var err error
		if out, err = collect(ctx, q, pullRow.value, statements.PullList, env); err != nil {
			return err
		}
		for i := range out {
			if out[i], err = withPreview(ctx, q, out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// PullRequest returns one pull request.
func (s *Store) PullRequest(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
) (out intent.PullRequest, err error) {
	err = s.read(ctx, "store.PullRequest", func(q querier) error {
		row, err := one[pullRow](ctx, q, statements.PullGet, env, number)
		if isNoRows(err) {
			return noPull("store.PullRequest", number)
		}
		if err != nil {
			return err
		}
		if out, err = row.value(); err != nil {
			return err
		}
		out, err = withPreview(ctx, q, out)
		return err
	})
	return out, err
}

// PullOfDryRun returns the pull request that a dry run is the preview of; nil for other dry runs.
func (s *Store) PullOfDryRun(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
) (out *intent.PullRequest, err error) {
	err = s.read(ctx, "store.PullOfDryRun", func(q querier) error {
		out = nil
		row, err := one[pullRow](ctx, q, statements.PullOfDryRun, env, id)
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		p, err := row.value()
		out = &p
		return err
	})
	return out, err
}

// SavePull stores what a forge reported about a pull request: all but approval, preview and comment. With comment set
// it also queues an update of the comment.
func (s *Store) SavePull(ctx context.Context, p intent.PullRequest, comment bool, at time.Time) error {
	return s.write(ctx, "store.SavePull", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.PullSave, p.Environment, p.Number, string(p.State), cleanText(p.Title),
			cleanText(p.URL), cleanText(p.Author), p.Fork, p.Trusted, cleanText(p.Base), cleanText(p.Head), p.Updated,
			cleanText(p.Problem))
		if err == nil && comment {
			err = s.addComment(ctx, tx, p.Environment, p.Number, at)
		}
		return err
	})
}

func noPull(op string, number int) error {
	return fault.New(op, fault.NotFound,
		fmt.Sprintf("no pull request %d towards the branch of this environment is known", number)).
		Hint("ordain pull list ENVIRONMENT lists those that are; ordain pull preview asks the forge for one")
}

// lockPull reads a pull request that is changed in the same transaction.
func lockPull(ctx context.Context, tx pgx.Tx, op string, env intent.EnvironmentID, number int) (pullRow, error) {
	p, err := one[pullRow](ctx, tx, statements.PullLock, env, number)
	if isNoRows(err) {
		err = noPull(op, number)
	}
	return p, err
}

// movedOn fails when the pull request is closed or no longer at the commit.
func movedOn(op string, p pullRow, commit string) error {
	if p.State != string(intent.PullIsOpen) {
		return fault.New(op, fault.Conflict, fmt.Sprintf("pull request %d is %s", p.Number, p.State))
	}
	if p.Head != commit {
		return fault.New(op, fault.Conflict, fmt.Sprintf("pull request %d was pushed to: it is at %s now", p.Number,
			p.Head)).
			Hint("look at what changed, then approve that commit")
	}
	return nil
}

// ApprovePull records that a person lets the code of one commit run; Conflict when the pull request is at another one
// or closed.
func (s *Store) ApprovePull(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	commit string,
	by intent.Actor,
) error {
	const op = "store.ApprovePull"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		p, err := lockPull(ctx, tx, op, env, number)
		if err != nil {
			return err
		}
		if err := movedOn(op, p, commit); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.PullApprove, env, number, commit, cleanText(by.By), by.At)
		return err
	})
}

// StartPullPreview records a dry run as the preview of a pull request; Conflict when that has moved on. It returns
// the preview before, for the caller to cancel.
func (s *Store) StartPullPreview(
	ctx context.Context,
	number int,
	d intent.DryRun,
) (before *intent.ActionID, err error) {
	const op = "store.StartPullPreview"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		p, err := lockPull(ctx, tx, op, d.Environment, number)
		if err != nil {
			return err
		}
		if err := movedOn(op, p, d.Commit); err != nil {
			return err
		}
		before = p.Dryrun
		if err = insertDryRun(ctx, tx, d); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.PullPreview, d.Environment, number, d.ID, d.Commit); err != nil {
			return err
		}
		return s.addComment(ctx, tx, d.Environment, number, d.Date)
	})
	return before, err
}

// StalePull returns a pull request whose preview was compared with another commit than the one deployed now; 0 when
// there is none, when one is being computed, or while a version released after since is being deployed.
func (s *Store) StalePull(ctx context.Context, env intent.EnvironmentID, since time.Time) (number int, err error) {
	err = s.read(ctx, "store.StalePull", func(q querier) error {
		number = 0
		err := q.QueryRow(ctx, statements.PullStale, env, since).Scan(&number)
		if isNoRows(err) {
			return nil
		}
		return err
	})
	return number, err
}

// SetPullComment records the id of the comment that a forge has.
func (s *Store) SetPullComment(ctx context.Context, env intent.EnvironmentID, number int, id string) error {
	return s.write(ctx, "store.SetPullComment", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.PullComment, env, number, cleanText(id))
		return err
	})
}

// JudgeVersion returns why a version would be held if it were released; nil when it would not be.
func (s *Store) JudgeVersion(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	at time.Time,
) (hold *intent.Hold, err error) {
	err = s.write(ctx, "store.JudgeVersion", func(tx pgx.Tx) error {
		row, err := one[versionRow](ctx, tx, statements.VersionGet, env, number)
		if err != nil {
			return err
		}
		v, err := row.value()
		if err != nil {
			return err
		}
		var before *intent.Version
		row, err = one[versionRow](ctx, tx, statements.VersionActive, env)
		if err == nil {
			active, err := row.value()
			if err != nil {
				return err
			}
			before = &active
		} else if !isNoRows(err) {
			return err
		}
		hold, _, err = judge(ctx, tx, env, before, v, at)
		return err
	})
	return hold, err
}
