package executor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/internal/pyworker"
)

// Run does a task and tells how it ended. Trouble of any kind is part of the
// result: a status and log lines for whoever looks at the resource. Tasks of
// one agent on one blueprint wait for each other, unless they have more than one lane.
//
// When ctx ends Run returns, but a handler that has begun is left to finish
// what it does, within its time; the next task of its agent waits for it.
func (m *Manager) Run(ctx context.Context, t Task) Result {
	r := &run{m: m, task: t, result: Result{
		Task: t.ID, Resource: t.Resource.ID, Version: t.Resource.Version, Started: time.Now(), Change: intent.NoChange,
	}}
	if r.do(ctx) {
		return r.end("")
	}
	r.say("ERROR", "The task was cancelled while its handler ran; the handler is left to finish", nil)
	return r.end(intent.StatusFailed)
}

// run is one task under way.
type run struct {
	m    *Manager
	task Task

	desk     desk
	lastHash string // of the file that the handler reads in parts
	lastFile []byte

	mu      sync.Mutex
	result  Result
	size    int  // of the log lines
	leftOut int  // log lines beyond what is kept
	ended   bool // the result was given away: nothing is added any more
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

// do does the task. It is false when ctx ended while the handler ran.
func (r *run) do(ctx context.Context) bool {
	agent := r.task.Resource.ID.Agent
	lane, leave, err := r.m.enter(ctx, r.task.Blueprint, agent, r.task.Lanes)
	if err != nil {
		r.unavailable(ctx, err)
		return true
	}
	w, err := r.m.acquire(ctx, r.task.Blueprint, agent)
	if err == nil && ctx.Err() != nil {
		r.m.release(w, agent)
		err = ctx.Err()
	}
	if err != nil {
		leave()
		r.unavailable(ctx, err)
		return true
	}
	if r.task.Timeout <= 0 {
		r.task.Timeout = r.m.c.HandlerTimeout
	}
	late := time.NewTimer(r.task.Timeout)
	end := func(raw json.RawMessage, err error) {
		late.Stop()
		r.finish(w, raw, err, leave)
	}
	r.desk.parent, r.desk.until = context.WithoutCancel(ctx), time.Now().Add(r.task.Timeout)
	request, err := w.session.Send("run", r.arguments(lane), r.answer, r.notice)
	if err != nil {
		end(nil, err)
		return true
	}
	raw, err := request.Wait(ctx, late.C)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		go func() {
			defer request.Drop()
			end(request.Wait(context.Background(), late.C))
		}()
		return false
	}
	defer request.Drop()
	end(raw, err)
	return true
}

// finish takes what became of a task that reached its process, and gives back what it held.
func (r *run) finish(w *worker, raw json.RawMessage, err error, leave func()) {
	agent := r.task.Resource.ID.Agent
	var reply reply
	if err == nil {
		reply, err = readReply(raw)
	}
	switch {
	case err == nil:
		r.take(reply)
		if reply.Retire != "" {
			r.m.retireFor(w, reply.Retire)
		}
	case errors.Is(err, pyworker.ErrLate):
		// The thread of the handler cannot be stopped, only its process.
		dead := r.m.condemn(w)
		r.set(intent.StatusFailed)
		timeout := r.task.Timeout
		r.say("ERROR", fmt.Sprintf("The handler did not finish within %s; its process is replaced", timeout), map[string]any{"timeout": timeout.Seconds()})
		r.desk.close()
		r.m.release(w, agent)
		go func() { <-dead; leave() }() // the next task of this agent must not meet the hung one
		return
	default:
		r.died(w, err)
	}
	r.desk.close()
	r.m.release(w, agent)
	leave()
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
		r.say("ERROR", "The executor could not do this task: "+w.masks.Replace(f.Error()), map[string]any{"traceback": w.masks.Replace(f.Trace)})
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

// arguments are what the worker is told. It is written for every task, so by hand.
func (r *run) arguments(lane int) any {
	res := r.task.Resource
	attributes := res.Attributes
	if len(attributes) == 0 {
		attributes = json.RawMessage("{}")
	}
	dependencies := []byte("{}")
	var err error
	if len(r.task.Requires) > 0 {
		dependencies, err = json.Marshal(r.task.Requires)
	}
	if err != nil || !json.Valid(attributes) {
		return map[string]any{"attributes": attributes, "dependencies": r.task.Requires} // the call says what is wrong with them
	}
	out := make([]byte, 0, 512+len(attributes)+len(dependencies))
	text := func(name, value string) { out = jsontext.AppendString(append(out, name...), value) }
	text(`{"action":`, string(r.task.Action))
	text(`,"action_id":`, r.task.ID.String())
	text(`,"id":`, res.ID.AtVersion(res.Version))
	text(`,"agent":`, res.ID.Agent)
	text(`,"environment":`, r.m.c.Environment.String())
	text(`,"reason":`, r.task.Reason)
	out = append(append(out, `,"attributes":`...), attributes...)
	out = append(append(out, `,"dependencies":`...), dependencies...)
	out = strconv.AppendBool(append(out, `,"dependency_changed":`...), r.task.DependencyChanged)
	out = strconv.AppendInt(append(out, `,"lane":`...), int64(lane), 10)
	out = append(out, `,"requires":[`...)
	for i, id := range res.Requires {
		if i > 0 {
			out = append(out, ',')
		}
		text("", id.String())
	}
	return pyworker.Verbatim(append(out, "]}"...))
}

// desk is the time in which a handler is answered. Most ask nothing.
type desk struct {
	parent context.Context
	until  time.Time
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
}

func (d *desk) open() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithDeadline(d.parent, d.until)
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
	return nil, &pyworker.Failure{Kind: "protocol", Message: "an executor has no " + op}
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
	return &pyworker.Failure{Kind: string(fault.KindOf(err)), Message: err.Error()}
}
