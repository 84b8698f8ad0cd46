package api

import (
	"context"
	"net/http"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
)

// clusterJobCalls are about what is done to a cluster.
func (s *server) clusterJobCalls(c *calls, one string) {
	const see = access.SeeClusters
	v2(c, http.MethodGet, one+"/jobs", "List the jobs of a cluster, newest first.", see, s.listClusterJobs)
	v2(c, http.MethodGet, one+"/jobs/{job}", "Show a job of a cluster with its tasks: of these states, of a node, "+
		"those "+
		"after a number.", see, s.getClusterJob)
	v2(c, http.MethodGet, one+"/jobs/{job}/tasks/{task}", "Show a task with what it printed.", see, s.getClusterTask)
}

// clusterJob is one change of a cluster: a graph of tasks.
type clusterJob struct {
	Number  int        `json:"number"`
	Action  string     `json:"action"`
	State   string     `json:"state"` // running, complete, failed or aborted
	Commit  string     `json:"commit"`
	Total   int        `json:"tasks_total"`
	Done    int        `json:"tasks_complete"`
	Failed  int        `json:"tasks_failed"`
	MadeBy  string     `json:"made_by"`
	Made    timestamp  `json:"made"`
	Ended   *timestamp `json:"ended"`
	Problem *string    `json:"problem"`
}

func jobOf(j intent.ClusterJob) clusterJob {
	return clusterJob{
		Number: j.Number, Action: j.Action, State: string(j.State), Commit: j.At, Total: j.Total, Done: j.Done,
		Failed: j.Failed, MadeBy: j.MadeBy, Made: stamp(j.Made), Ended: maybe(j.Ended), Problem: orNull(j.Problem),
	}
}

// clusterTask is one action on one node. It waits for the tasks in needs, and for the groups in after, which are
// complete when all tasks with this action and service are.
type clusterTask struct {
	Number    int        `json:"number"`
	Node      int        `json:"node"`
	Service   *string    `json:"service"`
	Action    string     `json:"action"`
	Stage     int        `json:"stage"` // the length of the longest way to it
	State     string     `json:"state"` // waiting, ready, running, complete, failed or dropped
	Attempts  int        `json:"attempts"`
	NotBefore *timestamp `json:"not_before"` // when it is tried again
	Needs     []int32    `json:"needs"`
	After     []string   `json:"after"`
	TakenBy   *string    `json:"taken_by"`
	Started   *timestamp `json:"started"`
	Ended     *timestamp `json:"ended"`
	Problem   *string    `json:"problem"`
}

// clusterJobDetails has the tasks of a page. More is true if others follow.
type clusterJobDetails struct {
	clusterJob
	Stages int           `json:"stages"`
	Tasks  []clusterTask `json:"tasks"`
	More   bool          `json:"more"`
}

type clusterTaskDetails struct {
	clusterTask
	Output string `json:"output"`
}

const (
	defaultJobs, maxJobs   = 50, 1000
	defaultTasks, maxTasks = 1000, 10_000
)

type jobFilter struct {
	oneCluster
	Limit int `arg:"limit"`
}

func (f *jobFilter) setDefaults() { f.Limit = defaultJobs }

func (s *server) listClusterJobs(ctx context.Context, a jobFilter) ([]clusterJob, error) {
	if a.Limit < 1 || a.Limit > maxJobs {
		return nil, invalid("limit is %d, and may be 1 to %d", a.Limit, maxJobs)
	}
	c, err := s.store.Cluster(ctx, a.Env, a.Name)
	if err != nil {
		return nil, err
	}
	jobs, err := s.store.ClusterJobs(ctx, c.ID, a.Limit)
	return listed(jobs, jobOf), err
}

type oneJob struct {
	oneCluster
	Job int `arg:"job,required"`
}

type taskFilter struct {
	oneJob
	State []string `arg:"state"`
	Node  *int     `arg:"node"`
	After int      `arg:"after"`
	Limit int      `arg:"limit"`
}

