package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	provisioners "ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/store"
)

// tenantCalls are about how much projects use of the cluster service, and who works for them.
func (s *server) tenantCalls(c *calls) {
	const base, tenants = sharedCatalogue, "/tenants"
	v2(c, http.MethodGet, base+tenants, "List how much each project may use of the cluster service, and uses.",
		access.SeeAllProvisioners, s.listTenants)
	v2(c, http.MethodGet, base+tenants+"/{id}", "Show how much a project may use of the cluster service, and uses.",
		access.SeeTenant, s.getTenant)
	v2(c, http.MethodPut, base+tenants+"/{id}", "Set how much a project may use of the cluster service; clusters or "+
		"nodes that are left out or null have no limit.", access.ManageTenants, s.setTenant)
	const queues = "/metrics/queues"
	v2(c, http.MethodGet, base+queues, "Count the tasks of clusters that wait and run, by project and state.",
		access.SeeAllProvisioners, s.listAllQueues)
	v2(c, http.MethodGet, projectCatalogue+queues, "Count the tasks of a project's clusters that wait and run, by "+
		"state.",
		access.SeeProvisioners, s.listQueues)
	const provisioners = "/provisioners"
	v2(c, http.MethodGet, base+provisioners, "List the provisioners that run elsewhere.", access.SeeAllProvisioners,
		s.listAllProvisioners)
	v2(c, http.MethodGet, projectCatalogue+provisioners, "List the provisioners of a project that run elsewhere.",
		access.SeeProvisioners, s.listProvisioners)
	const own, tokens = projectCatalogue + provisioners, projectCatalogue + "/provisioner_tokens"
	done[nullData](c, http.MethodPost, own+"/{name}/revoke", "Revoke a provisioner: its next request is refused, and "+
		"others get its tasks.", access.ManageProvisioners, s.revokeProvisioner)
	v2(c, http.MethodGet, tokens, "List the tokens with which provisioners join a project, also those that ended "+
		"lately.",
		access.SeeProvisioners, s.listProvisionerTokens)
	v2(c, http.MethodPost, tokens, "Make a token with which a provisioner joins a project, once. The answer alone "+
		"shows it.", access.ManageProvisioners, s.createProvisionerToken)
	done[nullData](c, http.MethodDelete, tokens+"/{token}", "Revoke a token of a provisioner that was not used.",
		access.ManageProvisioners, s.revokeProvisionerToken)
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

func (s *server) provisionerService() (*provisioners.Service, error) {
	if s.joining == nil {
		return nil, fault.New("api", fault.Unavailable, "this server lets no provisioners join").
			Hint("start it with an agent server: [agent-server] public-url")
	}
	return s.joining, nil
}

type oneProvisioner struct {
	oneProject
	Name string `arg:"name,required"`
}

func (s *server) revokeProvisioner(ctx context.Context, a oneProvisioner) error {
	service, err := s.provisionerService()
	if err != nil {
		return err
	}
	return service.Revoke(ctx, a.ID, a.Name)
}

// provisionerToken is a join token of a provisioner, without its secret.
type provisionerToken struct {
	ID          uuid.UUID  `json:"id"`
	Provisioner string     `json:"provisioner"`
	State       string     `json:"state"` // waiting, used, expired or revoked
	Made        timestamp  `json:"made"`
	MadeBy      string     `json:"made_by"`
	Expires     timestamp  `json:"expires"`
	Used        *timestamp `json:"used"`
	Revoked     *timestamp `json:"revoked"`
}

type newProvisionerToken struct {
	provisionerToken
	Token string `json:"token"` // it is shown this once
}

func (s *server) provisionerTokenOf(t intent.ProvisionerToken) provisionerToken {
	state := "waiting"
	switch {
	case t.Used != nil:
		state = "used"
	case t.Revoked != nil:
		state = "revoked"
	case !t.Expires.After(s.now()):
		state = "expired"
	}
	return provisionerToken{
		ID: t.ID, Provisioner: t.Name, State: state, Made: stamp(t.Made), MadeBy: t.MadeBy, Expires: stamp(t.Expires),
		Used: maybe(t.Used), Revoked: maybe(t.Revoked),
	}
}

func (s *server) listProvisionerTokens(ctx context.Context, a oneProject) ([]provisionerToken, error) {
	all, err := s.store.ProvisionerTokens(ctx, a.ID)
	return listed(all, s.provisionerTokenOf), err
}

type provisionerTokenArguments struct {
	oneProject
	Provisioner string `arg:"provisioner,required"`
	Expire      *int   `arg:"expire"` // seconds; an hour by default
}

func (s *server) createProvisionerToken(
	ctx context.Context, a provisionerTokenArguments,
) (newProvisionerToken, error) {
	service, err := s.provisionerService()
	if err != nil {
		return newProvisionerToken{}, err
	}
	var lifetime time.Duration
	if a.Expire != nil {
		if lifetime, err = lifetimeOf(*a.Expire); err != nil {
			return newProvisionerToken{}, err
		}
	}
	t, text, err := service.CreateToken(ctx, a.ID, a.Provisioner, lifetime)
	if err != nil {
		return newProvisionerToken{}, err
	}
	return newProvisionerToken{s.provisionerTokenOf(t), text}, nil
}

type oneProvisionerToken struct {
	oneProject
	Token uuid.UUID `arg:"token,required"`
}

func (s *server) revokeProvisionerToken(ctx context.Context, a oneProvisionerToken) error {
	service, err := s.provisionerService()
	if err != nil {
		return err
	}
	return service.RevokeToken(ctx, a.ID, a.Token)
}
