package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/manifest"
)

// clusterCalls are about clusters. Inmanta has no such calls; their names and fields are those of Coopr, where it has
// the same thing. What changes a cluster is a commit of its file, and the answer says where that went.
func (s *server) clusterCalls(c *calls) {
	const all, one = "/api/v2/cluster/clusters", "/api/v2/cluster/clusters/{name}"
	const see, plan, change, operate = access.SeeClusters, access.PlanCluster, access.ChangeCluster,
		access.OperateCluster
	v2(c, http.MethodPost, all, "Create a cluster: its layout is solved, and its file is committed.", change,
		s.createCluster)
	v2(c, http.MethodPost, all+"/plan", "Show the file and the plan of a cluster, and create nothing.", plan,
		s.planNewCluster)
	v2(c, http.MethodGet, all, "List clusters that were deployed: of these states, or with ended also those that "+
		"are gone.",
		see, s.listClusters)
	v2(c, http.MethodGet, one, "Show a cluster: its nodes, what is wanted, and what was reached in full last.", see,
		s.getCluster)
	v2(c, http.MethodGet, one+"/file", "Show the file of a cluster as it is in Git now.", see, s.getClusterFile)
	v2(c, http.MethodGet, one+"/status", "Show how far the newest job of a cluster is.", see, s.getClusterStatus)
	v2(c, http.MethodPost, one+"/plan", "Show what a change of a cluster would do, and change nothing.", plan,
		s.planCluster)
	v2(c, http.MethodPatch, one, "Change a cluster: what is left out stays.", change, s.amendCluster)
	v2(c, http.MethodPost, one, "Change a cluster, for clients without PATCH.", change, s.amendClusterByPost)
	v2(c, http.MethodDelete, one, "Delete a cluster: its file now, its machines when that is deployed.",
		access.DeleteCluster, s.deleteCluster)
	v2(c, http.MethodPost, one+"/rollback", "Commit the file that a cluster was made from in full last.", change,
		s.rollBackCluster)
	v2(c, http.MethodPost, one+"/clustertemplate/sync", "Take the newest versions of all that a cluster is made from.",
		change, s.syncCluster)
	v2(c, http.MethodPost, one+"/nodes/{number}/replace", "Make a node anew, with another number.", change,
		s.replaceNode)
	done[nullData](c, http.MethodPost, one+"/pause", "Begin no more tasks of a cluster; what runs goes on.", operate,
		s.pauseCluster)
	done[nullData](c, http.MethodPost, one+"/resume", "Begin tasks of a cluster again.", operate, s.resumeCluster)
	done[nullData](c, http.MethodPost, one+"/abort", "End the job of a cluster. What there is stays, and is "+
		"known.", operate,
		s.abortCluster)
	done[nullData](c, http.MethodPost, one+"/retry", "Make another job after one failed or was ended.", operate,
		s.retryCluster)
	s.clusterServiceCalls(c, one)
	s.clusterJobCalls(c, one)
}

// clusterService returns the service; without it, a server has no clusters.
func (s *server) clusterService() (*cluster.Service, error) {
	if s.clusters == nil {
		return nil, noClusters()
	}
	return s.clusters, nil
}

func noClusters() error {
	return fault.New("api", fault.Unavailable, "this server has no part for clusters")
}

// oneCluster names a cluster of an environment.
type oneCluster struct {
	inEnvironment
	Name string `arg:"name,required"`
}

// clusterWish is what a person asks for, in the words of Coopr.
type clusterWish struct {
	inEnvironment
	Name         string         `arg:"name,required"`
	Template     string         `arg:"clusterTemplate,required"`
	Size         *int           `arg:"numMachines"`
	Description  string         `arg:"description"`
	Provider     string         `arg:"provider"`
	Fields       map[string]any `arg:"providerFields"`
	HardwareType string         `arg:"hardwaretype"`
	ImageType    string         `arg:"imagetype"`
	Services     []string       `arg:"services"`
	Lease        any            `arg:"initialLeaseDuration"` // milliseconds, or 2d; -1: as the template says
	DNSSuffix    string         `arg:"dnsSuffix"`
	Config       map[string]any `arg:"config"`
}

