package executor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
)

// Run does a task and tells how it ended. Trouble of any kind is part of the
// result: a status and log lines for whoever looks at the resource. Tasks of
// one agent on one blueprint wait for each other, unless they have more than one lane.
//
// When ctx ends Run returns, but a handler that has begun is left to finish
// what it does, within its time; the next task of its agent waits for it.
func (m *Manager) Run(ctx context.Context, t Task) Result {
	ended := make(chan Result, 1)
	m.reach(ctx, m.newRun(t, func(r Result) { ended <- r }))
	return <-ended
}

// Begin is Run for many tasks, and waits for none of them: each result goes to
// done, once. What one process is to do is sent at once. A task that is Behind
// begins where the one before it has ended since, and is withdrawn where it would have to wait for a process.
//
// done is called from where replies are read, or from here: it must not wait.
func (m *Manager) Begin(ctx context.Context, tasks []Task, done func(Result)) {
	ready, others := make([]*run, 0, len(tasks)), []*run(nil)
	m.mu.Lock()
	for i := range tasks {
		r := m.newRun(tasks[i], done)
		if m.quick(r) {
			ready = append(ready, r)
		} else {
			others = append(others, r)
		}
	}
	m.mu.Unlock()
	for _, r := range others {
		if r.task.Behind {
			r.withdraw()
		} else {
			go m.reach(ctx, r)
		}
	}
	for _, r := range ready {
		r.send(ctx)
	}
}

// Recall takes back tasks that are Behind: those that have not begun end as withdrawn.
// It does not wait.
func (m *Manager) Recall(tasks []intent.ActionID) {
	m.mu.Lock()
	var recalled []*run
	for _, id := range tasks {
		if r := m.behind[id]; r != nil {
			recalled = append(recalled, r)
		}
	}
	m.mu.Unlock()
	recall(recalled)
}

// recall asks their processes for tasks that are behind.
func recall(runs []*run) {
	of := make(map[*process][]int64)
	by := make(map[int64]*run)
	for _, r := range runs {
		if id := r.request.Load(); id > 0 { // else it is about to be sent, or will never be
			of[r.w] = append(of[r.w], id)
			by[id] = r
		}
	}
	for w, requests := range of {
		_, _ = w.session.Post( // it fails only where the process is gone, which each of them learns
			worker.Errand{
				Op:   "retract",
				Args: map[string]any{"requests": requests},
				Done: func(raw json.RawMessage, err error) {
					var answer struct {
						Back []int64 `json:"back"`
					}
					if err != nil || json.Unmarshal(raw, &answer) != nil {
						return // the process is gone, and each of them learns it
					}
					for _, id := range answer.Back {
						if r := by[id]; r != nil && slices.Contains(requests, id) && r.settle() {
							w.session.Forget(id)
							r.back(true)
						}
					}
				},
			},
		)
	}
}

// run is one task under way.
type run struct {
	m    *Manager
	task Task
	done func(Result)

	// What it holds, from reach or quick to leave.
	w       *process
	e       *executor
	seat    *seat
	lane    int
	begun   bool // under the manager's mutex: nothing is before it, so its handler may run
	request atomic.Int64
	settled atomic.Bool // it is known what became of it
	late    *time.Timer // set when it begins
	forget  func() bool // ends the watch over the context

	desk     desk
	lastHash string // of the file that the handler reads in parts
	lastFile []byte

	mu      sync.Mutex
	result  Result
	size    int  // of the log lines
	leftOut int  // log lines beyond what is kept
	ended   bool // the result was given away: nothing is added any more
}

func (m *Manager) newRun(t Task, done func(Result)) *run {
	if t.Timeout <= 0 {
		t.Timeout = m.c.HandlerTimeout
	}
	return &run{m: m, task: t, done: done, result: Result{
		Task: t.ID, Resource: t.Resource.ID, Version: t.Resource.Version, Started: time.Now(), Change: intent.NoChange,
	}}
}

// say adds a log line of our own.
func (r *run) say(level, message string, arguments map[string]any) {
	line := intent.LogLine{Level: level, Message: message, Time: time.Now().UTC()}
	if len(arguments) > 0 {
		line.Arguments, _ = json.Marshal(arguments)
	}
	r.add(line)
}

func (r *run) set(status intent.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.result.Status = status
	}
}

