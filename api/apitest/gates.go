package apitest

import (
	"context"
	"slices"
	"time"

	"ordain.dev/ordain/server/control"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Override is a verb.
func (c *Control) Override(_ context.Context, id uuid.UUID, o intent.Override) (intent.Override, error) {
	o.ID, o.Created = uuid.New(), o.Until.Add(-time.Hour) // whatever the clock of a test says
	if err := o.Check(); err != nil {
		return o, fault.Wrap("apitest", fault.Invalid, err)
	}
	return o, c.change(id, "override by "+o.By, func(e *Env) error {
		e.Overrides = append(e.Overrides, o)
		e.Acted = append(
			e.Acted,
			intent.Intervention{At: o.Created, By: o.By, Kind: intent.DidOverride, Reason: o.Reason},
		)
		return nil
	})
}

// EndOverride is a verb.
func (c *Control) EndOverride(_ context.Context, id uuid.UUID, override uuid.UUID) error {
	return c.change(id, "end override", func(e *Env) error {
		i := slices.IndexFunc(e.Overrides, func(o intent.Override) bool { return o.ID == override })
		if i < 0 {
			return missing("override")
		}
		now := time.Now().UTC()
		o := e.Overrides[i]
		o.Ended, o.EndedBy = &now, "somebody"
		e.Overrides, e.Gone = slices.Delete(slices.Clone(e.Overrides), i, i+1), append(e.Gone, o)
		return nil
	})
}

// Overrides lists them.
func (c *Control) Overrides(_ context.Context, id uuid.UUID) (out []intent.Override, err error) {
	err = c.see(id, func(e *Env) { out = slices.Concat(e.Overrides, e.Gone) })
	return out, err
}

// Interventions lists them.
func (c *Control) Interventions(_ context.Context, id uuid.UUID) (out []intent.Intervention, err error) {
	err = c.see(id, func(e *Env) { out = slices.Clone(e.Acted); slices.Reverse(out) })
	return out, err
}

// Why answers from what is there.
func (c *Control) Why(ctx context.Context, id uuid.UUID, rid intent.ResourceID) (intent.Why, error) {
	detail, err := c.Resource(ctx, id, rid)
	if err != nil {
		return intent.Why{}, err
	}
	f := control.WhyFacts{Detail: detail, Now: time.Now()}
	err = c.see(id, func(e *Env) {
		f.Environment = e.Environment
		for _, a := range e.AgentList {
			if a.Name == rid.Agent {
				f.Agent = a
			}
		}
	})
	return f.Answer(), err
}

// see reads an environment.
func (c *Control) see(id uuid.UUID, do func(*Env)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err == nil {
		do(e)
	}
	return err
}