func (s *server) wishOf(ctx context.Context, a clusterWish) (e intent.Environment, w cluster.Wish, err error) {
	if e, err = s.store.Environment(ctx, a.Env); err != nil {
		return e, w, err
	}
	w = cluster.Wish{
		Name: a.Name, Description: a.Description, Template: a.Template, Provider: a.Provider,
		HardwareType: a.HardwareType,
		ImageType:    a.ImageType, DNSSuffix: a.DNSSuffix, Services: a.Services, Config: a.Config,
	}
	if a.Size != nil {
		if w.Size = *a.Size; w.Size < 1 {
			return e, w, invalid("numMachines is %d; a cluster has one machine at least", w.Size)
		}
	}
	if w.Fields, err = rawFields(a.Fields); err != nil {
		return e, w, err
	}
	w.Lease, err = s.leaseOf(ctx, e.ProjectID, a)
	return e, w, err
}

func rawFields(given map[string]any) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, invalid("providerFields.%.100s cannot be written as JSON: %v", name, err)
		}
		out[name] = text
	}
	return out, nil
}

// leaseOf reads the lease that is wished for; zero: as long as the template says. A lease of 0 has no end, which only
// templates without a first lease allow.
func (s *server) leaseOf(ctx context.Context, project intent.ProjectID, a clusterWish) (time.Duration, error) {
	lease, given, err := durationOf("initialLeaseDuration", a.Lease)
	switch {
	case err != nil || !given || lease == -time.Millisecond:
		return 0, err
	case lease != 0:
		return lease, nil
	case s.catalogue == nil:
		return 0, noClusters()
	}
	c, err := s.catalogue.Catalogue(ctx, project)
	if err != nil {
		return 0, err
	}
	if t, err := c.Resolve(a.Template); err == nil && t.Administration.Lease.Initial != 0 {
		return 0, invalid("initialLeaseDuration is 0, which has no end; the template %s allows %s at first",
			a.Template, time.Duration(t.Administration.Lease.Initial))
	}
	return 0, nil
}

func (s *server) createCluster(ctx context.Context, a clusterWish) (changedCluster, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return changedCluster{}, err
	}
	e, w, err := s.wishOf(ctx, a)
	if err != nil {
		return changedCluster{}, err
	}
	p, written, err := clusters.Create(ctx, e, w)
	if err != nil {
		return changedCluster{}, err
	}
	return changedOf(w.Name, p, written), nil
}

func (s *server) planNewCluster(ctx context.Context, a clusterWish) (plannedCluster, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return plannedCluster{}, err
	}
	e, w, err := s.wishOf(ctx, a)
	if err != nil {
		return plannedCluster{}, err
	}
	p, err := clusters.Propose(ctx, e, w)
	if err != nil {
		return plannedCluster{}, err
	}
	return plannedOf(p), nil
}

type clusterFilter struct {
	inEnvironment
	State []string `arg:"state"`
	Ended bool     `arg:"ended"`
}

var clusterStates = []string{
	string(intent.ClusterPending), string(intent.ClusterActive), string(intent.ClusterIncomplete),
	string(intent.ClusterInconsistent), string(intent.ClusterTerminated),
}

func (s *server) listClusters(ctx context.Context, a clusterFilter) ([]clusterView, error) {
	for _, state := range a.State {
		if !slices.Contains(clusterStates, state) {
			return nil, invalid("there is no state %.100q; there are %s", state, listWords(clusterStates))
		}
	}
	ended := a.Ended || slices.Contains(a.State, string(intent.ClusterTerminated))
	all, err := s.store.Clusters(ctx, a.Env, ended)
	if err != nil {
		return nil, err
	}
	out := []clusterView{}
	for _, c := range all {
		if len(a.State) > 0 && !slices.Contains(a.State, string(c.State)) {
			continue
		}
		view, _, _, err := clusterOf(c)
		if err != nil {
			return nil, err
		}
		out = append(out, view)
	}
	return out, nil
}

func (s *server) getCluster(ctx context.Context, a oneCluster) (clusterDetails, error) {
	c, err := s.store.Cluster(ctx, a.Env, a.Name)
	if fault.Is(err, fault.NotFound) {
		return s.committedCluster(ctx, a)
	}
	if err != nil {
		return clusterDetails{}, err
	}
	out := clusterDetails{}
	if out.clusterView, out.Wanted, out.Applied, err = clusterOf(c); err != nil {
		return out, err
	}
	nodes, err := s.store.ClusterNodes(ctx, false, c.ID)
	if err != nil {
		return out, err
	}
	if out.Nodes, err = nodesOf(nodes, out.Wanted); err != nil {
		return out, err
	}
	jobs, err := s.store.ClusterJobs(ctx, c.ID, 1)
	if err == nil && len(jobs) > 0 {
		out.Job = new(jobOf(jobs[0]))
	}
	return out, err
}