// reach waits until a task can be sent, and sends it.
func (m *Manager) reach(ctx context.Context, r *run) {
	agent := r.task.Resource.ID.Agent
	err := m.enter(ctx, r)
	if err != nil {
		r.unavailable(ctx, err)
		return
	}
	r.w, err = m.acquire(ctx, r.task.Blueprint, agent)
	if err == nil && ctx.Err() != nil {
		m.release(r.w, agent)
		err = ctx.Err()
	}
	if err != nil {
		m.leave(r, false)
		r.unavailable(ctx, err)
		return
	}
	m.mu.Lock()
	r.begun = true
	r.seat.line = append(r.seat.line, r)
	m.mu.Unlock()
	r.send(ctx)
}

// send posts a task to its process.
func (r *run) send(ctx context.Context) {
	r.desk.parent, r.desk.timeout = ctx, r.task.Timeout
	forget := context.AfterFunc(ctx, r.cancelled)
	r.mu.Lock()
	r.forget = forget
	r.mu.Unlock()
	r.m.mu.Lock()
	begun := r.begun
	r.m.mu.Unlock()
	if begun {
		r.clock()
	}
	id, err := r.w.session.Post(
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

// clock lets the time of a task run, from its beginning.
func (r *run) clock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late == nil && !r.settled.Load() {
		r.result.Started = time.Now()
		r.late = time.AfterFunc(r.task.Timeout, r.isLate)
	}
}

// settle is true once: whoever gets that ends the task.
func (r *run) settle() bool {
	if r.settled.Swap(true) {
		return false
	}
	r.mu.Lock()
	late, forget := r.late, r.forget
	r.mu.Unlock()
	if late != nil {
		late.Stop()
	}
	if forget != nil {
		forget()
	}
	return true
}

// replied takes what became of a task that was sent, and gives back what it held.
func (r *run) replied(raw json.RawMessage, err error) {
	if !r.settle() {
		return
	}
	defer func() {
		if p := recover(); p != nil { // what is wrong with one reply ends no others
			r.m.c.Logger.Error("a reply could not be taken", "resource", r.task.Resource.ID.String(), "panic", p)
			r.say("ERROR", fmt.Sprintf("the executor gave up: %v", p), nil)
			r.give(intent.StatusFailed)
		}
	}()
	var refused *worker.Failure
	ended := err != nil && !errors.As(err, &refused) // the process, and nothing behind it begins
	r.m.mu.Lock()
	begun := r.begun
	r.m.mu.Unlock()
	if r.task.Behind && (ended && !begun || err == nil && string(raw) == withdrawn) {
		r.back(!ended)
		return
	}
	var reply reply
	if err == nil {
		if err = json.Unmarshal(raw, &reply); err != nil {
			err = fmt.Errorf("its reply cannot be read: %w", err)
		}
	}
	if err == nil {
		r.take(reply)
		if reply.Retire != "" {
			r.m.retireFor(r.w, reply.Retire)
		}
	} else {
		r.died(r.w, err)
	}
	r.desk.close()
	r.m.release(r.w, r.task.Resource.ID.Agent)
	r.m.leave(r, !ended)
	r.give("")
}

// withdrawn is what the process says of a task that it gives back by itself.
const withdrawn = `{"withdrawn":true}`

// back ends a task that did not begin.
func (r *run) back(goesOn bool) {
	r.desk.close()
	r.m.release(r.w, r.task.Resource.ID.Agent)
	r.m.leave(r, goesOn)
	r.withdraw()
}

func (r *run) withdraw() {
	r.mu.Lock()
	r.result.Withdrawn = true
	r.mu.Unlock()
	r.give("")
}

// isLate gives up a handler that takes too long.
func (r *run) isLate() {
	if !r.settle() {
		return
	}
	w := r.w
	w.session.Forget(r.request.Load())
	// The thread of the handler cannot be stopped, only its process. What is behind it there is not begun.
	dead := r.m.condemn(w)
	r.set(intent.StatusFailed)
	timeout := r.task.Timeout
	r.say(
		"ERROR",
		fmt.Sprintf("The handler did not finish within %s; its process is replaced", timeout),
		map[string]any{"timeout": timeout.Seconds()},
	)
	r.desk.close()
	r.m.release(w, r.task.Resource.ID.Agent)
	go func() { <-dead; r.m.leave(r, false) }() // the next task of this agent must not meet the hung one
	r.give("")
}

// cancelled gives the result away when the context ends; what was sent goes on.
func (r *run) cancelled() {
	if r.task.Behind {
		r.m.Recall([]intent.ActionID{r.task.ID})
	}
	r.say("ERROR", "The task was cancelled while its handler ran; the handler is left to finish", nil)
	r.give(intent.StatusFailed)
}

// give gives the result away, once.
func (r *run) give(status intent.Status) {
	if result, is := r.end(status); is {
		r.done(result)
	}
}

// unavailable ends a task that never reached a handler.
func (r *run) unavailable(ctx context.Context, err error) {
	r.set(intent.StatusUnavailable)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.say("ERROR", "The task was cancelled before its handler could start", nil)
		r.give("")
		return
	}
	r.say(
		"ERROR",
		"No executor for this resource: "+err.Error(),
		map[string]any{"kind": string(fault.KindOf(err)), "executor": r.task.Blueprint.Hash()},
	)
	r.give("")
}

