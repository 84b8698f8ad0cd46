package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ClusterTenant is what a project may use of the cluster service, and what it uses.
type ClusterTenant struct {
	Project     intent.ProjectID
	Name        string // of the project
	Set         bool   // somebody has set its limits
	Workers     int    // tasks at a time in the server's own provisioner
	MaxClusters *int   // nil: no limit
	MaxNodes    *int
	Clusters    int // that are live
	Nodes       int // that have a machine, or are to get one
}

type clusterTenantRow struct {
	Project     uuid.UUID
	Name        string
	Set         bool
	Workers     int
	MaxClusters *int
	MaxNodes    *int
	Clusters    int
	Nodes       int
}

func (r clusterTenantRow) value() (ClusterTenant, error) { return ClusterTenant(r), nil }

// ClusterTenants returns all projects by name.
func (s *Store) ClusterTenants(ctx context.Context) ([]ClusterTenant, error) {
	return listed(ctx, s, "store.ClusterTenants", clusterTenantRow.value, statements.ClusterTenantList, nil,
		DefaultWorkers)
}

// ClusterTenant returns one project.
func (s *Store) ClusterTenant(ctx context.Context, project intent.ProjectID) (out ClusterTenant, err error) {
	err = s.read(ctx, "store.ClusterTenantOfProject", func(q querier) error {
		row, err := one[clusterTenantRow](ctx, q, statements.ClusterTenantList, project, DefaultWorkers)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// SetClusterTenant sets the limits of t.Project, and returns what it had before. A limit cannot be below what the
// project uses.
func (s *Store) SetClusterTenant(ctx context.Context, t ClusterTenant) (before ClusterTenant, err error) {
	const op = "store.SetClusterTenantOfProject"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		var id uuid.UUID
		if err := tx.QueryRow(ctx, statements.ClusterTenantLock, t.Project).Scan(&id); err != nil {
			return err
		}
		row, err := one[clusterTenantRow](ctx, tx, statements.ClusterTenantList, t.Project, DefaultWorkers)
		if err != nil {
			return err
		}
		before, _ = row.value()
		if t.MaxClusters != nil && before.Clusters > *t.MaxClusters {
			return fault.New(op, fault.Conflict, fmt.Sprintf("%s has %d clusters, which is more than %d", before.Name,
				before.Clusters, *t.MaxClusters)).Hint("delete clusters first")
		}
		if t.MaxNodes != nil && before.Nodes > *t.MaxNodes {
			return fault.New(op, fault.Conflict, fmt.Sprintf("the clusters of %s have %d nodes, which is more than %d",
				before.Name, before.Nodes, *t.MaxNodes)).Hint("make clusters smaller first")
		}
		_, err = tx.Exec(ctx, statements.ClusterTenantSet, t.Project, t.Workers, t.MaxClusters, t.MaxNodes)
		return err
	})
	return before, err
}
