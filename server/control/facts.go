package control

import (
	"context"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// RefreshFacts asks resources for their facts: the named ones, or all resources that
// have facts which expire or that the model is waiting for. It returns the resources that
// it asked, or NotFound if one is not in the active version.
func (c *Control) RefreshFacts(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceID, error) {
	if len(ids) == 0 {
		due, err := c.cfg.Store.FactsDue(ctx, env)
		if err != nil {
			return nil, err
		}
		for _, f := range due {
			if !slices.Contains(ids, f.Resource) {
				ids = append(ids, f.Resource)
			}
		}
	}
	for _, id := range ids {
		r, err := c.cfg.Store.Resource(ctx, env, id)
		if fault.Is(err, fault.NotFound) || err == nil && r.State.Orphaned > 0 {
			return nil, fault.New("control.RefreshFacts", fault.NotFound,
				"the deployed version has no resource "+id.String())
		}
		if err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := c.cfg.Store.Asking(env, intent.RequestFacts, ids).RequestFacts(ctx, env, ids, c.cfg.Now())
	if err != nil {
		return nil, err
	}
	c.cfg.Keepers.Attend(ctx, env)
	return ids, nil
}
