package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// ClusterStep is one action of one service in a job, or one action on the machines, with its tasks counted.
type ClusterStep struct {
	Action, Service string
	Total           int
	Ready           int
	Running         int
	Complete        int
	Failed          int
	Dropped         int
	Retried         bool // a task of it is to be tried again
}

// Name is the name of the step, by which others wait for it.
func (s ClusterStep) Name() string { return taskGroup(s.Action, s.Service) }

// ClusterSteps lists the steps of a job in the order of their first tasks.
func (s *Store) ClusterSteps(ctx context.Context, job uuid.UUID) (out []ClusterStep, err error) {
	err = s.read(ctx, "store.ClusterSteps", func(q querier) error {
		out, err = many[ClusterStep](ctx, q, statements.ClusterSteps, job)
		return err
	})
	return out, err
}

// ClusterStepEdge says that a task of one step waits for a task of another one.
type ClusterStepEdge struct {
	Step, On string // names
}

// ClusterStepEdges lists which step of a job waits for which. That never changes.
func (s *Store) ClusterStepEdges(ctx context.Context, job uuid.UUID) (out []ClusterStepEdge, err error) {
	type need struct{ Action, Service, OnAction, OnService string }
	type group struct{ Action, Service, After string }
	err = s.read(ctx, "store.ClusterStepEdges", func(q querier) error {
		out = nil
		needs, err := many[need](ctx, q, statements.ClusterStepEdges, job)
		if err != nil {
			return err
		}
		for _, n := range needs {
			out = append(out, ClusterStepEdge{taskGroup(n.Action, n.Service), taskGroup(n.OnAction, n.OnService)})
		}
		groups, err := many[group](ctx, q, statements.ClusterStepGroups, job)
		for _, g := range groups {
			out = append(out, ClusterStepEdge{taskGroup(g.Action, g.Service), g.After})
		}
		return err
	})
	return out, err
}

// ClusterTaskNodes lists the numbers of the nodes that a job has tasks on.
func (s *Store) ClusterTaskNodes(ctx context.Context, job uuid.UUID) (out []int, err error) {
	type row struct{ Node int }
	err = s.read(ctx, "store.ClusterTaskNodes", func(q querier) error {
		rows, err := many[row](ctx, q, statements.ClusterTaskNodes, job)
		out = make([]int, len(rows))
		for i, r := range rows {
			out[i] = r.Node
		}
		return err
	})
	return out, err
}

// ClusterTaskCell is how far a node is with an action on its machine, or with a service.
type ClusterTaskCell struct {
	Node            int
	Service, Action string // Action is empty for a service; Service is * for all services together
	Number          int    // of the task that says most
	Shown           string // its action
	State           string
	Attempts        int
	Done, Total     int
}

// ClusterTaskCells says how far nodes are with a job: in a row for each service, or in one for all services if folded.
func (s *Store) ClusterTaskCells(
	ctx context.Context, job uuid.UUID, nodes []int, folded bool,
) (out []ClusterTaskCell, err error) {
	err = s.read(ctx, "store.ClusterTaskCells", func(q querier) error {
		out, err = many[ClusterTaskCell](ctx, q, statements.ClusterTaskCells, job, nodes, folded)
		return err
	})
	return out, err
}

// ClusterTaskFilter chooses tasks of a job.
type ClusterTaskFilter struct {
	Steps []string // names; nil: any
	State string   // empty: any
	Node  *int     // nil: any
}

func (f ClusterTaskFilter) args(job uuid.UUID) []any {
	var state *string
	if f.State != "" {
		state = &f.State
	}
	return []any{job, f.Steps, state, f.Node}
}

type clusterTaskBrief struct {
	Number    int
	Node      int
	Service   string
	Action    string
	State     string
	Attempts  int
	NotBefore *time.Time
	TakenBy   string
	Started   *time.Time
	Ended     *time.Time
	Problem   string
}

func (r clusterTaskBrief) value() (intent.ClusterTask, error) {
	return intent.ClusterTask{
		Number: r.Number, Node: r.Node, Service: r.Service, Action: r.Action, State: intent.ClusterTaskState(r.State),
		Attempts: r.Attempts, NotBefore: utc(r.NotBefore), TakenBy: r.TakenBy, Started: utc(r.Started),
		Ended: utc(r.Ended), Problem: r.Problem,
	}, nil
}

// CountClusterTasks counts the tasks of a job that a filter chooses.
func (s *Store) CountClusterTasks(ctx context.Context, job uuid.UUID, f ClusterTaskFilter) (n int, err error) {
	err = s.read(ctx, "store.CountClusterTasks", func(q querier) error {
		return q.QueryRow(ctx, statements.ClusterTaskCount, f.args(job)...).Scan(&n)
	})
	return n, err
}

// ClusterTaskPage lists tasks of a job that a filter chooses, in order, without their output and what provisioners need
// of them.
func (s *Store) ClusterTaskPage(
	ctx context.Context, job uuid.UUID, f ClusterTaskFilter, from, limit int,
) ([]intent.ClusterTask, error) {
	return listed(ctx, s, "store.ClusterTaskPage", clusterTaskBrief.value, statements.ClusterTaskPage,
		append(f.args(job), from, limit)...)
}

// ClusterTaskNeeds lists those of the tasks with some numbers that are not complete, as ClusterTaskPage does.
func (s *Store) ClusterTaskNeeds(
	ctx context.Context, job uuid.UUID, numbers []int32,
) ([]intent.ClusterTask, error) {
	return listed(ctx, s, "store.ClusterTaskNeeds", clusterTaskBrief.value, statements.ClusterTaskNeeds, job, numbers)
}