func (f *taskFilter) setDefaults() { f.Limit = defaultTasks }

func (s *server) clusterJob(ctx context.Context, a oneJob) (intent.ClusterJob, error) {
	c, err := s.store.Cluster(ctx, a.Env, a.Name)
	if err != nil {
		return intent.ClusterJob{}, err
	}
	return s.store.ClusterJob(ctx, c.ID, a.Job)
}

func (s *server) getClusterJob(ctx context.Context, a taskFilter) (clusterJobDetails, error) {
	if a.Limit < 1 || a.Limit > maxTasks {
		return clusterJobDetails{}, invalid("limit is %d, and may be 1 to %d", a.Limit, maxTasks)
	}
	j, err := s.clusterJob(ctx, a.oneJob)
	if err != nil {
		return clusterJobDetails{}, err
	}
	tasks, err := s.store.ClusterTasks(ctx, j.ID)
	if err != nil {
		return clusterJobDetails{}, err
	}
	out := clusterJobDetails{clusterJob: jobOf(j), Tasks: []clusterTask{}}
	stages := stagesOf(tasks)
	for i, t := range tasks {
		out.Stages = max(out.Stages, stages[i]+1)
		if t.Number <= a.After || a.Node != nil && t.Node != *a.Node ||
			len(a.State) > 0 && !slices.Contains(a.State, string(t.State)) {
			continue
		}
		if len(out.Tasks) == a.Limit {
			out.More = true
			continue
		}
		out.Tasks = append(out.Tasks, taskOf(t, stages[i]))
	}
	return out, nil
}

type oneTask struct {
	oneJob
	Task int `arg:"task,required"`
}

func (s *server) getClusterTask(ctx context.Context, a oneTask) (clusterTaskDetails, error) {
	j, err := s.clusterJob(ctx, a.oneJob)
	if err != nil {
		return clusterTaskDetails{}, err
	}
	t, err := s.store.ClusterTask(ctx, j.ID, a.Task)
	if err != nil {
		return clusterTaskDetails{}, err
	}
	tasks, err := s.store.ClusterTasks(ctx, j.ID)
	if err != nil {
		return clusterTaskDetails{}, err
	}
	stage := 0
	if i := slices.IndexFunc(tasks, func(o intent.ClusterTask) bool { return o.Number == t.Number }); i >= 0 {
		stage = stagesOf(tasks)[i]
	}
	return clusterTaskDetails{clusterTask: taskOf(t, stage), Output: t.Output}, nil
}

func taskOf(t intent.ClusterTask, stage int) clusterTask {
	return clusterTask{
		Number: t.Number, Node: t.Node, Service: orNull(t.Service), Action: t.Action, Stage: stage,
		State:    string(t.State),
		Attempts: t.Attempts, NotBefore: maybe(t.NotBefore), Needs: notNil(t.Needs), After: notNil(t.After),
		TakenBy: orNull(t.TakenBy), Started: maybe(t.Started), Ended: maybe(t.Ended), Problem: orNull(t.Problem),
	}
}

// stagesOf returns the length of the longest way to each task, as plans have it. Tasks are numbered by their stages, so
// those that one waits for come before it.
func stagesOf(tasks []intent.ClusterTask) []int {
	stages := make([]int, len(tasks))
	byNumber, byGroup := make(map[int32]int, len(tasks)), map[string]int{}
	for i, t := range tasks {
		for _, n := range t.Needs {
			if from, known := byNumber[n]; known {
				stages[i] = max(stages[i], from+1)
			}
		}
		for _, g := range t.After {
			if from, known := byGroup[g]; known {
				stages[i] = max(stages[i], from+1)
			}
		}
		byNumber[int32(t.Number)] = stages[i]
		group := plan.GroupOf(task.Action(t.Action), t.Service)
		byGroup[group] = max(byGroup[group], stages[i])
	}
	return stages
}
