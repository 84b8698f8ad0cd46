package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// clusterJobPage is one change of a cluster, with its tasks.
type clusterJobPage struct {
	frame
	Head   clusterJobHead
	Graph  clusterGraph
	Filter taskFilter
	Tasks  taskList
}

type clusterJobHead struct {
	clusterJobRow
	Cluster    string
	ClusterURL string
	Whole      string // the problem with all its lines
	FailedOnes []failedTask
}

// taskFilter has what the list of tasks is filtered by.
type taskFilter struct {
	Action string
	Steps  []choice
	States []choice
	Node   string
	Stage  string
	Any    bool
}

type taskList struct {
	Rows  []taskRow
	Pager pager
	Any   bool
}

type taskRow struct {
	Number   int
	URL      string
	Title    string
	Host     string
	State    state
	Attempts int
	Stage    int
	Started  *time.Time
	Ended    *time.Time
	Took     time.Duration
	Since    *time.Time
	Next     *time.Time // when it is tried again
	Problem  string
	By       string
}

// clusterTaskPage is one task with its output, live.
type clusterTaskPage struct {
	frame
	Head taskHead
	Log  taskLog
}

type taskHead struct {
	taskRow
	Cluster    string
	ClusterURL string
	Job        int
	JobURL     string
	Whole      string // the problem with all its lines
	Provider   string
	Needs      []taskLink
	MoreNeeds  int
	After      []taskLink
}

type taskLink struct {
	Text, URL string
	State     state
}

type taskLog struct {
	Output string
	Cut    bool
	Live   bool
}

// tasksPerPage is how many tasks a page lists.
const tasksPerPage = 100

// findJob returns the job in the path of a request.
func (c *console) findJob(r *http.Request) (e intent.Environment, one intent.Cluster, j intent.ClusterJob, err error) {
	if e, one, err = c.findCluster(r); err != nil {
		return
	}
	number, wrong := strconv.Atoi(r.PathValue("number"))
	if wrong != nil || number < 1 || number > 1<<30 {
		err = fault.New("console", fault.NotFound, "the cluster has no such job")
		return
	}
	j, err = c.store.ClusterJob(r.Context(), one.ID, number)
	if fault.Is(err, fault.NotFound) {
		err = fault.New("console", fault.NotFound, "the cluster "+one.Name+" has no job "+strconv.Itoa(number))
	}
	return
}

