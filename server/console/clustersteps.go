package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
)

// clusterSteps is a table of the nodes of a job and its steps. With many services, they share a column.
type clusterSteps struct {
	Job     int
	JobURL  string
	Columns []string
	Rows    []stepRow
	Pager   pager
}

type stepRow struct {
	Node  int
	Host  string
	Cells []stepCell
}

// stepCell is how far a node is with a step; without a state the node does not have it.
type stepCell struct {
	State state
	URL   string
	Note  string
}

// Empty reports whether the node does not have the step.
func (c stepCell) Empty() bool { return c.State == state{} }

// maxServiceColumns is how many services get columns of their own.
const maxServiceColumns = 8

// machineSteps are the actions on machines in the order of their columns.
var machineSteps = []task.Action{task.Create, task.Confirm, task.Bootstrap, task.Delete}

func groupName(t intent.ClusterTask) string { return plan.GroupOf(task.Action(t.Action), t.Service) }

// taskState is the look of a task.
func taskState(t intent.ClusterTask) state {
	switch t.State {
	case intent.TaskReady:
		if t.Attempts > 0 {
			return state{"differs", "to be tried again"}
		}
		return state{"waiting", "ready"}
	case intent.TaskRunning:
		return running
	case intent.TaskComplete:
		return finished
	case intent.TaskFailed:
		return failed
	case intent.TaskDropped:
		return state{"none", "dropped"}
	}
	return waiting
}

// urgency orders tasks by how much they say about where a node is: the one that failed first.
func urgency(t intent.ClusterTask) int {
	switch t.State {
	case intent.TaskFailed:
		return 5
	case intent.TaskRunning:
		return 4
	case intent.TaskReady:
		return 3
	case intent.TaskWaiting:
		return 2
	case intent.TaskDropped:
		return 1
	}
	return 0
}

// stepsOf folds the tasks of a job into one row for each node.
func stepsOf(
	r *http.Request, at string, j intent.ClusterJob, tasks []intent.ClusterTask, hosts map[int]string,
) clusterSteps {
	s := clusterSteps{Job: j.Number, JobURL: clusterJobURL(at, j.Number)}
	byNode := map[int][]intent.ClusterTask{}
	services, actions := map[string]bool{}, map[task.Action]bool{}
	for _, t := range tasks {
		byNode[t.Node] = append(byNode[t.Node], t)
		if t.Service != "" {
			services[t.Service] = true
		} else {
			actions[task.Action(t.Action)] = true
		}
	}
	var machine []task.Action
	for _, a := range machineSteps {
		if actions[a] {
			machine = append(machine, a)
			s.Columns = append(s.Columns, string(a))
		}
	}
	names := slices.Sorted(maps.Keys(services))
	folded := len(names) > maxServiceColumns
	if folded {
		s.Columns = append(s.Columns, plural(len(names), "service"))
	} else {
		s.Columns = append(s.Columns, names...)
	}
	part, pages := paged(r, "steps", slices.Sorted(maps.Keys(byNode)), nodesPerPage)
	s.Pager = pages
	s.Pager.Of = "the steps"
	for _, number := range part {
		row := stepRow{Node: number, Host: hosts[number]}
		for _, a := range machine {
			row.Cells = append(row.Cells, cellOf(s.JobURL, byNode[number], func(t intent.ClusterTask) bool {
				return t.Service == "" && t.Action == string(a)
			}, false))
		}
		if folded {
			row.Cells = append(row.Cells, foldedCell(s.JobURL, number, byNode[number]))
		} else {
			for _, name := range names {
				row.Cells = append(row.Cells, cellOf(s.JobURL, byNode[number], func(t intent.ClusterTask) bool {
					return t.Service == name
				}, true))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// cellOf shows the task that says most among some: that which failed, runs, or comes next; else the last one.
func cellOf(job string, tasks []intent.ClusterTask, is func(intent.ClusterTask) bool, named bool) stepCell {
	var shown *intent.ClusterTask
	for i := range tasks {
		t := &tasks[i]
		if !is(*t) {
			continue
		}
		if shown == nil || urgency(*t) > urgency(*shown) || urgency(*t) == 0 && urgency(*shown) == 0 {
			shown = t
		}
	}
	if shown == nil {
		return stepCell{}
	}
	c := stepCell{State: taskState(*shown), URL: clusterTaskURL(job, shown.Number)}
	switch {
	case named:
		c.Note = shown.Action
	case shown.Attempts == 0:
		c.Note = "task"
	}
	return c
}

// foldedCell counts the tasks of all services of a node.
func foldedCell(job string, node int, tasks []intent.ClusterTask) stepCell {
	var worst *intent.ClusterTask
	done, total := 0, 0
	for i := range tasks {
		t := &tasks[i]
		if t.Service == "" {
			continue
		}
		total++
		if t.State == intent.TaskComplete {
			done++
		}
		if worst == nil || urgency(*t) > urgency(*worst) {
			worst = t
		}
	}
	if worst == nil {
		return stepCell{}
	}
	return stepCell{
		State: taskState(*worst), URL: fmt.Sprintf("%s?node=%d", job, node),
		Note: count(done) + " of " + plural(total, "task"),
	}
}
