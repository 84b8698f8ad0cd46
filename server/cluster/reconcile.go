package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Start begins to reconcile.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(context.WithoutCancel(ctx), func(context.Context) (func(context.Context), error) {
		return s.run, nil
	})
}

// Stop ends it, and waits until nothing runs any more.
func (s *Service) Stop() { s.running.Stop() }

// Wake makes the owner of an environment look at its clusters soon.
func (s *Service) Wake(env intent.EnvironmentID) {
	s.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Cluster})
}

// run reconciles environments one after another: those for which an event came, and at each sweep all where something
// may have to be done.
func (s *Service) run(ctx context.Context) {
	events := s.c.Bus.Subscribe(func(e bus.Event) bool {
		return e.Topic == bus.Cluster || e.Topic == bus.Version || e.Topic == bus.Lagged
	})
	defer events.Close()
	ticker := time.NewTicker(s.c.Sweep)
	defer ticker.Stop()
	s.sweep(ctx)
	wait := gatherTime
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.sweep(ctx)
		case e := <-events.Events():
			if e.Topic == bus.Lagged {
				s.sweep(ctx)
				continue
			}
			found := s.gather(ctx, e, events.Events(), wait)
			began := time.Now()
			s.reconcileAll(ctx, found)
			wait = min(max(gatherShare*time.Since(began), gatherTime), gatherMost)
		}
	}
}

// Events are gathered, for tasks end in bursts: for gatherTime at least. Where much goes on it is longer, so that this
// takes a fifth of the time at most: looking for what comes next must not slow down the tasks that lead to it.
const (
	gatherTime  = 50 * time.Millisecond
	gatherShare = 4
	gatherMost  = time.Second
)

// gather returns the environments of an event and of those that come right after it.
func (s *Service) gather(
	ctx context.Context, first bus.Event, more <-chan bus.Event, wait time.Duration,
) []intent.EnvironmentID {
	found := map[intent.EnvironmentID]bool{first.Environment: true}
	burst := time.NewTimer(wait)
	defer burst.Stop()
	for {
		select {
		case e := <-more:
			found[e.Environment] = true
		case <-burst.C:
			return slices.Collect(maps.Keys(found))
		case <-ctx.Done():
			return nil
		}
	}
}

// How much of the past is kept: jobs of each cluster, and clusters that ended.
const (
	keptJobs   = 100
	keptEnded  = 90 * 24 * time.Hour
	tidyPeriod = time.Hour
)

func (s *Service) sweep(ctx context.Context) {
	if now := time.Now(); now.After(s.tidied.Add(tidyPeriod)) {
		s.tidied = now
		if err := s.c.Store.TidyClusters(ctx, keptJobs, now.Add(-keptEnded)); err != nil && ctx.Err() == nil {
			s.c.Logger.Warn("cannot forget old jobs of clusters", "error", err)
		}
	}
	busy, err := s.c.Store.BusyClusters(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.c.Logger.Warn("cannot look for clusters that are not as wanted", "error", err)
		}
		return
	}
	s.reconcileAll(ctx, busy)
}

func (s *Service) reconcileAll(ctx context.Context, all []intent.EnvironmentID) {
	for _, env := range all {
		if ctx.Err() != nil || !s.c.Owns(env) {
			continue
		}
		if err := s.Reconcile(ctx, env); err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
			s.c.Logger.Warn("cannot reconcile the clusters of an environment; will try again", "environment", env,
				"error", err)
		}
	}
}

// Reconcile compares what is released with what exists, as the owner of the environment, and begins what has to be
// done.
func (s *Service) Reconcile(ctx context.Context, env intent.EnvironmentID) error {
	released, err := s.c.Store.ActiveClusters(ctx, env)
	if err != nil {
		return err
	}
	all, err := s.c.Store.Clusters(ctx, env, false)
	if err != nil || released == nil && len(all) == 0 {
		return err
	}
	e, err := s.c.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	var held map[uuid.UUID]bool
	if released != nil {
		if all, held, err = s.want(ctx, e, released.Manifests, released.Commit, all); err != nil {
			return err
		}
	}
	for _, c := range all {
		if held[c.ID] {
			continue
		}
		if err := s.advance(ctx, e, c); err != nil {
			if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				return err
			}
			if note := s.c.Store.NoteClusterProblem(ctx, c.ID, err.Error()); note != nil {
				return note
			}
		}
	}
	return nil
}

