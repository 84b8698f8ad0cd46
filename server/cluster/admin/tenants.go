package admin

import (
	"context"
	"fmt"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/store"
)

// Bounds of what a project may use.
const (
	maxWorkers = 1000
	maxLimit   = 1_000_000
)

// Tenants returns all projects, with what they may use of the cluster service and what they use.
func (s *Service) Tenants(ctx context.Context) ([]store.ClusterTenant, error) {
	return s.c.Store.ClusterTenants(ctx)
}

// Tenant returns one project.
func (s *Service) Tenant(ctx context.Context, project intent.ProjectID) (store.ClusterTenant, error) {
	if _, err := s.c.Store.Project(ctx, project); err != nil {
		return store.ClusterTenant{}, err
	}
	return s.c.Store.ClusterTenant(ctx, project)
}

// SetTenant sets what a project may use: how many tasks the server's own provisioner works on at a time for it, and
// how many clusters and nodes it has at most; nil is no limit. Conflict: it has more already.
func (s *Service) SetTenant(
	ctx context.Context, project intent.ProjectID, workers int, maxClusters, maxNodes *int,
) error {
	const op = "admin.SetTenant"
	known, err := s.c.Store.Project(ctx, project)
	if err != nil {
		return err
	}
	audit.OnProject(ctx, known)
	audit.Subject(ctx, "the limits of clusters")
	for _, one := range []struct {
		what  string
		value *int
		most  int
	}{{"workers", &workers, maxWorkers}, {"clusters", maxClusters, maxLimit}, {"nodes", maxNodes, maxLimit}} {
		if one.value != nil && (*one.value < 0 || *one.value > one.most) {
			return fault.New(op, fault.Invalid, fmt.Sprintf("the number of %s cannot be %d: it may be 0 to %d",
				one.what,
				*one.value, one.most)).Hint("leave clusters or nodes out for no limit")
		}
	}
	before, err := s.c.Store.SetClusterTenant(ctx, store.ClusterTenant{
		Project: project, Workers: workers, MaxClusters: maxClusters, MaxNodes: maxNodes,
	})
	audit.Change(ctx, limits(before), limits(store.ClusterTenant{
		Set: true, Workers: workers, MaxClusters: maxClusters, MaxNodes: maxNodes,
	}))
	if err == nil {
		s.changed(project)
	}
	return err
}

func limits(t store.ClusterTenant) any {
	if !t.Set {
		return nil
	}
	return map[string]any{"workers": t.Workers, "clusters": t.MaxClusters, "nodes": t.MaxNodes}
}
