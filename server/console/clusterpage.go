package console

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/store"
)

// clusterPage is one cluster, live.
type clusterPage struct {
	frame
	Head   clusterHead
	Wanted clusterWanted
	Graph  clusterGraph
	Steps  clusterSteps
	Nodes  clusterNodes
	Jobs   clusterJobs
	Change *clusterActions // nil: the reader may not change it, or it has ended
	Delete string          // address of the page that deletes it; empty: the reader may not
}

type clusterHead struct {
	Name        string
	Number      int64
	Description string
	State       state
	Paused      *state
	Problem     string
	Advice      string // what to do about the problem
	Failed      []failedTask
	Job         *clusterProgress
	Facts       []attribute
	Lease       *leaseView
	URL         string
	CanPause    bool
	CanResume   bool
	CanAbort    bool
	CanRetry    bool
	RollBack    string // address of the page that plans it; empty: there is nothing to roll back to
}

// failedTask is a task that failed, with the address of its output.
type failedTask struct {
	Text, Problem, URL string
}

// clusterWanted compares what is committed with what was reached.
type clusterWanted struct {
	Same    bool
	Gone    bool   // its file was deleted
	At      string // commit that is wanted
	Applied string // commit that was reached in full last; empty: none
	Diff    *linediff.Diff
}

type clusterNodes struct {
	Rows   []clusterNodeRow
	Pager  pager
	Change string // where forms about nodes go; empty: the reader may not change the cluster
}

type clusterNodeRow struct {
	Number    int
	Host      string
	Addresses []attribute
	Hardware  string
	Image     string
	Provider  string
	State     state
	Services  []nodeService
	Since     *time.Time
	CanChange bool
}

// nodeService is how far a service is on a node.
type nodeService struct {
	Name  string
	State state
}

type clusterJobs struct {
	Rows []clusterJobRow
	More bool
}

type clusterJobRow struct {
	Number  int
	URL     string
	Action  string
	State   state
	Done    int
	Total   int
	Failed  int
	Commit  string
	By      string
	Made    time.Time
	Took    time.Duration
	Since   *time.Time // when it began, while it runs
	Problem string
}

// clusterActions are the forms that change a cluster.
type clusterActions struct {
	URL      string // where they are planned
	Services []serviceChoice
	Expires  *time.Time
}

// serviceChoice is a service in a form.
type serviceChoice struct {
	Name    string
	Stopped bool
}

// shownJobs is how many jobs the page of a cluster lists.
const shownJobs = 20

// nodesPerPage is how many nodes a page shows.
const nodesPerPage = 25