// want records what the active version wants of each cluster, and returns the clusters as they are then. held are those
// whose end has to be confirmed.
func (s *Service) want(
	ctx context.Context, e intent.Environment, manifests json.RawMessage, commit string, all []intent.Cluster,
) (now []intent.Cluster, held map[uuid.UUID]bool, err error) {
	wanted := map[string]json.RawMessage{}
	if err := json.Unmarshal(manifests, &wanted); err != nil {
		return nil, nil, fault.Wrap("cluster.want", fault.Internal, err)
	}
	changed := false
	held = map[uuid.UUID]bool{}
	known := map[string]bool{}
	sudden := suddenEnd(all, wanted)
	for _, c := range all {
		known[c.Name] = true
		raw := wanted[c.Name]
		if raw == nil && c.Wanted != nil && sudden && !c.MayDelete {
			if err := s.c.Store.NoteClusterProblem(ctx, c.ID, "Its file is gone from Git, as are those of most "+
				"clusters of "+
				"the environment. If that is meant, confirm it with ordain cluster delete; else restore the "+
				"files."); err != nil {
				return nil, nil, err
			}
			held[c.ID] = true
			continue
		}
		if sameJSON(raw, c.Wanted) {
			continue
		}
		m, err := decodeManifest(raw)
		if err != nil {
			return nil, nil, fault.Wrap("cluster.want", fault.Internal, err)
		}
		next := intent.Cluster{ID: c.ID, Environment: e.ID, Wanted: raw, WantedAt: commit, Expires: c.Expires}
		if m != nil {
			next.Expires = m.Expires
		}
		if err := s.c.Store.WantCluster(ctx, next); err != nil {
			return nil, nil, err
		}
		changed = true
		s.publish(c)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if known[name] {
			continue
		}
		m, err := decodeManifest(wanted[name])
		if err != nil {
			return nil, nil, fault.Wrap("cluster.want", fault.Internal, err)
		}
		if err := s.c.Store.AddCluster(ctx, intent.Cluster{
			ID: uuid.New(), Environment: e.ID, Name: name, Owner: m.Owner, Wanted: wanted[name], WantedAt: commit,
			Expires: m.Expires,
		}); err != nil {
			return nil, nil, err
		}
		changed = true
	}
	if !changed {
		return all, held, nil
	}
	now, err = s.c.Store.Clusters(ctx, e.ID, false)
	return now, held, err
}

// suddenEnd reports whether a version lacks all clusters of an environment, or most of several: as when a wrong branch
// was merged. They are deleted only if a person asks for it by name.
func suddenEnd(all []intent.Cluster, wanted map[string]json.RawMessage) bool {
	live, gone := 0, 0
	for _, c := range all {
		if c.Wanted == nil || c.MayDelete {
			continue
		}
		live++
		if wanted[c.Name] == nil {
			gone++
		}
	}
	return gone > 0 && (gone == live || gone > 1 && 2*gone > live)
}

// sameJSON compares values as the record has them: jsonb, in one form.
func sameJSON(a, b json.RawMessage) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	return string(a) == string(b)
}

// advance ends the job of a cluster if it is over, and begins the next one if there is something to do.
func (s *Service) advance(ctx context.Context, e intent.Environment, c intent.Cluster) error {
	last, open, err := s.c.Store.LastClusterJob(ctx, c.ID)
	if err != nil || last != nil && last.State == intent.JobRunning && open {
		return err
	}
	if last != nil && last.State == intent.JobRunning {
		if over, err := s.finish(ctx, e, &c, last); err != nil || !over {
			return err
		}
	}
	over, err := s.keepLease(ctx, e, c)
	if err != nil && ctx.Err() == nil { // the other clusters do not wait for Git
		return s.c.Store.NoteClusterProblem(ctx, c.ID, err.Error())
	}
	if over || err != nil {
		return err
	}
	if c.Paused || c.State == intent.ClusterTerminated || last != nil && !c.Retry && triedAlready(*last, c) {
		return nil
	}
	return s.next(ctx, e, c, last)
}

// triedAlready reports whether a job for what is wanted failed, or was ended. Then a person decides.
func triedAlready(last intent.ClusterJob, c intent.Cluster) bool {
	return (last.State == intent.JobFailed || last.State == intent.JobAborted) && sameJSON(last.Goal, c.Wanted)
}

