package desk

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/store"
)

// job is what all tasks of a job have in common. It is not changed once it is made.
type job struct {
	cluster     intent.Cluster
	environment intent.Environment
	goal, prior *cluster.Definition // nil: none
}

// definition returns where something about a node is defined: in the goal if it has the node, else in what was before.
func (j *job) definition(node int) (*cluster.Definition, *manifest.Node) {
	for _, d := range []*cluster.Definition{j.goal, j.prior} {
		if d == nil {
			continue
		}
		for i := range d.Manifest.Nodes {
			if d.Manifest.Nodes[i].Number == node {
				return d, &d.Manifest.Nodes[i]
			}
		}
	}
	if j.goal != nil {
		return j.goal, nil
	}
	return j.prior, nil
}

// maxJobs is how many jobs are remembered.
const maxJobs = 256

// definitions remembers jobs, to which environment clusters and tasks belong, and to which project environments do.
type definitions struct {
	catalogues cluster.Catalogues

	mu       sync.Mutex
	jobs     map[uuid.UUID]*job
	clusters map[uuid.UUID]intent.EnvironmentID
	tasks    map[uuid.UUID]uuid.UUID // cluster by task
	projects map[intent.EnvironmentID]intent.ProjectID
}

// of returns what the tasks of a job have in common.
func (d *definitions) of(ctx context.Context, s *store.Store, id uuid.UUID) (*job, error) {
	d.mu.Lock()
	known := d.jobs[id]
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	j, err := d.read(ctx, s, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs == nil || len(d.jobs) >= maxJobs {
		d.jobs, d.clusters = map[uuid.UUID]*job{}, map[uuid.UUID]intent.EnvironmentID{}
	}
	d.jobs[id] = j
	d.clusters[j.cluster.ID] = j.environment.ID
	return j, nil
}

func (d *definitions) read(ctx context.Context, s *store.Store, id uuid.UUID) (*job, error) {
	row, err := s.ClusterJobByID(ctx, id)
	if err != nil {
		return nil, err
	}
	j := &job{}
	if j.cluster, err = s.ClusterByID(ctx, row.Cluster); err != nil {
		return nil, err
	}
	if j.environment, err = s.Environment(ctx, j.cluster.Environment); err != nil {
		return nil, err
	}
	if j.goal, err = d.define(ctx, j.environment, row.Goal); err != nil {
		return nil, err
	}
	j.prior, err = d.define(ctx, j.environment, row.Prior)
	if err != nil && j.goal != nil {
		err = nil // what is gone from the catalogue matters only if a task needs it
	}
	return j, err
}

func (d *definitions) define(
	ctx context.Context, e intent.Environment, raw json.RawMessage,
) (*cluster.Definition, error) {
	if raw == nil {
		return nil, nil
	}
	m := &manifest.Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	return cluster.Define(ctx, d.catalogues, e.ProjectID, m)
}

// note remembers to which cluster a task belongs.
func (d *definitions) note(t intent.ClusterTask) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tasks == nil || len(d.tasks) > 100_000 {
		d.tasks = map[uuid.UUID]uuid.UUID{}
	}
	d.tasks[t.ID] = t.Cluster
}

// environment returns the environment of a cluster; zero: it cannot be read now.
func (d *definitions) environment(ctx context.Context, s *store.Store, cluster uuid.UUID) intent.EnvironmentID {
	d.mu.Lock()
	env, known := d.clusters[cluster]
	d.mu.Unlock()
	if known {
		return env
	}
	c, err := s.ClusterByID(ctx, cluster)
	if err != nil {
		return intent.EnvironmentID{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clusters == nil {
		d.clusters = map[uuid.UUID]intent.EnvironmentID{}
	}
	d.clusters[cluster] = c.Environment
	return c.Environment
}

// project returns the project of an environment; zero: it cannot be read now.
func (d *definitions) project(ctx context.Context, s *store.Store, env intent.EnvironmentID) intent.ProjectID {
	d.mu.Lock()
	known, has := d.projects[env]
	d.mu.Unlock()
	if has {
		return known
	}
	e, err := s.Environment(ctx, env)
	if err != nil {
		return intent.ProjectID{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.projects == nil || len(d.projects) > 100_000 {
		d.projects = map[intent.EnvironmentID]intent.ProjectID{}
	}
	d.projects[env] = e.ProjectID
	return e.ProjectID
}

// clusterOf returns the cluster of a task that was noted.
func (d *definitions) clusterOf(id uuid.UUID) uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tasks[id]
}
