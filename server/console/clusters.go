package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/manifest"
)

// The pages of clusters:
//
//	clusters.go         the list, and what the pages share
//	clusterpage.go      one cluster: what it is, what is wanted, what can be done
//	clustersteps.go     its nodes and the steps of its newest job, folded when there are many
//	clustergraph.go     the steps of a job as a graph
//	clusterjob.go       a job and its tasks; a task and its output
//	clusternew.go       the form for a new cluster
//	clusterfields.go    the fields of forms: what was typed, and what is wrong with it
//	clusterchange.go    changes: each is planned first, and committed then
//	clusterplan.go      what would be done, and how the file changes

// routeClusters registers the pages of clusters.
func (c *console) routeClusters(
	page func(string, access.Verb, loader), handle func(string, access.Verb, http.HandlerFunc),
	post func(string, access.Verb, action),
) {
	const one = "/e/{env}/clusters/{cluster}"
	page("/e/{env}/clusters", access.SeeClusters, c.clusterList)
	page(one, access.SeeClusters, c.clusterPage)
	page(one+"/jobs/{number}", access.SeeClusters, c.clusterJob)
	page(one+"/jobs/{number}/tasks/{task}", access.SeeClusters, c.clusterTask)
	page(one+"/change", access.PlanCluster, c.clusterChangePage)
	page(one+"/delete", access.PlanCluster, c.clusterDeletePage)
	page(one+"/rollback", access.PlanCluster, c.clusterRollBackPage)
	page("/e/{env}/new-cluster", access.PlanCluster, c.clusterNew)
	form := func(pattern string, v access.Verb, do func(http.ResponseWriter, *http.Request, intent.Environment) error) {
		handle("POST "+pattern, v, c.formHandler(do))
	}
	form("/e/{env}/new-cluster", access.PlanCluster, c.doPlanNewCluster)
	form("/e/{env}/clusters", access.ChangeCluster, c.doCreateCluster)
	form(one+"/change", access.PlanCluster, c.doPlanChange)
	form(one+"/commit", access.ChangeCluster, c.doCommitChange)
	form(one+"/rollback", access.ChangeCluster, c.doRollBackCluster)
	form(one+"/delete", access.DeleteCluster, c.doDeleteCluster)
	post(one+"/pause", access.OperateCluster, c.doPauseCluster)
	post(one+"/resume", access.OperateCluster, c.doResumeCluster)
	post(one+"/abort", access.OperateCluster, c.doAbortCluster)
	post(one+"/retry", access.OperateCluster, c.doRetryCluster)
}

// clustersPage lists the clusters of an environment.
type clustersPage struct {
	frame
	New   string // address of the form for a new one; empty: the reader may not make one
	Ended bool   // those that ended are shown, too
	Other string // address of the list with those, or without
	List  clusterRows
}

// PausedState is the look of a cluster that is paused.
func (clusterRows) PausedState() state { return paused }

type clusterRows struct {
	New   string
	Ended bool
	Rows  []clusterRow
	Pager pager
}

// clusterRow is a cluster in the list.
type clusterRow struct {
	Name        string
	URL         string
	State       state
	Paused      bool
	Description string
	Nodes       int
	Template    string
	Owner       string
	Lease       *leaseView
	Problem     string
	Job         *clusterProgress // that runs
}

// clusterProgress is how far a job is.
type clusterProgress struct {
	Number int
	Action string
	URL    string
	Done   int
	Total  int
	Failed int
}

// leaseView is the end of a lease.
type leaseView struct {
	At   time.Time
	Soon bool // it ends within a day
	Over bool
}

// clusterBrief is what the list shows of a manifest. Reading only this is quick for large clusters.
type clusterBrief struct {
	Description string `json:"description"`
	Template    string `json:"template"`
	Size        int    `json:"size"`
}

func clustersURL(env uuid.UUID) string { return envURL(env) + "/clusters" }

func clusterURL(env uuid.UUID, name string) string {
	return clustersURL(env) + "/" + url.PathEscape(name)
}

func clusterJobURL(of string, number int) string { return of + "/jobs/" + strconv.Itoa(number) }

func clusterTaskURL(job string, number int) string { return job + "/tasks/" + strconv.Itoa(number) }

func newClusterURL(env uuid.UUID) string { return envURL(env) + "/new-cluster" }

