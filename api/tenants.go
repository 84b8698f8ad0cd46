package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// tenantCalls are about how much projects use of the cluster service, and who works for them.
func (s *server) tenantCalls(c *calls) {
	const base, tenants = sharedCatalogue, "/tenants"
	v2(c, http.MethodGet, base+tenants, "List how much each project may use of the cluster service, and uses.",
		access.SeeAllProvisioners, s.listTenants)
	v2(c, http.MethodGet, base+tenants+"/{id}", "Show how much a project may use of the cluster service, and uses.",
		access.SeeTenant, s.getTenant)
	v2(c, http.MethodPut, base+tenants+"/{id}", "Set how much a project may use of the cluster service; clusters or nodes "+
		"that are left out or null have no limit.", access.ManageTenants, s.setTenant)
	const queues = "/metrics/queues"
	v2(c, http.MethodGet, base+queues, "Count the tasks of clusters that wait and run, by project and state.",
		access.SeeAllProvisioners, s.listAllQueues)
	v2(c, http.MethodGet, projectCatalogue+queues, "Count the tasks of a project's clusters that wait and run, by state.",
		access.SeeProvisioners, s.listQueues)
	const provisioners = "/provisioners"
	v2(c, http.MethodGet, base+provisioners, "List the provisioners that run elsewhere.", access.SeeAllProvisioners,
		s.listAllProvisioners)
	v2(c, http.MethodGet, projectCatalogue+provisioners, "List the provisioners of a project that run elsewhere.",
		access.SeeProvisioners, s.listProvisioners)
}

// tenant is a project as a user of the cluster service.
type tenant struct {
	Project     uuid.UUID `json:"project"`
	Name        string    `json:"name"`
	Workers     int       `json:"workers"`      // tasks at a time in the server's own provisioner
	MaxClusters *int      `json:"max_clusters"` // null: no limit
	MaxNodes    *int      `json:"max_nodes"`
	Clusters    int       `json:"clusters"`
	Nodes       int       `json:"nodes"`
	Set         bool      `json:"set"` // somebody has set its limits
}

func tenantOf(t store.ClusterTenant) tenant {
	return tenant{
		Project: t.Project, Name: t.Name, Workers: t.Workers, MaxClusters: t.MaxClusters, MaxNodes: t.MaxNodes,
		Clusters: t.Clusters, Nodes: t.Nodes, Set: t.Set,
	}
}

func (s *server) listTenants(ctx context.Context, _ noArguments) ([]tenant, error) {
	service, err := s.catalogueService()
	if err != nil {
		return nil, err
	}
	all, err := service.Tenants(ctx)
	return listed(all, tenantOf), err
}

func (s *server) getTenant(ctx context.Context, a oneProject) (tenant, error) {
	service, err := s.catalogueService()
	if err != nil {
		return tenant{}, err
	}
	t, err := service.Tenant(ctx, a.ID)
	return tenantOf(t), err
}

type newTenant struct {
	oneProject
	Workers     *int `arg:"workers"`
	MaxClusters *int `arg:"max_clusters"`
	MaxNodes    *int `arg:"max_nodes"`
}

func (s *server) setTenant(ctx context.Context, a newTenant) (tenant, error) {
	service, err := s.catalogueService()
	if err != nil {
		return tenant{}, err
	}
	workers := store.DefaultWorkers
	if a.Workers != nil {
		workers = *a.Workers
	}
	if err := service.SetTenant(ctx, a.ID, workers, a.MaxClusters, a.MaxNodes); err != nil {
		return tenant{}, err
	}
	return s.getTenant(ctx, a.oneProject)
}

// taskQueue are the tasks of a project that are in a state.
type taskQueue struct {
	Project uuid.UUID  `json:"project"`
	State   string     `json:"state"` // waiting, ready or running
	Tasks   int        `json:"tasks"`
	Oldest  *timestamp `json:"oldest"` // when the first of those that failed is tried again
}

func (s *server) listAllQueues(ctx context.Context, _ noArguments) ([]taskQueue, error) {
	return s.queues(ctx, nil)
}

func (s *server) listQueues(ctx context.Context, a oneProject) ([]taskQueue, error) {
	return s.queues(ctx, &a.ID)
}

func (s *server) queues(ctx context.Context, project *uuid.UUID) ([]taskQueue, error) {
	all, err := s.store.ClusterQueues(ctx, project)
	return listed(all, func(q store.ClusterQueue) taskQueue {
		return taskQueue{Project: q.Project, State: q.State, Tasks: q.Tasks, Oldest: maybe(q.Oldest)}
	}), err
}

// provisioner is a process that carries out tasks of one project, elsewhere than in the server.
type provisioner struct {
	ID      uuid.UUID  `json:"id"`
	Project uuid.UUID  `json:"project"`
	Name    string     `json:"name"`
	Program string     `json:"program"`
	Room    int        `json:"room"`    // tasks at a time
	Running int        `json:"running"` // tasks that it works on
	Joined  timestamp  `json:"joined"`
	Seen    *timestamp `json:"seen"`
	Revoked *timestamp `json:"revoked"`
	Expires *timestamp `json:"certificate_expires"`
	Problem *string    `json:"problem"`
}

func (s *server) listAllProvisioners(ctx context.Context, _ noArguments) ([]provisioner, error) {
	return s.provisioners(ctx, nil)
}

func (s *server) listProvisioners(ctx context.Context, a oneProject) ([]provisioner, error) {
	return s.provisioners(ctx, &a.ID)
}

func (s *server) provisioners(ctx context.Context, project *uuid.UUID) ([]provisioner, error) {
	all, err := s.store.Provisioners(ctx, project)
	return listed(all, func(p intent.Provisioner) provisioner {
		return provisioner{
			ID: p.ID, Project: p.Project, Name: p.Name, Program: p.Program, Room: p.Room, Running: p.Running,
			Joined: stamp(p.Joined), Seen: maybe(p.Seen), Revoked: maybe(p.Revoked), Expires: unlessZero(p.Expires),
			Problem: orNull(p.Problem),
		}
	}), err
}
