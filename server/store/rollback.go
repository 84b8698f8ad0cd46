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

// RollBack stores the content of an earlier version (0: the newest one that fits) as a new version, releases that and
// blocks the commit that is left. When the new version is held it is stored all the same, and a second call returns
// it.
func (s *Store) RollBack(
	ctx context.Context,
	env intent.EnvironmentID,
	to int,
	by intent.Actor,
) (number int, err error) {
	const op = "store.RollBack"
	err = s.writeOrRefuse(ctx, op, func(tx pgx.Tx) (refused, err error) {
		last, err := lockEnvironment(ctx, tx, env)
		if err != nil {
			return nil, err
		}
		active, target, err := rollbackOf(ctx, tx, op, env, to)
		if err != nil {
			return nil, err
		}
		err = tx.QueryRow(ctx, statements.RollbackPending, env, active.Number, target.Number).Scan(&number)
		if isNoRows(err) {
			if err := growResources(ctx, tx, op, env, target.Total); err != nil {
				return nil, err
			}
			number = last + 1
			err = copyVersion(ctx, tx, active, target, number, by)
		}
		if err != nil {
			return nil, err
		}
		return s.releaseIn(ctx, tx, op, env, number, by.At, nil)
	})
	return number, err
}

// rollbackOf returns the version that is the intent and the one to go back to.
func rollbackOf(
	ctx context.Context,
	tx pgx.Tx,
	op string,
	env intent.EnvironmentID,
	to int,
) (active, target intent.Version, err error) {
	row, err := one[versionRow](ctx, tx, statements.VersionActive, env)
	if isNoRows(err) {
		return active, target, fault.New(op, fault.Conflict,
			"nothing is deployed yet, so there is nothing to roll back")
	}
	if err == nil {
		active, err = row.value()
	}
	if err != nil {
		return active, target, err
	}
	same := active.Number // the version whose content is deployed
	if b := active.Provenance.RolledBack; b != nil {
		same = b.To
	}
	if to == 0 {
		err = tx.QueryRow(ctx, statements.RollbackTarget, env, same, active.Provenance.Commit).Scan(&to)
		if isNoRows(err) {
			err = fault.New(op, fault.Conflict,
				fmt.Sprintf("no version before %d was deployed that could be deployed again", same)).
				Hint("name a version, unblock a blocked commit (ordain git unblock), or push a fix")
		}
		if err != nil {
			return active, target, err
		}
	}
	if row, err = one[versionRow](ctx, tx, statements.VersionGet, env, to); err == nil {
		target, err = row.value()
	}
	switch {
	case err != nil:
		return active, target, err
	case to == active.Number || to == same:
		return active, target, fault.New(op, fault.Conflict, fmt.Sprintf("version %d is what is deployed", to))
	case target.Released == nil:
		return active, target, fault.New(op, fault.Conflict, fmt.Sprintf("version %d was never deployed", to)).
			Hint("only a version that was the intent before can be rolled back to")
	}
	return active, target, refuseBlocked(ctx, tx, op, target)
}

// copyVersion stores the content of target as a new candidate.
func copyVersion(ctx context.Context, tx pgx.Tx, active, target intent.Version, number int, by intent.Actor) error {
	p := target.Provenance
	back := &intent.RollBack{
		From: active.Number, To: target.Number, Blocked: active.Provenance.Commit,
		Branch: active.Provenance.BranchCommit(), By: cleanText(by.By), Reason: cleanText(by.Reason), At: by.At,
	}
	if before := active.Provenance.RolledBack; before != nil && before.Branch != "" {
		back.Branch = before.Branch
	}
	p.RolledBack = back
	p.Trigger = intent.Trigger{
		Type:    "rollback",
		Message: fmt.Sprintf("%s rolled back from version %d to %d: %s", back.By, back.From, back.To, back.Reason),
	}
	if _, err := tx.Exec(ctx, statements.VersionCopy, active.Environment, target.Number, number, by.At,
		toJSON(p)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, statements.VersionClustersCopy, active.Environment, target.Number, number)
	return err
}

