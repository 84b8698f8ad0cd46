package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/promote"
)

type promotionRow struct {
	ID            uuid.UUID
	Environment   uuid.UUID
	Source        uuid.UUID
	SourceName    string
	Version       int
	Commit        string
	Branch        string
	Follows       string
	Subject       string
	Author        string
	Since         time.Time
	Created       time.Time
	State         string
	Gates         json.RawMessage
	Checked       time.Time
	Asked         bool
	ApprovedBy    string
	ApprovedWhy   string
	ApprovedAt    *time.Time
	OverriddenBy  string
	OverriddenWhy string
	OverriddenAt  *time.Time
	Ended         *time.Time
	Reason        string
	Compile       *uuid.UUID
	Made          *int
	Success       *bool
}

func (r promotionRow) value() (intent.Promotion, error) {
	gates, err := fromJSON[[]intent.PromotionGate](r.Gates)
	p := intent.Promotion{
		ID: r.ID, Environment: r.Environment, Source: r.Source, SourceName: r.SourceName, Version: r.Version,
		Commit: r.Commit, Branch: r.Branch,
		Follows: r.Follows, Subject: r.Subject, Author: r.Author, Since: r.Since.UTC(), Created: r.Created.UTC(),
		State: intent.PromotionState(r.State),
		Gates: gates, Checked: r.Checked.UTC(), Approved: actorOf(r.ApprovedBy, r.ApprovedWhy, r.ApprovedAt),
		Overridden: actorOf(r.OverriddenBy, r.OverriddenWhy, r.OverriddenAt),
		Ended:      utc(r.Ended), Reason: r.Reason, Compile: r.Compile, Success: r.Success,
	}
	if r.Made != nil {
		p.Made = *r.Made
	}
	return p, err
}

func actorOf(by, reason string, at *time.Time) *intent.Actor {
	if at == nil {
		return nil
	}
	return &intent.Actor{By: by, Reason: reason, At: at.UTC()}
}

type followedRow struct {
	Version     int
	Provenance  json.RawMessage
	Since       time.Time
	Broke       *time.Time
	BrokeOf     string
	Blocked     bool
	BlockedBy   string
	BlockedWhy  string
	BlockedAt   *time.Time
	Differ      int
	DifferFirst []string
	Drifted     int
	DriftFirst  []string
}

// followed reads what an environment has deployed; the zero value when nothing is.
func followed(ctx context.Context, q querier, env intent.EnvironmentID) (intent.Followed, error) {
	r, err := one[followedRow](ctx, q, statements.Followed, env)
	if isNoRows(err) {
		return intent.Followed{}, nil
	}
	if err != nil {
		return intent.Followed{}, err
	}
	f := intent.Followed{
		Version: r.Version, Since: r.Since.UTC(), Broke: utc(r.Broke), BrokeOf: r.BrokeOf,
		Differ: r.Differ, DifferFirst: r.DifferFirst, Drifted: r.Drifted, DriftFirst: r.DriftFirst,
	}
	f.Provenance, err = fromJSON[intent.Provenance](r.Provenance)
	if r.Blocked && r.BlockedAt != nil {
		f.Blocked = &intent.Block{
			Commit: f.Provenance.Commit,
			By:     r.BlockedBy,
			Reason: r.BlockedWhy,
			At:     r.BlockedAt.UTC(),
		}
	}
	return f, err
}

// Followed returns what an environment has deployed, as the environments that follow it see it. Its Version is 0 when
// nothing is deployed.
func (s *Store) Followed(ctx context.Context, env intent.EnvironmentID) (out intent.Followed, err error) {
	err = s.read(ctx, "store.Followed", func(q querier) error {
		out, err = followed(ctx, q, env)
		return err
	})
	return out, err
}

// judging is one evaluation of the promotion that waits.
type judging struct {
	tx     pgx.Tx
	op     string
	env    intent.Environment
	source intent.Environment
	at     time.Time
	ask    *intent.Notice // asks people for an approval
}