// died ends a task whose process is gone, or that the process refused.
func (r *run) died(w *process, err error) {
	r.set(intent.StatusFailed)
	var f *worker.Failure
	if errors.As(err, &f) {
		r.say(
			"ERROR",
			"The executor could not do this task: "+w.masks.Replace(f.Error()),
			map[string]any{"traceback": w.masks.Replace(f.Trace)},
		)
		return
	}
	words := w.masks.Replace(w.session.LastWords())
	why := err.Error()
	r.m.mu.Lock()
	if w.why != "" {
		why = w.why
	}
	r.m.mu.Unlock()
	message := "The executor process ended while it handled this resource: " + why + "; it is started again for the next task"
	if words != "" {
		message += "\nIts last words:\n" + words
	}
	r.say("CRITICAL", message, map[string]any{"last_words": words, "executor": w.executor.hash})
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

func (r *run) arguments() runArguments {
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
	// Python expects an object or a list where Go may have nothing.
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

// desk is the time in which a handler is answered. Most ask nothing.
type desk struct {
	parent  context.Context
	timeout time.Duration
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelFunc
	closed  bool
}

func (d *desk) open() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithTimeout(context.WithoutCancel(d.parent), d.timeout)
		if d.closed {
			d.cancel()
		}
	}
	return d.ctx
}

func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.cancel != nil {
		d.cancel()
	}
}

// answer serves what the handler asks for: files, and calls to the server.
func (r *run) answer(op string, args json.RawMessage) (any, error) {
	ctx := r.desk.open()
	var a struct {
		Hash   string `json:"hash"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		Data   []byte `json:"data"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	switch op {
	case "file":
		content, err := r.file(ctx, a.Hash)
		if err != nil {
			return nil, wire(err)
		}
		from := min(max(a.Offset, 0), len(content))
		to := min(from+max(a.Length, 0), len(content))
		return map[string]any{"size": len(content), "data": base64.StdEncoding.EncodeToString(content[from:to])}, nil
	case "stat_file":
		_, err := r.file(ctx, a.Hash)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		if err != nil {
			return nil, wire(err)
		}
		return true, nil
	case "put_file":
		hash, err := r.m.c.Files.PutFile(ctx, a.Data)
		if err != nil {
			return nil, wire(err)
		}
		return hash, nil
	case "call":
		return r.call(ctx, args)
	}
	return nil, &worker.Failure{Kind: "protocol", Message: "an executor has no " + op}
}

// call passes a call to the server on.
func (r *run) call(ctx context.Context, args json.RawMessage) (any, error) {
	var a struct {
		Name       string                     `json:"name"`
		Positional []json.RawMessage          `json:"positional"`
		Named      map[string]json.RawMessage `json:"named"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if r.m.c.Desk == nil {
		return map[string]any{"code": 0}, nil
	}
	code, body, known := r.m.c.Desk.Call(ctx, a.Name, a.Positional, a.Named)
	if !known {
		code = 0
	}
	return map[string]any{"code": code, "body": body}, nil
}

func (r *run) file(ctx context.Context, hash string) ([]byte, error) {
	if hash == r.lastHash && hash != "" {
		return r.lastFile, nil
	}
	content, err := r.m.c.Files.File(ctx, hash)
	if err == nil {
		r.lastHash, r.lastFile = hash, content
	}
	return content, err
}

// wire puts the kind of a fault where Python can see it.
func wire(err error) error {
	return &worker.Failure{Kind: string(fault.KindOf(err)), Message: err.Error()}
}
