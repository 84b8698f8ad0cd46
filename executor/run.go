package executor

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
)

// Run does a task and returns how it ended. Trouble of any kind is part of the
// result, as a status and log lines that explain it to people who look at the
// resource. Tasks of one agent in one blueprint run one after the other, unless
// they have more than one lane.
//
// When ctx ends, Run returns, but a handler that has begun may finish within
// its time, and the next task of its agent waits for it.
func (m *Manager) Run(ctx context.Context, t Task) Result {
	ended := make(chan Result, 1)
	m.waitAndSend(ctx, m.newRun(t, func(r Result) { ended <- r }))
	return <-ended
}

// Begin starts many tasks and waits for none of them: it calls done once with
// the result of each. Tasks that need not wait are sent at once. A task with
// Behind ends as withdrawn if it would have to wait for a process.
//
// done must not wait for anything, because it is called where replies are read,
// or by Begin itself.
func (m *Manager) Begin(ctx context.Context, tasks []Task, done func(Result)) {
	var ready, others []*taskRun
	m.mu.Lock()
	for i := range tasks {
		r := m.newRun(tasks[i], done)
		if m.reserve(r) {
			ready = append(ready, r)
		} else {
			others = append(others, r)
		}
	}
	m.mu.Unlock()
	for _, r := range others {
		if r.task.Behind {
			r.finishWithdrawn()
		} else {
			go m.waitAndSend(ctx, r)
		}
	}
	for _, r := range ready {
		r.send(ctx)
	}
}

// taskRun is one task on its way through an executor.
type taskRun struct {
	m    *Manager
	task Task
	done func(Result)

	// What the task holds until releaseLane.
	executor *executor
	seat     *seat
	lane     int
	process  *process
	begun    bool // no task is before it in its lane, so its handler may run; guarded by the manager's mutex

	request atomic.Int64 // its number in the session; 0 before it is posted
	settled atomic.Bool  // somebody has begun to end the task; see settle

	answering       context.Context // for the handler's requests; ends with the task
	stopAnswering   context.CancelFunc
	readFileHash    string // of the file that the handler reads in parts
	readFileContent []byte

	mu         sync.Mutex
	timeout    *time.Timer // runs from the beginning of the task
	unwatch    func() bool // ends the watch over the caller's context
	result     Result
	logSize    int  // bytes of the log lines in result
	linesLost  int  // log lines that were not kept
	isFinished bool // the result was handed over, so nothing is added to it
}

func (m *Manager) newRun(t Task, done func(Result)) *taskRun {
	if t.Timeout <= 0 {
		t.Timeout = m.c.HandlerTimeout
	}
	return &taskRun{m: m, task: t, done: done, result: Result{
		Task: t.ID, Resource: t.Resource.ID, Version: t.Resource.Version, Started: time.Now(), Change: intent.NoChange,
	}}
}

func (r *taskRun) agent() string { return r.task.Resource.ID.Agent }

// waitAndSend waits until a task has a lane and a process, and sends it.
func (m *Manager) waitAndSend(ctx context.Context, r *taskRun) {
	if err := m.takeLane(ctx, r); err != nil {
		r.finishUnavailable(ctx, err)
		return
	}
	w, err := m.acquire(ctx, r.task.Blueprint, r.agent())
	if err == nil && ctx.Err() != nil {
		m.release(w, r.agent())
		err = ctx.Err()
	}
	if err != nil {
		m.releaseLane(r, false)
		r.finishUnavailable(ctx, err)
		return
	}
	m.mu.Lock()
	r.process = w
	r.begun = true
	r.seat.sent = append(r.seat.sent, r)
	m.mu.Unlock()
	r.send(ctx)
}

// send posts a task to its process.
func (r *taskRun) send(ctx context.Context) {
	r.answering, r.stopAnswering = context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() { r.callerGone(context.Cause(ctx)) })
	r.mu.Lock()
	r.unwatch = unwatch
	r.mu.Unlock()
	if r.hasBegun() {
		r.startClock()
	}
	id, err := r.process.session.Post(
		worker.Errand{
			Op:     "run",
			Args:   r.arguments(),
			Behind: r.task.Behind,
			Answer: r.answer,
			Notice: r.notice,
			Done:   r.replied,
		},
	)
	if err != nil {
		r.replied(nil, err)
		return
	}
	r.request.Store(id)
}

func (r *taskRun) hasBegun() bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.begun
}

// startClock starts the time that the handler has.
func (r *taskRun) startClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timeout == nil && !r.settled.Load() {
		r.result.Started = time.Now()
		r.timeout = time.AfterFunc(r.task.Timeout, r.timedOut)
	}
}

// runArguments are the arguments of the worker's request `run`.
type runArguments struct {
	Action            Action                              `json:"action"`
	ActionID          string                              `json:"action_id"`
	ID                string                              `json:"id"`
	Agent             string                              `json:"agent"`
	Environment       string                              `json:"environment"`
	Reason            string                              `json:"reason"`
	Attributes        json.RawMessage                     `json:"attributes"`
	Dependencies      map[intent.ResourceID]intent.Status `json:"dependencies"`
	DependencyChanged bool                                `json:"dependency_changed"`
	Lane              int                                 `json:"lane"`
	Requires          []intent.ResourceID                 `json:"requires"`
}

func (r *taskRun) arguments() runArguments {
	res := r.task.Resource
	a := runArguments{
		Action:            r.task.Action,
		ActionID:          r.task.ID.String(),
		ID:                res.ID.AtVersion(res.Version),
		Agent:             res.ID.Agent,
		Environment:       r.m.c.Environment.String(),
		Reason:            r.task.Reason,
		Attributes:        res.Attributes,
		Dependencies:      r.task.Requires,
		DependencyChanged: r.task.DependencyChanged,
		Lane:              r.lane,
		Requires:          res.Requires,
	}
	// The worker expects an object or a list where Go may have nil.
	if len(a.Attributes) == 0 {
		a.Attributes = json.RawMessage("{}")
	}
	if a.Dependencies == nil {
		a.Dependencies = map[intent.ResourceID]intent.Status{}
	}
	if a.Requires == nil {
		a.Requires = []intent.ResourceID{}
	}
	return a
}