// JudgePromotion evaluates what the source of env has deployed. Its commit waits from then on, and what waited before
// is superseded; when all gates are open the commit is promoted, by a compile request in the same transaction. It
// returns the promotion that waits or was promoted now, nil when there is nothing to promote. Without a source, what
// waits is superseded, for the reason why.
func (s *Store) JudgePromotion(
	ctx context.Context,
	env intent.Environment,
	source *intent.Environment,
	why string,
	at time.Time,
) (out *intent.Promotion, err error) {
	const op = "store.JudgePromotion"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		out = nil
		if _, err := lockEnvironment(ctx, tx, env.ID); err != nil {
			return err
		}
		if source == nil {
			return supersede(ctx, tx, env.ID, why, at)
		}
		j := &judging{tx: tx, op: op, env: env, source: *source, at: at}
		for _, lock := range []bool{false, true} { // what is promoted must still be what is deployed when this commits
			if lock {
				if _, err := tx.Exec(ctx, statements.FollowedLock, source.ID); err != nil {
					return err
				}
			}
			open, err := j.look(ctx, &out)
			if err == nil && j.ask != nil {
				err = addNotice(ctx, tx, env.ID, *j.ask, at)
			}
			if err != nil || !open {
				return err
			}
		}
		return j.promote(ctx, out, nil)
	})
	return out, err
}

// look brings the promotion that waits up to date, nil when none does, and reports whether all of its gates are open.
func (j *judging) look(ctx context.Context, out **intent.Promotion) (open bool, err error) {
	d, err := followed(ctx, j.tx, j.source.ID)
	if err != nil {
		return false, err
	}
	if why := promote.Unfit(d, j.source.Name); why != "" {
		*out = nil
		return false, supersede(ctx, j.tx, j.env.ID, why, j.at)
	}
	row, err := j.waiting(ctx, d)
	if err != nil || row == nil {
		*out = nil
		return false, err
	}
	p, err := row.value()
	if err != nil {
		return false, err
	}
	hold, err := j.hold(ctx, p.Commit)
	if err != nil {
		return false, err
	}
	p.Version, p.Since, p.Checked = d.Version, d.Since, j.at
	p.Gates = promote.Judge(j.env.FollowPolicy(), d, hold, p.Approved, j.at)
	gates := promote.Held(p.Gates)
	*out = &p
	if toJSON(p.Gates) != canonical(row.Gates) || row.Version != p.Version || !row.Since.Equal(p.Since) ||
		gates.Approval && !row.Asked {
		if _, err = j.tx.Exec(ctx, statements.PromotionJudged, p.ID, p.Version, p.Since, toJSON(p.Gates), p.Checked,
			row.Asked || gates.Approval); err != nil {
			return false, err
		}
	}
	if gates.Approval && !row.Asked {
		j.ask = &intent.Notice{
			Severity: intent.SeverityInfo, Title: "A commit waits for approval",
			Message: fmt.Sprintf("%s %q by %s, deployed in %s, is ready for %s once somebody approves it", p.Short(),
				p.Subject, p.Author, p.SourceName, j.env.Name),
			URI: "/api/v2/git/promotions",
		}
	}
	return !gates.Held, nil
}

// canonical encodes gates as toJSON does, because the database formats JSON differently.
func canonical(raw json.RawMessage) string {
	gates, err := fromJSON[[]intent.PromotionGate](raw)
	if err != nil {
		return ""
	}
	return toJSON(gates)
}

