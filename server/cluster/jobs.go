package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
)

// planned is a plan, and what it was made from.
type planned struct {
	plan.Plan
	goal  *Definition // nil: the cluster ends
	nodes []intent.ClusterNode
}

// planFor returns what leads from the nodes there are to a manifest; nil: to none. prior is the manifest that the
// cluster had; it defines the services that go.
func (s *Service) planFor(
	ctx context.Context, project uuid.UUID, nodes []intent.ClusterNode, goal, prior *manifest.Manifest,
) (*planned, error) {
	out := &planned{nodes: nodes}
	want := plan.Want{Services: map[string]*catalogue.Service{}}
	if prior != nil {
		// The services of the past matter only to remove them; that they may be gone from the catalogue does not.
		if d, err := Define(ctx, s.c.Catalogues, project, prior); err == nil {
			maps.Copy(want.Services, pick(d.Catalogue.Services, prior.Services))
		}
	}
	if goal != nil {
		d, err := Define(ctx, s.c.Catalogues, project, goal)
		if err != nil {
			return nil, err
		}
		out.goal = d
		maps.Copy(want.Services, pick(d.Catalogue.Services, goal.Services))
		want.Stopped = map[string]bool{}
		for _, service := range goal.Stopped {
			want.Stopped[service] = true
		}
		digests := map[string]string{}
		for _, service := range goal.Services {
			digests[service] = d.digest(service)
		}
		for _, n := range goal.Nodes {
			want.Nodes = append(want.Nodes, plan.Wants{Number: n.Number, Services: n.Services, Config: digests})
		}
		if err := sameMachines(nodes, goal, d.ProviderName()); err != nil {
			return nil, err
		}
	}
	have, err := hasOf(nodes, want.Services)
	if err != nil {
		return nil, err
	}
	if out.Plan, err = plan.Make(have, want); err != nil {
		return nil, fault.Wrap("cluster.plan", fault.Invalid, err)
	}
	return out, nil
}

func pick(services map[string]*catalogue.Service, wanted []string) map[string]*catalogue.Service {
	out := map[string]*catalogue.Service{}
	for _, name := range wanted {
		if services[name] != nil {
			out[name] = services[name]
		}
	}
	return out
}

// hasOf reads nodes from the record. Services that nothing defines any more get a definition without actions, so that
// they can be forgotten.
func hasOf(nodes []intent.ClusterNode, services map[string]*catalogue.Service) ([]plan.Has, error) {
	var out []plan.Has
	for _, n := range nodes {
		if n.State == intent.NodeGone {
			continue
		}
		h := plan.Has{
			Number: n.Number, Made: n.State == intent.NodeMade, Ready: n.Ready, Automators: n.Automators,
			Services: map[string]plan.Service{},
		}
		if err := json.Unmarshal(n.Services, &h.Services); err != nil {
			return nil, fmt.Errorf("the services of node %d cannot be read: %w", n.Number, err)
		}
		for name := range h.Services {
			if services[name] == nil {
				services[name] = &catalogue.Service{Head: catalogue.Head{Name: name}}
			}
		}
		out = append(out, h)
	}
	return out, nil
}

// sameMachines refuses what cannot be done to a machine that exists.
func sameMachines(nodes []intent.ClusterNode, goal *manifest.Manifest, provider string) error {
	wanted := map[int]manifest.Node{}
	for _, g := range goal.Nodes {
		wanted[g.Number] = g
	}
	for _, n := range nodes {
		g, has := wanted[n.Number]
		switch {
		case n.State == intent.NodeGone && has:
			return invalid("node %d was deleted, and numbers are not used again; give the new node another "+
				"one", n.Number)
		case n.State != intent.NodeMade:
		case n.Provider != provider:
			return invalid("node %d is at the provider %s, and cannot move to %s; make another cluster there", n.Number,
				n.Provider, provider)
		case has && (n.Hardware != g.HardwareType || n.Image != g.ImageType):
			return invalid("node %d was made as %s with %s, and cannot become %s with %s; replace it: give the new "+
				"node another number", n.Number, n.Hardware, n.Image, g.HardwareType, g.ImageType)
		case has && n.Hostname != g.Hostname:
			return invalid("node %d is called %s, and cannot be renamed to %s", n.Number, n.Hostname, g.Hostname)
		}
	}
	return nil
}

// start records a job for a plan.
func (s *Service) start(
	ctx context.Context, e intent.Environment, c intent.Cluster, p *planned, wanted, prior *manifest.Manifest,
) error {
	j := intent.ClusterJob{
		ID:      uuid.New(),
		Cluster: c.ID,
		Action:  actionOf(c, wanted),
		At:      c.WantedAt,
		MadeBy:  c.Owner,
	}
	j.Goal = c.Wanted // as it is recorded: whether a job for it failed is told by comparing them
	var err error
	if j.Prior, err = encodeManifest(prior); err != nil {
		return err
	}
	providers := map[int]string{}
	for _, n := range p.nodes {
		providers[n.Number] = n.Provider
	}
	var nodes []intent.ClusterNode
	if wanted != nil {
		for _, n := range wanted.Nodes {
			nodes = append(nodes, intent.ClusterNode{
				Cluster: c.ID, Number: n.Number, Hostname: n.Hostname, Hardware: n.HardwareType, Image: n.ImageType,
				Provider: p.goal.ProviderName(),
			})
			if providers[n.Number] == "" {
				providers[n.Number] = p.goal.ProviderName()
			}
		}
	}
	tasks := make([]intent.ClusterTask, 0, len(p.Tasks))
	for _, t := range p.Tasks {
		needs := make([]int32, len(t.Needs))
		for i, n := range t.Needs {
			needs[i] = int32(n)
		}
		tasks = append(tasks, intent.ClusterTask{
			ID: uuid.New(), Number: t.Number, Project: e.ProjectID, Node: t.Node, Service: t.Service,
			Action:   string(t.Action),
			Provider: providers[t.Node], Needs: needs, After: t.After, Config: t.Config,
		})
	}
	number, err := s.c.Store.StartClusterJob(ctx, c.Environment, j, nodes, tasks)
	if err != nil {
		return err
	}
	s.c.Logger.Info("a cluster changes", "environment", e.Name, "cluster", c.Name, "job", number, "action", j.Action,
		"tasks", len(tasks), "makes", len(p.Makes), "deletes", len(p.Deletes))
	s.publish(c)
	return nil
}

// Actions of jobs.
const (
	ActionCreate = "create"
	ActionChange = "change"
	ActionDelete = "delete"
)

func actionOf(c intent.Cluster, wanted *manifest.Manifest) string {
	switch {
	case wanted == nil:
		return ActionDelete
	case c.Applied == nil:
		return ActionCreate
	}
	return ActionChange
}