// mayOn reports whether the sender of a request may do a verb to an environment.
func mayOn(r *http.Request, v access.Verb, e intent.Environment) bool {
	return access.Of(r.Context()).Decide(v, access.TargetOf(e)).Allowed
}

func (c *console) clusterList(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Clusters", "clusters", crumb{Text: "Clusters"})
	if err != nil {
		return view{}, err
	}
	ended := r.URL.Query().Get("show") == "all"
	p := clustersPage{frame: f, Ended: ended, Other: clustersURL(e.ID) + "?show=all"}
	if ended {
		p.Other = clustersURL(e.ID)
	}
	if mayOn(r, access.ChangeCluster, e) {
		p.New = newClusterURL(e.ID)
	}
	all, err := c.store.Clusters(r.Context(), e.ID, ended)
	if err != nil {
		return view{}, err
	}
	part, pages := paged(r, "page", all, perPage)
	p.List = clusterRows{New: p.New, Ended: ended, Pager: pages}
	for _, one := range part {
		row, err := c.clusterRowOf(r, one)
		if err != nil {
			return view{}, err
		}
		p.List.Rows = append(p.List.Rows, row)
	}
	return view{template: "clusters", data: p, fragments: []fragment{{"clusterrows", "clusterrows", p.List}}}, nil
}

// paged returns the part of a list that a request asks for with a parameter, and the pager for the others.
func paged[T any](r *http.Request, parameter string, all []T, size int) ([]T, pager) {
	from, p := pageAt(r, parameter, len(all), size)
	return all[from:min(len(all), from+size)], p
}

// pageAt returns where the page begins that a request asks for with a parameter, and the pager for the others.
func pageAt(r *http.Request, parameter string, total, size int) (from int, p pager) {
	last := max(0, total-1) / size
	n, _ := strconv.Atoi(r.URL.Query().Get(parameter)) // anything else is the first page
	n = min(max(n, 1)-1, last)
	address := func(page int) string {
		query := r.URL.Query()
		query.Del("live")
		query.Del("done")
		query.Del(parameter)
		if page > 0 {
			query.Set(parameter, strconv.Itoa(page+1))
		}
		return (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}).String()
	}
	from = n * size
	p = pager{From: from + 1, To: min(total, from+size), Total: total}
	if total == 0 {
		p.From = 0
	}
	if n > 0 {
		p.First, p.Prev = address(0), address(n-1)
	}
	if n < last {
		p.Next = address(n + 1)
	}
	return from, p
}

func (c *console) clusterRowOf(r *http.Request, one intent.Cluster) (clusterRow, error) {
	jobs, err := c.store.ClusterJobs(r.Context(), one.ID, 1)
	if err != nil {
		return clusterRow{}, err
	}
	row := clusterRow{
		Name: one.Name, URL: clusterURL(one.Environment, one.Name), State: clusterState(one, newest(jobs)),
		Paused: one.Paused, Owner: one.Owner, Lease: c.leaseOf(one), Problem: firstLine(one.Problem),
	}
	if one.Ended != nil {
		row.URL = clusterURL(one.Environment, one.ID.String())
	}
	brief := clusterBrief{}
	for _, raw := range []json.RawMessage{one.Wanted, one.Applied} {
		if raw != nil {
			if err := json.Unmarshal(raw, &brief); err != nil {
				return row, fault.Wrap("console.clusters", fault.Internal, err)
			}
			break
		}
	}
	row.Description, row.Template, row.Nodes = brief.Description, brief.Template, brief.Size
	if j := newest(jobs); j != nil && j.State == intent.JobRunning {
		row.Job = progressOf(row.URL, *j)
	}
	return row, nil
}

// newest returns the first of jobs, nil when there is none.
func newest(jobs []intent.ClusterJob) *intent.ClusterJob {
	if len(jobs) == 0 {
		return nil
	}
	return &jobs[0]
}

func progressOf(of string, j intent.ClusterJob) *clusterProgress {
	return &clusterProgress{
		Number: j.Number, Action: j.Action, URL: clusterJobURL(of, j.Number), Done: j.Done, Total: j.Total,
		Failed: j.Failed,
	}
}

func (c *console) leaseOf(one intent.Cluster) *leaseView {
	if one.Expires == nil || one.Ended != nil {
		return nil
	}
	left := one.Expires.Sub(c.now())
	return &leaseView{At: *one.Expires, Soon: left < 24*time.Hour, Over: left < 0}
}

