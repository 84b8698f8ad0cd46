package console

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// stepGroup is a step of a job with its tasks counted.
type stepGroup struct {
	name    string
	action  string
	service string
	stage   int
	total   int
	states  map[intent.ClusterTaskState]int
	retried bool
	before  []int // groups that it waits for, sorted
}

// stepEdges keeps which step waits for which in the jobs that are looked at. A job of many nodes has a hundred thousand
// edges between its tasks, and none of them ever changes.
type stepEdges struct {
	mu   sync.Mutex
	kept map[uuid.UUID][]store.ClusterStepEdge
}

// keptStepEdges is how many jobs are kept; when there are more, all are forgotten.
const keptStepEdges = 64

func (k *stepEdges) of(ctx context.Context, s *store.Store, job uuid.UUID) ([]store.ClusterStepEdge, error) {
	k.mu.Lock()
	known, ok := k.kept[job]
	k.mu.Unlock()
	if ok {
		return known, nil
	}
	edges, err := s.ClusterStepEdges(ctx, job)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= keptStepEdges {
		k.kept = map[uuid.UUID][]store.ClusterStepEdge{}
	}
	k.kept[job] = edges
	return edges, nil
}

// stepGroups returns the steps of a job, each with its stage.
func (c *console) stepGroups(ctx context.Context, job uuid.UUID) ([]stepGroup, error) {
	steps, err := c.store.ClusterSteps(ctx, job)
	if err != nil {
		return nil, err
	}
	edges, err := c.stepEdges.of(ctx, c.store, job)
	if err != nil {
		return nil, err
	}
	groups, index := make([]stepGroup, len(steps)), map[string]int{}
	for i, s := range steps {
		groups[i] = stepGroup{
			name: s.Name(), action: s.Action, service: s.Service, total: s.Total, retried: s.Retried,
			states: map[intent.ClusterTaskState]int{
				intent.TaskReady: s.Ready, intent.TaskRunning: s.Running, intent.TaskComplete: s.Complete,
				intent.TaskFailed: s.Failed, intent.TaskDropped: s.Dropped,
			},
		}
		index[s.Name()] = i
	}
	for _, e := range edges {
		i, known := index[e.Step]
		j, also := index[e.On]
		if known && also && i != j {
			groups[i].before = append(groups[i].before, j)
		}
	}
	for i := range groups {
		slices.Sort(groups[i].before)
		groups[i].before = slices.Compact(groups[i].before)
	}
	setStages(groups)
	return groups, nil
}

func (g stepGroup) state() state {
	switch {
	case g.states[intent.TaskFailed] > 0:
		return failed
	case g.states[intent.TaskComplete] == g.total:
		return finished
	case g.states[intent.TaskDropped] > 0:
		return state{"none", "dropped"}
	case g.retried && g.states[intent.TaskRunning] == 0:
		return state{"differs", "to be tried again"}
	case g.states[intent.TaskRunning] > 0 || g.states[intent.TaskComplete] > 0:
		return running
	case g.states[intent.TaskReady] > 0:
		return state{"waiting", "ready"}
	}
	return waiting
}