// committed is the state of a cluster whose file is in Git and was not deployed yet.
const committed = "committed"

// committedCluster shows a cluster that is not recorded yet, from its file.
func (s *server) committedCluster(ctx context.Context, a oneCluster) (clusterDetails, error) {
	f, err := s.clusterFile(ctx, a)
	if err != nil {
		return clusterDetails{}, err
	}
	m := f.Manifest
	out := clusterDetails{clusterView: viewOf(m), Wanted: cleanManifest(m)}
	out.Name, out.State, out.Owner, out.WantedCommit = a.Name, committed, m.Owner, orNull(f.Commit)
	out.Expires = maybe(m.Expires)
	out.Nodes, err = nodesOf(nil, m)
	return out, err
}

func (s *server) clusterFile(ctx context.Context, a oneCluster) (cluster.File, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return cluster.File{}, err
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return cluster.File{}, err
	}
	return clusters.File(ctx, e, a.Name)
}

func (s *server) getClusterFile(ctx context.Context, a oneCluster) (clusterFileView, error) {
	f, err := s.clusterFile(ctx, a)
	if err != nil {
		return clusterFileView{}, err
	}
	return clusterFileView{
		Path: manifest.PathOf(a.Name), Commit: f.Commit, Digest: f.Digest, Text: string(f.Text),
		Manifest: cleanManifest(f.Manifest),
	}, nil
}

func (s *server) getClusterStatus(ctx context.Context, a oneCluster) (clusterStatus, error) {
	c, err := s.store.Cluster(ctx, a.Env, a.Name)
	if err != nil {
		return clusterStatus{}, err
	}
	out := clusterStatus{
		ID: c.Number, Status: string(c.State), Paused: c.Paused, Retry: c.Retry, Problem: orNull(c.Problem),
	}
	jobs, err := s.store.ClusterJobs(ctx, c.ID, 1)
	if err == nil && len(jobs) > 0 {
		j := jobs[0]
		out.Total, out.Completed = j.Total, j.Done
		out.ActionStatus, out.Action = orNull(string(j.State)), orNull(j.Action)
	}
	return out, err
}

func (s *server) deleteCluster(ctx context.Context, a oneCluster) (cluster.Written, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return cluster.Written{}, err
	}
	if err := manifest.CheckName(a.Name); err != nil {
		return cluster.Written{}, invalid("%v", err)
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return cluster.Written{}, err
	}
	return clusters.Delete(ctx, e, a.Name)
}

func (s *server) rollBackCluster(ctx context.Context, a oneCluster) (changedCluster, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return changedCluster{}, err
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return changedCluster{}, err
	}
	p, written, err := clusters.RollBack(ctx, e, a.Name)
	if err != nil {
		return changedCluster{}, err
	}
	return changedOf(a.Name, p, written), nil
}

func (s *server) pauseCluster(ctx context.Context, a oneCluster) error {
	return s.operate(ctx, a, func(c *cluster.Service, e intent.Environment) error {
		return c.Pause(ctx, e, a.Name,
			true)
	})
}

func (s *server) resumeCluster(ctx context.Context, a oneCluster) error {
	return s.operate(ctx, a, func(c *cluster.Service, e intent.Environment) error {
		return c.Pause(ctx, e, a.Name,
			false)
	})
}

func (s *server) abortCluster(ctx context.Context, a oneCluster) error {
	return s.operate(ctx, a, func(c *cluster.Service, e intent.Environment) error { return c.Abort(ctx, e, a.Name) })
}

func (s *server) retryCluster(ctx context.Context, a oneCluster) error {
	return s.operate(ctx, a, func(c *cluster.Service, e intent.Environment) error { return c.Retry(ctx, e, a.Name) })
}

func (s *server) operate(
	ctx context.Context, a oneCluster, do func(*cluster.Service, intent.Environment) error,
) error {
	clusters, err := s.clusterService()
	if err != nil {
		return err
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return err
	}
	return do(clusters, e)
}