// clusterState is the look of a cluster, with its newest job.
func clusterState(one intent.Cluster, last *intent.ClusterJob) state {
	busy := last != nil && last.State == intent.JobRunning
	switch {
	case one.State == intent.ClusterTerminated:
		return state{"none", "deleted"}
	case busy && last.Goal == nil:
		return state{"deploying", "being deleted"}
	case busy && one.Applied == nil:
		return state{"deploying", "being made"}
	case busy:
		return state{"deploying", "changing"}
	}
	switch one.State {
	case intent.ClusterActive:
		if string(one.Wanted) != string(one.Applied) {
			return state{"differs", "to be changed"}
		}
		return state{"intended", "active"}
	case intent.ClusterIncomplete:
		return state{"failed", "incomplete"}
	case intent.ClusterInconsistent:
		return state{"failed", "inconsistent"}
	}
	return state{"waiting", "pending"}
}

// jobState is the look of a job.
func jobState(s intent.ClusterJobState) state {
	switch s {
	case intent.JobRunning:
		return running
	case intent.JobComplete:
		return finished
	case intent.JobAborted:
		return state{"waiting", "ended"}
	}
	return failed
}

// findCluster returns the cluster in the path of a request: a name of one that did not end, or the id of any.
func (c *console) findCluster(r *http.Request) (intent.Environment, intent.Cluster, error) {
	e, err := c.environment(r)
	if err != nil {
		return e, intent.Cluster{}, err
	}
	name := r.PathValue("cluster")
	found, err := c.store.Cluster(r.Context(), e.ID, name)
	if !fault.Is(err, fault.NotFound) {
		return e, found, err
	}
	if id, wrong := uuid.Parse(name); wrong == nil {
		found, err = c.store.ClusterByID(r.Context(), id)
		if err == nil && found.Environment == e.ID {
			return e, found, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return e, found, err
		}
	}
	text := "this environment has no cluster " + name
	if manifest.CheckName(name) != nil {
		text = "this environment has no such cluster"
	}
	return e, intent.Cluster{}, fault.New("console", fault.NotFound, text).
		Hint("if it was committed just now, it appears as soon as its commit is released; see the runs")
}

// needClusters fails when the server has no cluster service.
func (c *console) needClusters() error {
	if c.clusters == nil || c.catalogue == nil {
		return fault.New("console", fault.NotFound, "this server has no clusters")
	}
	return nil
}

// operate serves the buttons that change how a cluster is worked on, and not what is wanted.
func (c *console) operate(
	r *http.Request,
	e intent.Environment,
	done string,
	do func(name string) error,
) (string, error) {
	if err := c.needClusters(); err != nil {
		return "", err
	}
	name := r.PathValue("cluster")
	return clusterURL(e.ID, name) + "?done=" + done, do(name)
}

func (c *console) doPauseCluster(r *http.Request, e intent.Environment) (string, error) {
	return c.operate(r, e, "clusterpaused", func(name string) error {
		return c.clusters.Pause(r.Context(), e, name, true)
	})
}

func (c *console) doResumeCluster(r *http.Request, e intent.Environment) (string, error) {
	return c.operate(r, e, "clusterresumed", func(name string) error {
		return c.clusters.Pause(r.Context(), e, name, false)
	})
}

func (c *console) doAbortCluster(r *http.Request, e intent.Environment) (string, error) {
	return c.operate(r, e, "clusteraborted", func(name string) error {
		return c.clusters.Abort(r.Context(), e, name)
	})
}

func (c *console) doRetryCluster(r *http.Request, e intent.Environment) (string, error) {
	return c.operate(r, e, "clusterretried", func(name string) error {
		return c.clusters.Retry(r.Context(), e, name)
	})
}

// firstLine shortens a problem for a list.
func firstLine(text string) string {
	const most = 200
	for i, r := range text {
		if r == '\n' || i >= most {
			return text[:i] + " …"
		}
	}
	return text
}

// readManifest reads a manifest from the record; nil stays nil.
func readManifest(raw json.RawMessage) (*manifest.Manifest, error) {
	if raw == nil {
		return nil, nil
	}
	m := &manifest.Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fault.Wrap("console.cluster", fault.Internal, fmt.Errorf("a manifest in the record: %w", err))
	}
	return m, nil
}