func (c *console) clusterPage(r *http.Request) (view, error) {
	e, one, err := c.findCluster(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, one.Name, "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)}, crumb{Text: one.Name})
	if err != nil {
		return view{}, err
	}
	at := clusterURL(e.ID, r.PathValue("cluster"))
	jobs, err := c.store.ClusterJobs(r.Context(), one.ID, shownJobs)
	if err != nil {
		return view{}, err
	}
	nodes, err := c.store.ClusterNodes(r.Context(), false, one.ID)
	if err != nil {
		return view{}, err
	}
	wanted, err := readManifest(one.Wanted)
	if err != nil {
		return view{}, err
	}
	p := clusterPage{frame: f}
	if p.Head, err = c.clusterHeadOf(r, e, one, newest(jobs), at); err != nil {
		return view{}, err
	}
	if p.Wanted, err = wantedOf(one, wanted); err != nil {
		return view{}, err
	}
	if last := newest(jobs); last != nil {
		groups, err := c.stepGroups(r.Context(), last.ID)
		if err != nil {
			return view{}, err
		}
		p.Graph = graphOf(clusterJobURL(at, last.Number), *last, groups)
		if p.Steps, err = c.stepsOf(r, at, *last, groups, hostsOf(nodes, last.Goal)); err != nil {
			return view{}, err
		}
	}
	mayChange := one.Ended == nil && wanted != nil && c.needClusters() == nil && mayOn(r, access.ChangeCluster, e)
	p.Nodes = clusterNodesOf(r, nodes)
	if mayChange {
		p.Nodes.Change = at + "/change"
		p.Change = &clusterActions{URL: at + "/change", Expires: wanted.Expires}
		for _, s := range wanted.Services {
			p.Change.Services = append(p.Change.Services, serviceChoice{s, slices.Contains(wanted.Stopped, s)})
		}
	}
	if one.Ended == nil && mayOn(r, access.DeleteCluster, e) {
		p.Delete = at + "/delete"
	}
	for _, j := range jobs {
		p.Jobs.Rows = append(p.Jobs.Rows, c.clusterJobRowOf(at, j))
	}
	p.Jobs.More = len(jobs) == shownJobs
	return view{template: "clusters-one", data: p, fragments: []fragment{
		{"cluster-head", "cluster-head", p.Head}, {"cluster-wanted", "cluster-wanted", p.Wanted},
		{"cluster-graph", "cluster-graph", p.Graph}, {"cluster-steps", "cluster-steps", p.Steps},
		{"cluster-nodes", "cluster-nodes", p.Nodes}, {"cluster-jobs", "cluster-jobs", p.Jobs},
	}}, nil
}

func (c *console) clusterHeadOf(
	r *http.Request,
	e intent.Environment,
	one intent.Cluster,
	last *intent.ClusterJob,
	at string,
) (clusterHead, error) {
	h := clusterHead{
		Name: one.Name, Number: one.Number, State: clusterState(one, last), Problem: one.Problem, Lease: c.leaseOf(one),
		URL: at,
	}
	if one.Paused {
		h.Paused = &paused
	}
	if m, err := readManifest(either(one.Wanted, one.Applied)); err == nil && m != nil {
		h.Description = m.Description
		h.Facts = append(h.Facts, attribute{Name: "Template", Value: m.Template},
			attribute{Name: "Size", Value: plural(m.Size, "node")}, attribute{Name: "Provider", Value: m.Provider},
			attribute{Name: "Services", Value: joinSome(m.Services)})
	}
	h.Facts = append(h.Facts, attribute{Name: "Owner", Value: one.Owner})
	busy := last != nil && last.State == intent.JobRunning
	if busy {
		h.Job = progressOf(at, *last)
	}
	stuck := last != nil && (last.State == intent.JobFailed || last.State == intent.JobAborted) && one.Problem != ""
	if busy || stuck {
		var err error
		if h.Failed, err = c.failedTasks(r.Context(), at, *last); err != nil {
			return clusterHead{}, err
		}
		for i, t := range h.Failed {
			if t.Problem != "" && strings.Contains(one.Problem, t.Problem) { // the sentence above says it
				h.Failed[i].Problem = ""
			}
		}
	}
	h.Advice = adviceOf(one, last)
	if one.Ended != nil || c.needClusters() != nil {
		return h, nil
	}
	if mayOn(r, access.OperateCluster, e) {
		h.CanPause, h.CanResume = !one.Paused, one.Paused
		h.CanAbort, h.CanRetry = busy, stuck && !one.Retry
	}
	if stuck && one.Applied != nil && mayOn(r, access.ChangeCluster, e) {
		h.RollBack = at + "/rollback"
	}
	return h, nil
}

func either(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

// adviceOf says what to do about the state of a cluster.
func adviceOf(one intent.Cluster, last *intent.ClusterJob) string {
	switch {
	case one.Ended != nil:
		return ""
	case one.Paused:
		return "No task is handed out until somebody resumes it; what runs goes on to its end."
	case one.Retry:
		return "Another job is about to begin."
	case one.Problem == "":
		return ""
	case last == nil || last.State == intent.JobComplete:
		return "Change the cluster or its file so that this holds, or ask an administrator. It is tried again " +
			"by itself."
	case last.State == intent.JobAborted:
		return "Retry it to go on from where it was, or change the cluster. Machines that were made are still there."
	case last.State == intent.JobFailed && one.Applied != nil:
		return "Look at the output of what failed. Then retry, change the cluster, or roll it back to how it " +
			"was before."
	case last.State == intent.JobFailed:
		return "Look at the output of what failed. Then retry, change the cluster, or delete it. Machines that were " +
			"made are still there."
	}
	return ""
}

// shownFailed is how many failed tasks are named.
const shownFailed = 10

func (c *console) failedTasks(ctx context.Context, at string, j intent.ClusterJob) (out []failedTask, err error) {
	if j.Failed == 0 {
		return nil, nil
	}
	job := clusterJobURL(at, j.Number)
	chosen := store.ClusterTaskFilter{State: string(intent.TaskFailed)}
	tasks, err := c.store.ClusterTaskPage(ctx, j.ID, chosen, 0, shownFailed)
	for _, t := range tasks {
		out = append(out, failedTask{taskTitle(t), firstLine(t.Problem), clusterTaskURL(job, t.Number)})
	}
	return out, err
}

// taskTitle names a task, as "start web on node 1003".
func taskTitle(t intent.ClusterTask) string {
	return groupName(t) + " on node " + strconv.Itoa(t.Node)
}

func wantedOf(one intent.Cluster, wanted *manifest.Manifest) (clusterWanted, error) {
	w := clusterWanted{
		Same: string(
			one.Wanted,
		) == string(
			one.Applied,
		), Gone: one.Wanted == nil, At: one.WantedAt, Applied: one.AppliedAt,
	}
	if one.Applied == nil {
		w.Applied = ""
	}
	if w.Same || one.Applied == nil || wanted == nil {
		return w, nil
	}
	applied, err := readManifest(one.Applied)
	if err == nil {
		w.Diff, err = manifestDiff(applied, wanted)
	}
	return w, err
}

// hostsOf returns the names of nodes by number: those that are recorded, and those of the goal of a job.
func hostsOf(nodes []intent.ClusterNode, goal json.RawMessage) map[int]string {
	hosts := map[int]string{}
	if m, err := readManifest(goal); err == nil && m != nil {
		for _, n := range m.Nodes {
			hosts[n.Number] = n.Hostname
		}
	}
	for _, n := range nodes {
		hosts[n.Number] = n.Hostname
	}
	return hosts
}

func clusterNodesOf(r *http.Request, nodes []intent.ClusterNode) clusterNodes {
	part, pages := paged(r, "nodes", nodes, nodesPerPage)
	out := clusterNodes{Pager: pages}
	out.Pager.Of = "the nodes"
	for _, n := range part {
		row := clusterNodeRow{
			Number: n.Number, Host: n.Hostname, Addresses: addressesOf(n.Facts), Hardware: n.Hardware, Image: n.Image,
			Provider: n.Provider, State: nodeState(n), Since: n.Made,
		}
		services := map[string]plan.Service{}
		// What cannot be read is shown as no services; the planner reports it.
		if err := json.Unmarshal(n.Services, &services); err == nil {
			for _, name := range slices.Sorted(maps.Keys(services)) {
				row.Services = append(row.Services, nodeService{name, phaseState(services[name].Phase)})
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func nodeState(n intent.ClusterNode) state {
	switch {
	case n.State == intent.NodeGone:
		return state{"none", "deleted"}
	case n.State == intent.NodePlanned:
		return state{"waiting", "planned"}
	case n.Ready:
		return ready
	}
	return state{"deploying", "being made"}
}

func phaseState(p plan.Phase) state {
	switch p {
	case plan.Started:
		return state{"intended", "started"}
	case plan.Initialized:
		return state{"paused", "stopped"}
	case plan.Absent:
		return state{"none", "absent"}
	}
	return state{"waiting", string(p)}
}

// maxAddresses is how many addresses of a node are shown.
const maxAddresses = 8

// addressesOf reads the addresses that a provider reported, which may be anything.
func addressesOf(facts json.RawMessage) (out []attribute) {
	var f struct {
		Addresses map[string]string `json:"addresses"`
	}
	if len(facts) == 0 || json.Unmarshal(facts, &f) != nil {
		return nil
	}
	seen := map[string]int{}
	for _, kind := range slices.Sorted(maps.Keys(f.Addresses)) {
		a := firstLine(f.Addresses[kind])
		if i, twice := seen[a]; twice {
			out[i].Name += ", " + addressKind(kind)
			continue
		}
		if len(out) < maxAddresses {
			seen[a] = len(out)
			out = append(out, attribute{Name: addressKind(kind), Value: a, Long: net.ParseIP(a) == nil})
		}
	}
	return out
}

func addressKind(kind string) string {
	switch kind {
	case "access_v4":
		return "from outside"
	case "bind_v4":
		return "on the machine"
	}
	return firstLine(kind)
}

func (c *console) clusterJobRowOf(at string, j intent.ClusterJob) clusterJobRow {
	row := clusterJobRow{
		Number: j.Number, URL: clusterJobURL(at, j.Number), Action: j.Action, State: jobState(j.State), Done: j.Done,
		Total: j.Total, Failed: j.Failed, Commit: j.At, By: j.MadeBy, Made: j.Made, Problem: firstLine(j.Problem),
	}
	if j.Ended != nil {
		row.Took = j.Ended.Sub(j.Made)
	} else {
		row.Since = &j.Made
	}
	return row
}
