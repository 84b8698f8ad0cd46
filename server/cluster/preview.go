package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
)

// Preview is what would be done to a cluster.
type Preview struct {
	Cluster string      `json:"cluster"`
	Action  string      `json:"action"` // create, change, delete, nothing
	Makes   []string    `json:"makes,omitempty"`
	Deletes []string    `json:"deletes,omitempty"` // host names
	Stages  int         `json:"stages"`
	Tasks   []plan.Task `json:"tasks,omitempty"`
	Problem string      `json:"problem,omitempty"` // why it cannot be done
}

// Nothing is the action of a preview without tasks.
const Nothing = "nothing"

// preview plans what leads to a manifest; nil: to the end of the cluster. A cluster without an id does not exist yet.
func (s *Service) preview(
	ctx context.Context, e intent.Environment, c intent.Cluster, goal, prior *manifest.Manifest,
) (Preview, error) {
	out := Preview{Action: Nothing, Cluster: c.Name}
	if goal != nil {
		out.Cluster = goal.Name
	}
	nodes, err := s.c.Store.ClusterNodes(ctx, true, c.ID)
	if err != nil {
		return out, err
	}
	p, err := s.planFor(ctx, e.ProjectID, nodes, goal, prior)
	if err != nil {
		return out, err
	}
	if len(p.Tasks) > 0 {
		out.Action = actionOf(c, goal)
	}
	hosts := map[int]string{}
	for _, n := range nodes {
		hosts[n.Number] = n.Hostname
	}
	if goal != nil {
		for _, n := range goal.Nodes {
			hosts[n.Number] = n.Hostname
		}
	}
	for _, number := range p.Makes {
		out.Makes = append(out.Makes, hosts[number])
	}
	for _, number := range p.Deletes {
		out.Deletes = append(out.Deletes, hosts[number])
	}
	out.Stages, out.Tasks = p.Stages, p.Tasks
	return out, nil
}

// PreviewVersion plans what releasing the manifests of a version would do, for each cluster that it would change.
func (s *Service) PreviewVersion(
	ctx context.Context, e intent.Environment, manifests json.RawMessage,
) ([]Preview, error) {
	if manifests == nil {
		return nil, nil
	}
	wanted := map[string]json.RawMessage{}
	if err := json.Unmarshal(manifests, &wanted); err != nil {
		return nil, fault.Wrap("cluster.PreviewVersion", fault.Internal, err)
	}
	all, err := s.c.Store.Clusters(ctx, e.ID, false)
	if err != nil {
		return nil, err
	}
	known := map[string]intent.Cluster{}
	for _, c := range all {
		known[c.Name] = c
		if wanted[c.Name] == nil {
			wanted[c.Name] = nil
		}
	}
	var out []Preview
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		c := known[name]
		c.Name = name
		goal, err := decodeManifest(wanted[name])
		if err != nil {
			return nil, err
		}
		prior, err := decodeManifest(c.Wanted)
		if err != nil {
			return nil, err
		}
		p, err := s.preview(ctx, e, c, goal, prior)
		if err != nil {
			if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				return nil, err
			}
			p.Problem = err.Error()
		}
		if p.Action != Nothing || p.Problem != "" {
			out = append(out, p)
		}
	}
	return out, nil
}

// maxListed is how many hosts and groups a preview names.
const maxListed = 20

// String tells a preview in plain text, a line for each stage.
func (p Preview) String() string {
	var b strings.Builder
	if p.Problem != "" {
		fmt.Fprintf(&b, "%s: it cannot be done: %s\n", p.Cluster, p.Problem)
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s, %d tasks\n", p.Cluster, p.Action, len(p.Tasks))
	if len(p.Makes) > 0 {
		fmt.Fprintf(&b, "  makes %d: %s\n", len(p.Makes), shorten(p.Makes))
	}
	if len(p.Deletes) > 0 {
		fmt.Fprintf(&b, "  deletes %d: %s\n", len(p.Deletes), shorten(p.Deletes))
	}
	for i, groups := range p.stages() {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, shorten(groups))
	}
	return b.String()
}

// stages returns what each stage does, as "start web on 3 nodes".
func (p Preview) stages() [][]string {
	counts := make([]map[string]int, p.Stages)
	for _, t := range p.Tasks {
		if counts[t.Stage] == nil {
			counts[t.Stage] = map[string]int{}
		}
		counts[t.Stage][t.Group()]++
	}
	out := make([][]string, p.Stages)
	for i, groups := range counts {
		for _, g := range slices.Sorted(maps.Keys(groups)) {
			nodes := "1 node"
			if groups[g] != 1 {
				nodes = fmt.Sprintf("%d nodes", groups[g])
			}
			out[i] = append(out[i], g+" on "+nodes)
		}
	}
	return out
}

func shorten(all []string) string {
	if len(all) > maxListed {
		return strings.Join(all[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(all)-maxListed)
	}
	return strings.Join(all, ", ")
}