// waiting returns the promotion that waits, of the commit that is deployed in the source; nil when that commit needs
// none.
func (j *judging) waiting(ctx context.Context, d intent.Followed) (*promotionRow, error) {
	commit := d.Provenance.Commit
	row, err := one[promotionRow](ctx, j.tx, statements.PromotionWaiting, j.env.ID)
	if err == nil && row.Source == j.source.ID && row.Commit == commit {
		return &row, nil
	}
	if err == nil {
		why := fmt.Sprintf("%s moved on to %s", j.source.Name, intent.Revision{Commit: commit}.Short())
		if row.Source != j.source.ID {
			why = j.env.Name + " follows " + j.source.Name + " now"
		}
		err = supersede(ctx, j.tx, j.env.ID, why, j.at)
	}
	if err != nil && !isNoRows(err) {
		return nil, err
	}
	last, err := one[promotionRow](ctx, j.tx, statements.PromotionLast, j.env.ID)
	if err == nil && last.Commit == commit {
		return nil, nil
	}
	if isNoRows(err) {
		var active versionRow
		if active, err = one[versionRow](ctx, j.tx, statements.VersionActive, j.env.ID); err == nil {
			v, err := active.value()
			if err != nil || v.Provenance.Commit == commit {
				return nil, err // it had the commit before it followed the source
			}
		}
	}
	if err != nil && !isNoRows(err) {
		return nil, err
	}
	p := d.Provenance
	if _, err = j.tx.Exec(ctx, statements.PromotionAdd, uuid.New(), j.env.ID, j.source.ID, j.source.Name, d.Version,
		commit, p.Branch,
		j.source.Source.Branch, p.Subject, p.Author, d.Since, j.at); err != nil {
		return nil, err
	}
	row, err = one[promotionRow](ctx, j.tx, statements.PromotionWaiting, j.env.ID)
	return &row, err
}

// hold reads what holds all promotions to the environment.
func (j *judging) hold(ctx context.Context, commit string) (intent.FollowHold, error) {
	h := intent.FollowHold{Halted: j.env.Halted, NoCompile: !j.env.Bool("server_compile")}
	block, err := one[blockRow](ctx, j.tx, statements.GitBlockGet, j.env.ID, commit)
	if err == nil {
		b, _ := block.value()
		h.Blocked = &b
	} else if !isNoRows(err) {
		return h, err
	}
	h.Paused, err = promotionPause(ctx, j.tx, j.env.ID)
	return h, err
}

// promote requests a compile of the commit, in the same transaction.
func (j *judging) promote(ctx context.Context, p *intent.Promotion, by *intent.Actor) error {
	message := fmt.Sprintf("%s of %s, its version %d", p.Short(), p.SourceName, p.Version)
	var who, why string
	var at *time.Time
	if by != nil {
		who, why, at = cleanText(by.By), cleanText(by.Reason), &by.At
		message += fmt.Sprintf("; %s did not wait for its gates: %s", who, why)
	}
	c := intent.Compile{
		ID: uuid.New(), Environment: j.env.ID, Requested: j.at, Update: true, Export: true,
		Trigger: intent.Trigger{
			Type:    intent.TriggerPromotion,
			Message: message,
		}, Metadata: map[string]any{"type": intent.TriggerPromotion, "message": message},
	}
	if err := enqueue(ctx, j.tx, j.op, c); err != nil {
		return err
	}
	if _, err := j.tx.Exec(ctx, statements.PromotionPromote, p.ID, j.at, c.ID, who, why, at); err != nil {
		return err
	}
	p.State, p.Ended, p.Compile, p.Overridden = intent.PromotionPromoted, &j.at, &c.ID, by
	return nil
}

// supersede ends the promotion that waits, if there is one.
func supersede(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, why string, at time.Time) error {
	row, err := one[promotionRow](ctx, tx, statements.PromotionWaiting, env)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statements.PromotionSupersede, row.ID, at, why)
	return err
}

// Promote promotes the commit that waits in spite of its gates, and records the intervention. Conflict when another
// commit waits, or when a gate is closed that nobody may override.
func (s *Store) Promote(
	ctx context.Context,
	env, source intent.Environment,
	commit string,
	by intent.Actor,
) (out intent.Promotion, err error) {
	const op = "store.Promote"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.FollowedLock, source.ID); err != nil {
			return err
		}
		j := &judging{tx: tx, op: op, env: env, source: source, at: by.At}
		var p *intent.Promotion
		if _, err := j.look(ctx, &p); err != nil {
			return err
		}
		if err := isCommit(op, p, commit); err != nil {
			return err
		}
		if promote.Held(p.Gates).Firm {
			return fault.New(op, fault.Conflict, p.Short()+" cannot be promoted: "+promote.Waits(*p)).
				Hint("a blocked commit is freed with `ordain git unblock`; a halted environment is resumed first")
		}
		if err := j.promote(ctx, p, &by); err != nil {
			return err
		}
		out = *p
		by.Reason = "commit " + p.Commit + " of " + p.SourceName + ", which " + promote.Waited(*p) + ": " + by.Reason
		return intervene(ctx, tx, env.ID, intent.DidPromote, "", by)
	})
	return out, err
}

