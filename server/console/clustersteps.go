package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
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

// stepsOf folds the tasks of a job into one row for each node.
func (c *console) stepsOf(
	r *http.Request, at string, j intent.ClusterJob, groups []stepGroup, hosts map[int]string,
) (clusterSteps, error) {
	s := clusterSteps{Job: j.Number, JobURL: clusterJobURL(at, j.Number)}
	services, actions := map[string]bool{}, map[task.Action]bool{}
	for _, g := range groups {
		if g.service != "" {
			services[g.service] = true
		} else {
			actions[task.Action(g.action)] = true
		}
	}
	var shown []cellKey // of the columns, without the node
	for _, a := range machineSteps {
		if actions[a] {
			shown = append(shown, cellKey{action: string(a)})
			s.Columns = append(s.Columns, string(a))
		}
	}
	names := slices.Sorted(maps.Keys(services))
	folded := len(names) > maxServiceColumns
	if folded {
		shown = append(shown, cellKey{service: allServices})
		s.Columns = append(s.Columns, plural(len(names), "service"))
	} else {
		for _, name := range names {
			shown = append(shown, cellKey{service: name})
		}
		s.Columns = append(s.Columns, names...)
	}
	all, err := c.store.ClusterTaskNodes(r.Context(), j.ID)
	if err != nil {
		return clusterSteps{}, err
	}
	part, pages := paged(r, "steps", all, nodesPerPage)
	s.Pager = pages
	s.Pager.Of = "the steps"
	cells, err := c.store.ClusterTaskCells(r.Context(), j.ID, part, folded)
	if err != nil {
		return clusterSteps{}, err
	}
	known := map[cellKey]store.ClusterTaskCell{}
	for _, one := range cells {
		known[cellKey{one.Node, one.Service, one.Action}] = one
	}
	for _, number := range part {
		row := stepRow{Node: number, Host: hosts[number]}
		for _, key := range shown {
			key.node = number
			cell := stepCell{}
			if one, has := known[key]; has {
				cell = cellOf(s.JobURL, one)
			}
			row.Cells = append(row.Cells, cell)
		}
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// cellKey is the place of a cell in the table.
type cellKey struct {
	node            int
	service, action string
}

// allServices stands for all services of a node in one cell.
const allServices = "*"

// cellOf shows the task that says most in a cell, or counts those of all services.
func cellOf(job string, one store.ClusterTaskCell) stepCell {
	c := stepCell{
		State: taskState(intent.ClusterTask{State: intent.ClusterTaskState(one.State), Attempts: one.Attempts}),
		URL:   clusterTaskURL(job, one.Number),
	}
	switch {
	case one.Service == allServices:
		c.URL = fmt.Sprintf("%s?node=%d", job, one.Node)
		c.Note = count(one.Done) + " of " + plural(one.Total, "task")
	case one.Service != "":
		c.Note = one.Shown
	case one.Attempts == 0:
		c.Note = "task"
	}
	return c
}
