package control

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// mostNeeds is how many of a resource's requirements are examined.
const mostNeeds = 50

// Why explains, from the record, why a resource is not deployed.
func (c *Control) Why(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.Why, error) {
	f := WhyFacts{Now: c.cfg.Now()}
	var err error
	if f.Environment, err = c.cfg.Store.Environment(ctx, env); err != nil {
		return intent.Why{}, err
	}
	if f.Detail, err = c.cfg.Store.Resource(ctx, env, id); err != nil {
		return intent.Why{}, err
	}
	page, err := c.cfg.Store.Agents(ctx, env,
		intent.ListQuery{Limit: 1000, Sort: "name", Filters: map[string][]string{"name": {id.Agent}}})
	if err != nil {
		return intent.Why{}, err
	}
	for _, a := range page.Items {
		if a.Name == id.Agent {
			f.Agent = a
		}
	}
	if f.Held, err = c.cfg.Store.HeldVersions(ctx, env); err != nil {
		return intent.Why{}, err
	}
	if err := c.needs(ctx, env, &f); err != nil {
		return intent.Why{}, err
	}
	return f.Answer(), nil
}

// needs reads what the resource of f is waiting for: the requirements that are not
// deployed successfully and, if it is blocked, the undefined resource that blocks it.
func (c *Control) needs(ctx context.Context, env intent.EnvironmentID, f *WhyFacts) error {
	blocked := f.Detail.State.Blocked == intent.IsBlocked
	seen := map[intent.ResourceID]bool{f.Detail.State.ID: true}
	next := []intent.ResourceDetail{f.Detail}
	for first := true; len(next) > 0 && len(seen) < mostNeeds && (first || blocked &&
		f.Behind.IsZero()); first = false {
		var found []intent.ResourceDetail
		for _, d := range next {
			for _, id := range d.Resource.Requires {
				if seen[id] || d.RequiresStatus[id] == intent.StatusDeployed || len(seen) >= mostNeeds {
					continue
				}
				seen[id] = true
				need, err := c.cfg.Store.Resource(ctx, env, id)
				if fault.Is(err, fault.NotFound) {
					continue
				} else if err != nil {
					return err
				}
				if first {
					f.Needs = append(f.Needs, need.State)
				}
				if len(need.Resource.Undefined) > 0 && f.Behind.IsZero() {
					f.Behind = id
				}
				found = append(found, need)
			}
		}
		next = found
	}
	return nil
}