// isCommit fails when the commit that a person names is not the one that waits.
func isCommit(op string, p *intent.Promotion, commit string) error {
	if p == nil {
		return fault.New(op, fault.Conflict, "no commit waits to be promoted").
			Hint("`ordain git promotions ENVIRONMENT` shows what was promoted and why nothing waits")
	}
	if p.Commit != commit {
		return fault.New(op, fault.Conflict, fmt.Sprintf("the commit that waits to be promoted is %s, not %s",
			p.Commit, commit)).
			Hint("look at what changed, then name that commit")
	}
	return nil
}

// ApprovePromotion records that a person approves the commit that waits, and the intervention. Conflict when another
// commit waits.
func (s *Store) ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string, by intent.Actor) error {
	const op = "store.ApprovePromotion"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		var p *intent.Promotion
		row, err := one[promotionRow](ctx, tx, statements.PromotionWaiting, env)
		if err == nil {
			var v intent.Promotion
			if v, err = row.value(); err == nil {
				p = &v
			}
		}
		if err != nil && !isNoRows(err) {
			return err
		}
		if err := isCommit(op, p, commit); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.PromotionApprove, p.ID, cleanText(by.By), cleanText(by.Reason),
			by.At); err != nil {
			return err
		}
		by.Reason = "commit " + p.Commit + " of " + p.SourceName + ": " + by.Reason
		return intervene(ctx, tx, env, intent.DidApprove, "", by)
	})
}

// PausePromotions pauses or resumes promotions to an environment, and records the intervention when that changes
// something.
func (s *Store) PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool, by intent.Actor) error {
	return s.write(ctx, "store.PausePromotions", func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		sql, args := statements.PromotionPauseEnd, []any{env}
		if pause {
			sql, args = statements.PromotionPauseSet, []any{env, cleanText(by.By), cleanText(by.Reason), by.At}
		}
		done, err := tx.Exec(ctx, sql, args...)
		if err != nil || done.RowsAffected() == 0 {
			return err
		}
		return intervene(ctx, tx, env, did(pause, intent.DidPauseFollow, intent.DidFollowAgain), "", by)
	})
}

type pauseRow struct {
	By     string
	Reason string
	At     time.Time
}

func promotionPause(ctx context.Context, q querier, env intent.EnvironmentID) (*intent.Actor, error) {
	row, err := one[pauseRow](ctx, q, statements.PromotionPauseGet, env)
	if isNoRows(err) {
		return nil, nil
	}
	return actorOf(row.By, row.Reason, &row.At), err
}

// PromotionPause returns who paused promotions; nil when nobody did.
func (s *Store) PromotionPause(ctx context.Context, env intent.EnvironmentID) (out *intent.Actor, err error) {
	err = s.read(ctx, "store.PromotionPause", func(q querier) error {
		out, err = promotionPause(ctx, q, env)
		return err
	})
	return out, err
}

// Promotions lists the promotions to an environment, newest first.
func (s *Store) Promotions(
	ctx context.Context,
	env intent.EnvironmentID,
	limit int,
) (out []intent.Promotion, err error) {
	return listed(ctx, s, "store.Promotions", promotionRow.value, statements.PromotionList, env, limit)
}

// LastPromoted returns the newest promotion that was carried out; nil when there is none.
func (s *Store) LastPromoted(ctx context.Context, env intent.EnvironmentID) (out *intent.Promotion, err error) {
	err = s.read(ctx, "store.LastPromoted", func(q querier) error {
		out = nil
		row, err := one[promotionRow](ctx, q, statements.PromotionLast, env)
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
