package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
)

// clusterView is a cluster in a list. What it is made of is what is wanted, or was reached last when it is to be
// deleted.
type clusterView struct {
	Name          string     `json:"name"`
	Number        *int64     `json:"number"` // null: it was not deployed yet
	State         string     `json:"state"`
	Template      string     `json:"template"`
	Size          int        `json:"size"`
	Provider      string     `json:"provider"`
	Services      []string   `json:"services"`
	Description   string     `json:"description"`
	Owner         string     `json:"owner"`
	Made          *timestamp `json:"made"`
	Ended         *timestamp `json:"ended"`
	Expires       *timestamp `json:"expires"` // null: never
	Paused        bool       `json:"paused"`
	Deleting      bool       `json:"deleting"` // its end is wanted
	Problem       *string    `json:"problem"`
	WantedCommit  *string    `json:"wanted_commit"`
	AppliedCommit *string    `json:"applied_commit"`
}

// clusterDetails is a cluster.
type clusterDetails struct {
	clusterView
	Nodes   []clusterNode      `json:"nodes"`
	Wanted  *manifest.Manifest `json:"wanted"`  // what was released last; null: the end of the cluster
	Applied *manifest.Manifest `json:"applied"` // what was reached in full last
	Job     *clusterJob        `json:"job"`     // the newest
}

func viewOf(m *manifest.Manifest) clusterView {
	return clusterView{
		Template: m.Template, Size: m.Size, Provider: m.Provider, Services: notNil(m.Services),
		Description: m.Description,
	}
}

func clusterOf(c intent.Cluster) (view clusterView, wanted, applied *manifest.Manifest, err error) {
	if wanted, err = manifestOf(c.Wanted); err != nil {
		return view, nil, nil, err
	}
	if applied, err = manifestOf(c.Applied); err != nil {
		return view, nil, nil, err
	}
	view = clusterView{Services: []string{}}
	switch {
	case wanted != nil:
		view = viewOf(wanted)
	case applied != nil:
		view = viewOf(applied)
	}
	view.Name, view.Number, view.State, view.Owner = c.Name, &c.Number, string(c.State), c.Owner
	view.Made, view.Ended, view.Expires = unlessZero(c.Made), maybe(c.Ended), maybe(c.Expires)
	view.Paused, view.Deleting, view.Problem = c.Paused, c.Wanted == nil, orNull(c.Problem)
	view.WantedCommit, view.AppliedCommit = orNull(c.WantedAt), orNull(c.AppliedAt)
	return view, wanted, applied, nil
}

// manifestOf reads a manifest from the record; nil stays nil.
func manifestOf(raw json.RawMessage) (*manifest.Manifest, error) {
	if raw == nil {
		return nil, nil
	}
	m := &manifest.Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("a manifest in the record cannot be read: %w", err)
	}
	return cleanManifest(m), nil
}

// cleanManifest returns a manifest whose lists are lists when they are empty.
func cleanManifest(m *manifest.Manifest) *manifest.Manifest {
	if m == nil {
		return nil
	}
	out := *m
	out.Services = notNil(m.Services)
	out.Nodes = slices.Clone(m.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].Services = notNil(out.Nodes[i].Services)
	}
	return &out
}

// clusterNode is a machine of a cluster, or one that is to be.
type clusterNode struct {
	Number       int               `json:"number"`
	Hostname     string            `json:"hostname"`
	HardwareType string            `json:"hardwaretype"`
	ImageType    string            `json:"imagetype"`
	Provider     string            `json:"provider"`
	State        string            `json:"state"` // planned, made or gone
	Ready        bool              `json:"ready"` // it was bootstrapped
	Wanted       bool              `json:"wanted"`
	Addresses    map[string]string `json:"addresses"`
	ProviderID   *string           `json:"provider_id"`
	Services     []nodeService     `json:"services"`
	Made         *timestamp        `json:"made"`
	Gone         *timestamp        `json:"gone"`
}

// nodeService is a service on a node. Phase is how far it is: empty, installed, configured, initialized or started.
type nodeService struct {
	Name   string `json:"name"`
	Phase  string `json:"phase"`
	Wanted bool   `json:"wanted"`
}

// nodesOf shows the nodes of a cluster: those that are recorded, and those that a manifest wants besides.
func nodesOf(nodes []intent.ClusterNode, wanted *manifest.Manifest) ([]clusterNode, error) {
	want := map[int]manifest.Node{}
	provider := ""
	if wanted != nil {
		provider = wanted.Provider
		for _, n := range wanted.Nodes {
			want[n.Number] = n
		}
	}
	out := []clusterNode{}
	for _, n := range nodes {
		view, err := nodeOf(n)
		if err != nil {
			return nil, err
		}
		w, is := want[n.Number]
		delete(want, n.Number)
		view.Wanted = is
		view.wants(w.Services)
		out = append(out, view)
	}
	for _, n := range want {
		view := clusterNode{
			Number: n.Number, Hostname: n.Hostname, HardwareType: n.HardwareType, ImageType: n.ImageType,
			Provider: provider, State: string(intent.NodePlanned), Wanted: true, Addresses: map[string]string{},
			Services: []nodeService{},
		}
		view.wants(n.Services)
		out = append(out, view)
	}
	slices.SortFunc(out, func(a, b clusterNode) int { return a.Number - b.Number })
	return out, nil
}