func (c *console) clusterJob(r *http.Request) (view, error) {
	e, one, j, err := c.findJob(r)
	if err != nil {
		return view{}, err
	}
	at := clusterURL(e.ID, r.PathValue("cluster"))
	title := "Job " + strconv.Itoa(j.Number)
	f, err := c.frame(r, title+" of "+one.Name, "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: one.Name, URL: at}, crumb{Text: title})
	if err != nil {
		return view{}, err
	}
	groups, err := c.stepGroups(r.Context(), j.ID)
	if err != nil {
		return view{}, err
	}
	nodes, err := c.store.ClusterNodes(r.Context(), true, one.ID)
	if err != nil {
		return view{}, err
	}
	job := clusterJobURL(at, j.Number)
	p := clusterJobPage{frame: f, Graph: graphOf(job, j, groups), Head: clusterJobHead{
		clusterJobRow: c.clusterJobRowOf(at, j), Cluster: one.Name, ClusterURL: at, Whole: j.Problem,
	}}
	if p.Head.FailedOnes, err = c.failedTasks(r.Context(), at, j); err != nil {
		return view{}, err
	}
	for i, t := range p.Head.FailedOnes {
		if t.Problem != "" && strings.Contains(j.Problem, t.Problem) {
			p.Head.FailedOnes[i].Problem = ""
		}
	}
	stages := map[string]int{}
	for _, g := range groups {
		stages[g.name] = g.stage + 1
	}
	hosts := hostsOf(nodes, either(j.Goal, j.Prior))
	p.Filter = taskFilterOf(r, job, stages)
	chosen, none := chosenTasks(r.URL.Query(), stages)
	total := 0
	if !none {
		if total, err = c.store.CountClusterTasks(r.Context(), j.ID, chosen); err != nil {
			return view{}, err
		}
	}
	from, pages := pageAt(r, "page", total, tasksPerPage)
	p.Tasks = taskList{Pager: pages, Any: p.Filter.Any}
	var part []intent.ClusterTask
	if total > 0 {
		if part, err = c.store.ClusterTaskPage(r.Context(), j.ID, chosen, from, tasksPerPage); err != nil {
			return view{}, err
		}
	}
	for _, t := range part {
		row := c.taskRowOf(job, t, hosts[t.Node])
		row.Stage = stages[groupName(t)]
		p.Tasks.Rows = append(p.Tasks.Rows, row)
	}
	return view{template: "clusters-job", data: p, fragments: []fragment{
		{"cluster-job-head", "cluster-job-head", p.Head}, {"cluster-graph", "cluster-graph", p.Graph},
		{"cluster-tasks", "cluster-tasks", p.Tasks},
	}}, nil
}

// maxSteps is how many steps the filter offers.
const maxSteps = 200

// taskStates are the states that the filter offers.
var taskStates = []intent.ClusterTaskState{
	intent.TaskFailed, intent.TaskRunning, intent.TaskReady, intent.TaskWaiting, intent.TaskComplete,
	intent.TaskDropped,
}

func taskFilterOf(r *http.Request, path string, stages map[string]int) taskFilter {
	query := r.URL.Query()
	step, picked := query.Get("step"), query.Get("state")
	f := taskFilter{
		Action: path, Node: query.Get("node"), Stage: query.Get("stage"), Steps: []choice{{"", "Any step", step == ""}},
		States: []choice{{"", "Any state", picked == ""}},
	}
	var names []string
	for name := range stages {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if stages[a] != stages[b] {
			return stages[a] - stages[b]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		if i < maxSteps || name == step {
			f.Steps = append(f.Steps, choice{name, name, step == name})
		}
	}
	for _, s := range taskStates {
		word := taskState(intent.ClusterTask{State: s}).Word
		f.States = append(f.States, choice{string(s), strings.ToUpper(word[:1]) + word[1:], picked == string(s)})
	}
	f.Any = step != "" || picked != "" || f.Node != "" || f.Stage != ""
	return f
}

// chosenTasks returns the tasks that a request asks for; none: it can be none.
func chosenTasks(query url.Values, stages map[string]int) (f store.ClusterTaskFilter, none bool) {
	f.State = query.Get("state")
	if f.State != "" && !slices.Contains(taskStates, intent.ClusterTaskState(f.State)) {
		return f, true
	}
	if text := query.Get("node"); text != "" {
		node, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return f, true
		}
		number := int(node)
		f.Node = &number
	}
	step, stage := query.Get("step"), query.Get("stage")
	if step == "" && stage == "" {
		return f, false
	}
	f.Steps = []string{}
	for name, at := range stages {
		if (step == "" || step == name) && (stage == "" || stage == strconv.Itoa(at)) {
			f.Steps = append(f.Steps, name)
		}
	}
	return f, len(f.Steps) == 0
}

func (c *console) taskRowOf(job string, t intent.ClusterTask, host string) taskRow {
	row := taskRow{
		Number: t.Number, URL: clusterTaskURL(job, t.Number), Title: taskTitle(t), Host: host, State: taskState(t),
		Attempts: t.Attempts, Started: t.Started, Ended: t.Ended, Problem: firstLine(t.Problem), By: t.TakenBy,
	}
	switch {
	case t.State == intent.TaskRunning:
		row.Since = t.Started
	case t.Started != nil && t.Ended != nil:
		row.Took = t.Ended.Sub(*t.Started)
	}
	if t.State == intent.TaskReady && t.NotBefore != nil && t.NotBefore.After(c.now()) {
		row.Next = t.NotBefore
	}
	return row
}

// shownNeeds is how many tasks are named that one waits for.
const shownNeeds = 20

func (c *console) clusterTask(r *http.Request) (view, error) {
	e, one, j, err := c.findJob(r)
	if err != nil {
		return view{}, err
	}
	number, wrong := strconv.Atoi(r.PathValue("task"))
	if wrong != nil || number < 1 || number > 1<<30 {
		return view{}, fault.New("console", fault.NotFound, "the job has no such task")
	}
	t, err := c.store.ClusterTask(r.Context(), j.ID, number)
	if fault.Is(err, fault.NotFound) {
		err = fault.New("console", fault.NotFound, "the job has no task "+strconv.Itoa(number))
	}
	if err != nil {
		return view{}, err
	}
	at := clusterURL(e.ID, r.PathValue("cluster"))
	job := clusterJobURL(at, j.Number)
	f, err := c.frame(
		r,
		taskTitle(t)+" of "+one.Name,
		"clusters",
		crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{
			Text: one.Name,
			URL:  at,
		},
		crumb{Text: "Job " + strconv.Itoa(j.Number), URL: job},
		crumb{Text: taskTitle(t)},
	)
	if err != nil {
		return view{}, err
	}
	nodes, err := c.store.ClusterNodes(r.Context(), true, one.ID)
	if err != nil {
		return view{}, err
	}
	p := clusterTaskPage{frame: f, Head: taskHead{
		taskRow: c.taskRowOf(
			job,
			t,
			hostsOf(nodes, either(j.Goal, j.Prior))[t.Node],
		), Cluster: one.Name, ClusterURL: at,
		Job: j.Number, JobURL: job, Whole: t.Problem, Provider: t.Provider,
	}}
	if t.State == intent.TaskWaiting { // then people ask what for
		if err := c.addNeeds(r.Context(), &p.Head, job, t); err != nil {
			return view{}, err
		}
	}
	p.Log.Output, p.Log.Cut = tail(t.Output)
	p.Log.Live = t.State == intent.TaskRunning
	return view{template: "clusters-task", data: p, fragments: []fragment{
		{"cluster-task-head", "cluster-task-head", p.Head}, {"cluster-task-log", "cluster-task-log", p.Log},
	}}, nil
}

// addNeeds says what a task waits for: tasks of its node, and steps of all nodes.
func (c *console) addNeeds(ctx context.Context, h *taskHead, job string, t intent.ClusterTask) error {
	needs, err := c.store.ClusterTaskNeeds(ctx, t.Job, t.Needs)
	if err != nil {
		return err
	}
	for _, other := range needs {
		h.Needs = append(h.Needs, taskLink{taskTitle(other), clusterTaskURL(job, other.Number), taskState(other)})
	}
	if len(t.After) == 0 {
		return nil
	}
	groups, err := c.stepGroups(ctx, t.Job)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if slices.Contains(t.After, g.name) && g.states[intent.TaskComplete] < g.total {
			h.After = append(h.After, taskLink{
				g.name + " on all nodes: " + count(g.states[intent.TaskComplete]) + " of " + count(g.total),
				job + "?" + url.Values{"step": {g.name}}.Encode(), g.state(),
			})
		}
	}
	if len(h.After) > shownNeeds {
		h.MoreNeeds = len(h.After) - shownNeeds
		h.After = h.After[:shownNeeds]
	}
	return nil
}
