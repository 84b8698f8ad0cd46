package apitest

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// SetDiscovered is a verb.
func (c *Control) SetDiscovered(_ context.Context, id uuid.UUID, found []intent.Discovered) error {
	return c.change(id, "discovered", func(e *Env) error {
		for _, d := range found {
			e.Discovered = slices.DeleteFunc(e.Discovered, func(x intent.Discovered) bool { return x.ID == d.ID })
			e.Discovered = append(e.Discovered, d)
		}
		return nil
	})
}

// DeleteDiscovered is a verb.
func (c *Control) DeleteDiscovered(_ context.Context, id uuid.UUID, ids []intent.ResourceID) error {
	return c.change(id, "forget", func(e *Env) error {
		left := slices.DeleteFunc(
			slices.Clone(e.Discovered),
			func(x intent.Discovered) bool { return slices.Contains(ids, x.ID) },
		)
		if len(left)+len(ids) != len(e.Discovered) {
			return fault.New("apitest", fault.NotFound, "not all of these were discovered")
		}
		e.Discovered = left
		return nil
	})
}

// Discovered is a verb.
func (c *Control) Discovered(_ context.Context, id uuid.UUID, resource intent.ResourceID) (intent.Discovered, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Discovered{}, err
	}
	for _, d := range e.Discovered {
		if d.ID == resource {
			return d, nil
		}
	}
	return intent.Discovered{}, fault.New("apitest", fault.NotFound, "this was not discovered")
}

// DiscoveredList is a verb; it sorts by id and filters on managed.
func (c *Control) DiscoveredList(
	_ context.Context,
	id uuid.UUID,
	q intent.ListQuery,
) (intent.Page[intent.Discovered], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Discovered]{}, err
	}
	out := paginate(e.Discovered, q,
		func(x intent.Discovered, _ string) (string, string) { return x.ID.String(), x.ID.String() },
		func(x intent.Discovered, _, v string) bool { return x.Managed == (v == "true") })
	return out, nil
}