// rolledBack records what follows when a version that became the intent is a rollback: the commit that was left is
// blocked from now on.
func rolledBack(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, v intent.Version) error {
	b := v.Provenance.RolledBack
	if b == nil {
		return nil
	}
	by := intent.Actor{
		By:     b.By,
		At:     b.At,
		Reason: fmt.Sprintf("from version %d to %d, as version %d: %s", b.From, b.To, v.Number, b.Reason),
	}
	if err := intervene(ctx, tx, env, intent.DidRollBack, "", by); err != nil || b.Blocked == "" {
		return err
	}
	if _, err := tx.Exec(ctx, statements.GitBlockAdd, env, b.Blocked, b.By, b.Reason, b.At); err != nil {
		return err
	}
	return intervene(ctx, tx, env, intent.DidBlock, "",
		intent.Actor{By: b.By, At: b.At, Reason: "commit " + b.Blocked + ": " + b.Reason})
}

// refuseBlocked fails when a person took the version's commit back. The caller holds the lock of the environment, so
// that no compile under way slips through. A rollback that is being released decides itself what it deploys.
func refuseBlocked(ctx context.Context, tx pgx.Tx, op string, v intent.Version) error {
	if v.Provenance.Commit == "" {
		return nil
	}
	if b := v.Provenance.RolledBack; b != nil && v.Released == nil {
		return nil
	}
	row, err := one[blockRow](ctx, tx, statements.GitBlockGet, v.Environment, v.Provenance.Commit)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	short := intent.Revision{Commit: row.Commit}.Short()
	return fault.New(op, fault.Conflict, fmt.Sprintf("commit %s of version %d is blocked: %s took it back: %s", short,
		v.Number, row.By, row.Reason)).
		Hint("unblock it with `ordain git unblock`")
}

type blockRow struct {
	Commit string
	By     string
	Reason string
	At     time.Time
}

func (r blockRow) value() (intent.Block, error) {
	return intent.Block{Commit: r.Commit, By: r.By, Reason: r.Reason, At: r.At.UTC()}, nil
}

// GitBlock returns who blocked a commit, nil when it is not blocked.
func (s *Store) GitBlock(ctx context.Context, env intent.EnvironmentID, commit string) (out *intent.Block, err error) {
	err = s.read(ctx, "store.GitBlock", func(q querier) error {
		row, err := one[blockRow](ctx, q, statements.GitBlockGet, env, commit)
		if isNoRows(err) {
			return nil
		}
		b, _ := row.value()
		out = &b
		return err
	})
	return out, err
}

// GitBlocks lists the blocked commits, newest first.
func (s *Store) GitBlocks(ctx context.Context, env intent.EnvironmentID) (out []intent.Block, err error) {
	return listed(ctx, s, "store.GitBlocks", blockRow.value, statements.GitBlocks, env)
}

// UsedCommits returns, for every environment, the commits that it may need again: those of released versions, the one
// up to which its branch was deployed, and those that are blocked.
func (s *Store) UsedCommits(ctx context.Context) (map[intent.EnvironmentID][]string, error) {
	out := map[intent.EnvironmentID][]string{}
	err := s.read(ctx, "store.UsedCommits", func(q querier) error {
		rows, err := many[struct {
			Environment uuid.UUID
			Commit      string
		}](ctx, q, statements.GitUsed)
		for _, r := range rows {
			out[r.Environment] = append(out[r.Environment], r.Commit)
		}
		return err
	})
	return out, err
}

// UnblockCommit unblocks a commit and records the intervention. Conflict when it is not blocked.
func (s *Store) UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string, by intent.Actor) error {
	const op = "store.UnblockCommit"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, statements.GitBlockEnd, env, commit, by.At)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return fault.New(op, fault.Conflict, "commit "+commit+" is not blocked")
		}
		by.Reason = "commit " + commit + ": " + by.Reason
		return intervene(ctx, tx, env, intent.DidUnblock, "", by)
	})
}
