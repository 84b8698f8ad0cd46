package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type overrideRow struct {
	ID      uuid.UUID
	By      string
	Reason  string
	Agents  []string
	Created time.Time
	Until   time.Time
	Ended   *time.Time
	EndedBy string `json:"ended_by"`
}

func (r overrideRow) value() (intent.Override, error) {
	return intent.Override{
		ID: r.ID, By: r.By, Reason: r.Reason, Agents: r.Agents, Created: r.Created.UTC(), Until: r.Until.UTC(),
		Ended: utc(r.Ended), EndedBy: r.EndedBy,
	}, nil
}

// AddOverride records that a person lets changes through, with the intervention and a notice.
func (s *Store) AddOverride(ctx context.Context, env intent.EnvironmentID, o intent.Override) error {
	if o.Agents == nil {
		o.Agents = []string{}
	}
	return s.write(ctx, "store.AddOverride", func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.OverrideAdd, o.ID, env, cleanText(o.By), cleanText(o.Reason), o.Agents,
			o.Created, o.Until); err != nil {
			return err
		}
		err := intervene(ctx, tx, env, intent.DidOverride, strings.Join(o.Agents, ", "), intent.Actor{
			By: o.By, At: o.Created, Reason: o.Reason + " (until " + o.Until.UTC().Format("2006-01-02 15:04 UTC") + ")",
		})
		if err != nil {
			return err
		}
		return addNotice(ctx, tx, env, overrideNotice(o), o.Created)
	})
}

// EndOverride ends an override before its time; Conflict when it is over already.
func (s *Store) EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID, by intent.Actor) error {
	const op = "store.EndOverride"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		row, err := one[overrideRow](ctx, tx, statements.OverrideGet, env, id)
		if isNoRows(err) {
			return fault.New(op, fault.NotFound, "there is no such override")
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statements.OverrideEnd, env, id, by.At, cleanText(by.By))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(op, fault.Conflict, "this override is over already")
		}
		if err := intervene(ctx, tx, env, intent.DidEndOverride, strings.Join(row.Agents, ", "), by); err != nil {
			return err
		}
		o, err := row.value()
		if err != nil {
			return err
		}
		o.EndedBy = by.By
		return addNotice(ctx, tx, env, overrideNotice(o), by.At)
	})
}

// Overrides lists the newest overrides, those that are over included.
func (s *Store) Overrides(ctx context.Context, env intent.EnvironmentID, limit int) (out []intent.Override, err error) {
	return listed(ctx, s, "store.Overrides", overrideRow.value, statements.OverrideList, env, limit)
}

type interventionRow struct {
	At     time.Time
	By     string
	Kind   string
	Agent  string
	Reason string
}

func (r interventionRow) value() (intent.Intervention, error) {
	return intent.Intervention{
		At:     r.At.UTC(),
		By:     r.By,
		Kind:   intent.InterventionKind(r.Kind),
		Agent:  r.Agent,
		Reason: r.Reason,
	}, nil
}

// Interventions lists what people did to hold changes or to let them through, newest first.
func (s *Store) Interventions(
	ctx context.Context,
	env intent.EnvironmentID,
	limit int,
) (out []intent.Intervention, err error) {
	return listed(ctx, s, "store.Interventions", interventionRow.value, statements.InterventionList, env, limit)
}

// intervene records an intervention.
func intervene(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	kind intent.InterventionKind,
	agent string,
	by intent.Actor,
) error {
	_, err := tx.Exec(ctx, statements.InterventionAdd, env, by.At, cleanText(by.By), string(kind), cleanText(agent),
		cleanText(by.Reason))
	return err
}

// did returns yes when on is set, and no otherwise.
func did(on bool, yes, no intent.InterventionKind) intent.InterventionKind {
	if on {
		return yes
	}
	return no
}