// next begins a job, or records that there is nothing to do.
func (s *Service) next(ctx context.Context, e intent.Environment, c intent.Cluster, last *intent.ClusterJob) error {
	wanted, err := decodeManifest(c.Wanted)
	if err != nil {
		return err
	}
	prior, err := priorOf(c, last)
	if err != nil {
		return err
	}
	nodes, err := s.c.Store.ClusterNodes(ctx, true, c.ID)
	if err != nil {
		return err
	}
	p, err := s.planFor(ctx, e.ProjectID, nodes, wanted, prior)
	if err != nil {
		return err
	}
	if len(p.Tasks) > 0 {
		if err := s.quotaFor(ctx, e, p, c); err != nil {
			return err
		}
		return s.start(ctx, e, c, p, wanted, prior)
	}
	was := c
	c.State, c.Problem = intent.ClusterActive, ""
	c.Applied, c.AppliedAt = c.Wanted, c.WantedAt
	if wanted == nil {
		c.State, c.Applied = intent.ClusterTerminated, nil
	}
	if was.State == c.State && was.Problem == "" && sameJSON(was.Applied, c.Applied) && !was.Retry {
		return nil
	}
	if err := s.c.Store.SettleCluster(ctx, c, true); err != nil {
		return err
	}
	s.publish(c)
	s.changed(c, "the cluster "+c.Name+" has another definition")
	return nil
}

// quotaFor checks the quota again before machines are made: a file may have been edited by hand.
func (s *Service) quotaFor(ctx context.Context, e intent.Environment, p *planned, c intent.Cluster) error {
	grow := 0
	for _, number := range p.Makes {
		if !slices.ContainsFunc(p.nodes, func(n intent.ClusterNode) bool {
			return n.Number == number && n.State != intent.NodeGone
		}) {
			grow++
		}
	}
	if grow == 0 {
		return nil
	}
	use, err := s.c.Store.ClusterUseOf(ctx, e.ProjectID)
	if err != nil {
		return err
	}
	if use.MaxClusters != nil && use.Clusters > *use.MaxClusters { // this cluster is among them
		return fault.New("cluster.quota", fault.Conflict, fmt.Sprintf("nothing is made: the project has %d "+
			"clusters, and may "+
			"have %d", use.Clusters, *use.MaxClusters)).
			Hint("delete a cluster, or ask an administrator for more")
	}
	return s.quota(ctx, e, 0, grow)
}

// priorOf returns a manifest with all services that nodes of a cluster may have: those of the newest job's goal, and of
// what it began with.
func priorOf(c intent.Cluster, last *intent.ClusterJob) (*manifest.Manifest, error) {
	applied, err := decodeManifest(c.Applied)
	if err != nil || last == nil {
		return applied, err
	}
	goal, err := decodeManifest(last.Goal)
	if err != nil {
		return nil, err
	}
	before, err := decodeManifest(last.Prior)
	if err != nil || goal == nil {
		return before, err
	}
	if before == nil {
		return goal, nil
	}
	for _, name := range before.Services {
		if !slices.Contains(goal.Services, name) {
			goal.Services = append(goal.Services, name)
		}
	}
	for kind, pins := range before.Catalogue {
		if goal.Catalogue[kind] == nil {
			goal.Catalogue[kind] = map[string]int{}
		}
		for name, version := range pins {
			if _, newer := goal.Catalogue[kind][name]; !newer {
				goal.Catalogue[kind][name] = version
			}
		}
	}
	return goal, nil
}

// finish records the end of a job whose tasks are all at their end; over says whether it is. The cluster is updated.
func (s *Service) finish(
	ctx context.Context, e intent.Environment, c *intent.Cluster, j *intent.ClusterJob,
) (over bool, err error) {
	open, err := s.c.Store.ClusterJobOpen(ctx, j.ID)
	if err != nil || open.Running > 0 || open.Waiting > 0 {
		return false, err
	}
	reached := open.Failed == 0 && open.Dropped == 0
	if reached {
		j.State = intent.JobComplete
		c.State, c.Problem = intent.ClusterActive, ""
		c.Applied, c.AppliedAt = j.Goal, j.At
		if j.Goal == nil {
			c.State = intent.ClusterTerminated
		}
	} else {
		j.State, j.Problem = intent.JobFailed, open.Problem
		c.State = failedState(*c, *j)
		c.Problem = fmt.Sprintf("Job %d failed: %s", j.Number, open.Problem)
	}
	if err := s.c.Store.EndClusterJob(ctx, *j, *c, reached); err != nil {
		return false, err
	}
	c.Retry = false
	s.c.Logger.Info(
		"a job of a cluster ended",
		"environment",
		e.Name,
		"cluster",
		c.Name,
		"job",
		j.Number,
		"state",
		j.State,
	)
	s.publish(*c)
	s.changed(*c, fmt.Sprintf("job %d of the cluster %s ended", j.Number, c.Name))
	if reached {
		return true, nil
	}
	return true, s.notify(ctx, e, intent.SeverityError, "A change of the cluster "+c.Name+" failed", c.Problem, *c)
}

// failedState is what a cluster is after a job that did not reach its goal.
func failedState(c intent.Cluster, j intent.ClusterJob) intent.ClusterState {
	if c.Applied == nil || j.Goal == nil {
		return intent.ClusterIncomplete
	}
	return intent.ClusterInconsistent
}
