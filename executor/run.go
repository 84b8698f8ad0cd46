package executor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/pyworker"
)

// Run does a task and tells how it ended. Trouble of any kind is part of the
// result: a status and log lines for whoever looks at the resource. Tasks of
// one agent on one blueprint wait for each other.
//
// When ctx ends Run returns, but a handler that has begun is left to finish
// what it does, within its time; the next task of its agent waits for it.
func (m *Manager) Run(ctx context.Context, t Task) Result {
	r := &run{m: m, task: t, result: Result{
		Task: t.ID, Resource: t.Resource.ID, Version: t.Resource.Version, Started: time.Now(), Change: intent.NoChange,
	}}
	finished := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		defer close(finished)
		r.do(ctx, started)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		if <-started != nil { // it gives up by itself
			<-finished
			break
		}
		select {
		case <-finished:
		default:
			r.say("ERROR", "The task was cancelled while its handler ran; the handler is left to finish", nil)
			return r.end(intent.StatusFailed)
		}
	}
	return r.end("")
}

// run is one task under way.
type run struct {
	m    *Manager
	task Task

	lastHash string // of the file that the handler reads in parts
	lastFile []byte

	mu     sync.Mutex
	result Result
	ended  bool // the result was given away: nothing is added any more
}

// end gives the result away.
func (r *run) end(status intent.Status) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status != "" {
		r.result.Status = status
	}
	r.result.Finished = time.Now()
	r.ended = true
	return r.result
}

// say adds a log line of our own.
func (r *run) say(level, message string, arguments map[string]any) {
	line := intent.LogLine{Level: level, Message: message, Time: time.Now().UTC()}
	if len(arguments) > 0 {
		line.Arguments, _ = json.Marshal(arguments)
	}
	r.add(line)
}

func (r *run) add(line intent.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.result.Messages = append(r.result.Messages, line)
	}
}

func (r *run) set(status intent.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.result.Status = status
	}
}

// do does the task. It sends on started once: nil when the handler is about to
// begin, else why it will not.
func (r *run) do(ctx context.Context, started chan<- error) {
	unlock, err := r.m.lockAgent(ctx, r.task.Blueprint, r.task.Resource.ID.Agent)
	if err != nil {
		started <- err
		r.unavailable(ctx, err)
		return
	}
	w, err := r.m.acquire(ctx, r.task.Blueprint)
	if err == nil && ctx.Err() != nil {
		r.m.release(w)
		err = ctx.Err()
	}
	if err != nil {
		started <- err
		unlock()
		r.unavailable(ctx, err)
		return
	}
	started <- nil
	timeout := r.task.Timeout
	if timeout <= 0 {
		timeout = r.m.c.HandlerTimeout
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	var reply reply
	err = w.session.Call(limited, "run", r.arguments(), &reply, r.answer(limited), r.notice)
	switch {
	case err == nil:
		r.take(reply)
	case errors.Is(err, context.DeadlineExceeded):
		// The thread of the handler cannot be stopped, only its process.
		dead := r.m.condemn(w)
		r.set(intent.StatusFailed)
		r.say("ERROR", fmt.Sprintf("The handler did not finish within %s; its process is replaced", timeout), map[string]any{"timeout": timeout.Seconds()})
		r.m.release(w)
		go func() { <-dead; unlock() }() // the next task of this agent must not meet the hung one
		return
	default:
		r.died(w, err)
	}
	r.m.release(w)
	unlock()
}

// lockAgent waits until no other task of the agent runs on the blueprint.
func (m *Manager) lockAgent(ctx context.Context, b intent.Blueprint, agent string) (func(), error) {
	m.mu.Lock()
	e := m.executor(b)
	token := e.agents[agent]
	if token == nil {
		token = make(chan struct{}, 1)
		token <- struct{}{}
		e.agents[agent] = token
	}
	e.tasks++
	m.mu.Unlock()
	leave := func() {
		m.mu.Lock()
		e.tasks--
		m.mu.Unlock()
	}
	select {
	case <-token:
		return func() { token <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// unavailable ends a task that never reached a handler.
func (r *run) unavailable(ctx context.Context, err error) {
	r.set(intent.StatusUnavailable)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.say("ERROR", "The task was cancelled before its handler could start", nil)
		return
	}
	r.say("ERROR", "No executor for this resource: "+err.Error(), map[string]any{"kind": string(fault.KindOf(err)), "executor": r.task.Blueprint.Hash()})
}

// died ends a task whose process is gone, or that the process refused.
func (r *run) died(w *worker, err error) {
	r.set(intent.StatusFailed)
	var f *pyworker.Failure
	if errors.As(err, &f) {
		r.say("ERROR", "The executor could not do this task: "+f.Error(), map[string]any{"traceback": f.Trace})
		return
	}
	words := w.session.LastWords()
	message := "The executor process ended while it handled this resource: " + err.Error() + "; it is started again for the next task"
	if words != "" {
		message += "\nIts last words:\n" + words
	}
	r.say("CRITICAL", message, map[string]any{"last_words": words, "executor": w.executor.hash})
}

type reply struct {
	Status  intent.Status                     `json:"status"`
	Change  intent.Change                     `json:"change"`
	Changes map[string]intent.AttributeChange `json:"changes"`
	Facts   []struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		Expires bool   `json:"expires"`
	} `json:"facts"`
	Discovered map[string]json.RawMessage `json:"discovered"`
}

func (r *run) take(reply reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.result.Status, r.result.Change, r.result.Changes = reply.Status, reply.Change, reply.Changes
	for _, f := range reply.Facts {
		r.result.Facts = append(r.result.Facts, Fact{Name: f.Name, Value: f.Value, Expires: f.Expires})
	}
	if len(reply.Discovered) > 0 {
		r.result.Discovered = reply.Discovered
	}
}

// arguments are what the worker is told.
func (r *run) arguments() any {
	res := r.task.Resource
	requires := make([]string, 0, len(res.Requires))
	for _, id := range res.Requires {
		requires = append(requires, id.String())
	}
	attributes := res.Attributes
	if len(attributes) == 0 {
		attributes = json.RawMessage("{}")
	}
	return map[string]any{
		"action":             string(r.task.Action),
		"action_id":          r.task.ID.String(),
		"id":                 res.ID.AtVersion(res.Version),
		"agent":              res.ID.Agent,
		"environment":        r.m.c.Environment.String(),
		"attributes":         attributes,
		"requires":           requires,
		"dependencies":       r.task.Requires,
		"dependency_changed": r.task.DependencyChanged,
		"reason":             r.task.Reason,
	}
}

// notice takes a log line of the handler.
func (r *run) notice(op string, args json.RawMessage) {
	if op != "log" {
		return
	}
	var line intent.LogLine
	if json.Unmarshal(args, &line) == nil {
		r.add(line)
	}
}

// answer serves the files that the handler asks for.
func (r *run) answer(ctx context.Context) pyworker.Handler {
	return func(op string, args json.RawMessage) (any, error) {
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
		}
		return nil, &pyworker.Failure{Kind: "protocol", Message: "an executor has no " + op}
	}
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
	return &pyworker.Failure{Kind: string(fault.KindOf(err)), Message: err.Error()}
}