func nodeOf(n intent.ClusterNode) (clusterNode, error) {
	out := clusterNode{
		Number: n.Number, Hostname: n.Hostname, HardwareType: n.Hardware, ImageType: n.Image, Provider: n.Provider,
		State: string(n.State), Ready: n.Ready, Addresses: map[string]string{}, Services: []nodeService{},
		Made: maybe(n.Made), Gone: maybe(n.Gone),
	}
	services := map[string]plan.Service{}
	if err := json.Unmarshal(n.Services, &services); err != nil {
		return out, fmt.Errorf("the services of node %d cannot be read: %w", n.Number, err)
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		out.Services = append(out.Services, nodeService{Name: name, Phase: string(services[name].Phase)})
	}
	var facts map[string]json.RawMessage
	if len(n.Facts) > 0 {
		if err := json.Unmarshal(n.Facts, &facts); err != nil {
			return out, fmt.Errorf("the facts of node %d cannot be read: %w", n.Number, err)
		}
	}
	// Facts are what plug-ins returned: what is of another shape is left out.
	var addresses map[string]string
	if json.Unmarshal(facts["addresses"], &addresses) == nil && addresses != nil {
		out.Addresses = addresses
	}
	var id string
	if json.Unmarshal(facts["providerid"], &id) == nil {
		out.ProviderID = orNull(id)
	}
	return out, nil
}

// wants marks the services that are wanted on a node.
func (n *clusterNode) wants(services []string) {
	for _, name := range services {
		i, found := slices.BinarySearchFunc(n.Services, name, func(s nodeService, name string) int {
			return strings.Compare(s.Name, name)
		})
		if !found {
			n.Services = slices.Insert(n.Services, i, nodeService{Name: name})
		}
		n.Services[i].Wanted = true
	}
}

// clusterServiceView is a service of a cluster. Phases counts its nodes by how far they are; "absent" are those on
// which it is not installed yet.
type clusterServiceView struct {
	Name     string         `json:"name"`
	Wanted   bool           `json:"wanted"`
	Stopped  bool           `json:"stopped"` // it is not to run
	Restarts int            `json:"restarts"`
	Nodes    []int          `json:"nodes"`
	Phases   map[string]int `json:"phases"`
}

func servicesOf(c clusterDetails) []clusterServiceView {
	all := map[string]*clusterServiceView{}
	of := func(name string) *clusterServiceView {
		if all[name] == nil {
			all[name] = &clusterServiceView{Name: name, Nodes: []int{}, Phases: map[string]int{}}
		}
		return all[name]
	}
	if c.Wanted != nil {
		for _, name := range c.Wanted.Services {
			v := of(name)
			v.Wanted, v.Stopped = true, slices.Contains(c.Wanted.Stopped, name)
			v.Restarts = c.Wanted.Restarts[name]
		}
	}
	for _, n := range c.Nodes {
		for _, s := range n.Services {
			v := of(s.Name)
			v.Nodes = append(v.Nodes, n.Number)
			phase := s.Phase
			if phase == string(plan.Absent) {
				phase = "absent"
			}
			v.Phases[phase]++
		}
	}
	out := []clusterServiceView{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[name])
	}
	return out
}

// clusterFileView is the file of a cluster at the tip of the branch. A change that names its digest is refused when the
// file is another one by then.
type clusterFileView struct {
	Path     string             `json:"path"`
	Commit   string             `json:"commit"`
	Digest   string             `json:"digest"`
	Text     string             `json:"text"`
	Manifest *manifest.Manifest `json:"manifest"`
}

// clusterStatus has the fields of Coopr, and some more.
type clusterStatus struct {
	ID           int64   `json:"clusterid"`
	Total        int     `json:"stepstotal"`
	Completed    int     `json:"stepscompleted"`
	Status       string  `json:"status"`
	ActionStatus *string `json:"actionstatus"` // null: there was no job yet
	Action       *string `json:"action"`
	Paused       bool    `json:"paused"`
	Retry        bool    `json:"retry"` // another job was asked for, and has not begun
	Problem      *string `json:"problem"`
}

// clusterPlan is what would be done, or will be. Text tells it to people. Tasks are left out of the answers of changes:
// the calls that plan have them.
type clusterPlan struct {
	Action    string      `json:"action"` // create, change, delete or nothing
	Makes     []string    `json:"makes"`
	Deletes   []string    `json:"deletes"`
	Stages    int         `json:"stages"`
	TaskCount int         `json:"task_count"`
	Text      string      `json:"text"`
	Tasks     []plan.Task `json:"tasks,omitempty"`
}

func planOf(p cluster.Preview, tasks bool) clusterPlan {
	out := clusterPlan{
		Action: p.Action, Makes: notNil(p.Makes), Deletes: notNil(p.Deletes), Stages: p.Stages, TaskCount: len(p.Tasks),
		Text: p.String(),
	}
	if tasks {
		out.Tasks = p.Tasks
	}
	return out
}

// plannedCluster is a proposal: nothing was committed.
type plannedCluster struct {
	Manifest *manifest.Manifest `json:"manifest"`
	File     string             `json:"file"`
	Base     string             `json:"base"` // commit that it was made from
	Plan     clusterPlan        `json:"plan"`
}

func plannedOf(p *cluster.Proposal) plannedCluster {
	return plannedCluster{
		Manifest: cleanManifest(p.Manifest), File: string(p.File), Base: p.Base, Plan: planOf(p.Plan, true),
	}
}

// changedCluster is a change that was committed. With a pull request, it is deployed after that was merged.
type changedCluster struct {
	Cluster string `json:"cluster"`
	cluster.Written
	Manifest *manifest.Manifest `json:"manifest"`
	Plan     clusterPlan        `json:"plan"`
}

func changedOf(name string, p *cluster.Proposal, w cluster.Written) changedCluster {
	return changedCluster{Cluster: name, Written: w, Manifest: cleanManifest(p.Manifest), Plan: planOf(p.Plan, false)}
}

func listWords(all []string) string { return strings.Join(all, ", ") }
