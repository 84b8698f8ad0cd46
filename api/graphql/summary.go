package graphql

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"ordain.dev/ordain/api/graphql/schema"
	"ordain.dev/ordain/server/access"
)

// ResourceSummary answers the root resourceSummary.
func (r resolvers) ResourceSummary(
	ctx context.Context, environment string,
) (*schema.ComposedResourceSummary, error) {
	return read(ctx, func() (*schema.ComposedResourceSummary, error) {
		env, err := uuid.Parse(environment)
		if err != nil {
			return nil, invalid("%.100q is not the id of an environment", environment)
		}
		if err := r.door.cfg.Allow(ctx, access.SeeResources, env); err != nil {
			return nil, err
		}
		s, err := r.door.cfg.Store.StateSummary(ctx, env)
		if err != nil {
			return nil, err
		}
		return &schema.ComposedResourceSummary{
			TotalCount:     int32(s.Total),
			LastHandlerRun: counts(s.LastRun, "new", "successful", "failed", "skipped"),
			Blocked:        counts(s.Blocked, "blocked", "not_blocked", "temporarily_blocked"),
			Compliance:     counts(s.Compliance, "compliant", "has_update", "non_compliant", "undefined"),
			IsDeploying:    counts(s.Deploying, "true", "false"),
		}, nil
	})
}

// counts are numbers by value, with a zero for each value that nothing has.
func counts[K comparable](found map[K]int, all ...string) map[string]int {
	out := make(map[string]int, len(all))
	for _, value := range all {
		out[value] = 0
	}
	for value, n := range found {
		out[fmt.Sprint(value)] = n
	}
	return out
}
