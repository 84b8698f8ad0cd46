package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

var (
	errTaken = errors.New("another worker has taken the process")
	errStop  = errors.New("the server stops")
	// errAttempt ends an attempt that takes too long.
	errAttempt = errors.New("the time for an attempt is over")
)

// try is an attempt that runs here.
type try struct {
	run     *Run
	def     Definition
	end     context.CancelCauseFunc
	begun   time.Time
	renewed time.Time    // only for the loop that renews leases
	over    atomic.Int64 // when its context ended, in nanoseconds; 0: it has not
}

// overdue reports whether the handler goes on although its context ended some time ago.
func (t *try) overdue(grace time.Duration) bool {
	over := t.over.Load()
	return over != 0 && time.Since(time.Unix(0, over)) > grace
}

// work runs an attempt at a process, if it can run. It records everything that follows from it.
func (e *Engine) work(stopping context.Context, name string, id int64) {
	d, has := e.known[name]
	if !has {
		return
	}
	ctx := context.WithoutCancel(stopping)
	p, err := e.cfg.Record.TakeProcess(stopping, id, e.cfg.Worker, e.cfg.Lease, e.delegate(d))
	if err != nil {
		if stopping.Err() == nil && !fault.Is(err, fault.Unavailable) {
			e.cfg.Logger.Error("a process cannot be begun", "process", id, "error", err)
		}
		return // the next sweep finds it
	}
	if p == nil {
		return
	}
	e.publish(p.Environment)
	log := e.cfg.Logger.With("process", p.ID, "name", p.Name, "resource", p.Resource.String(), "attempt", p.Attempts)
	now := time.Now()
	t := &try{run: &Run{process: *p}, def: d, begun: now, renewed: now}
	bounded, cancelBound := context.WithTimeoutCause(ctx, e.bound(d, *p), errAttempt)
	defer cancelBound()
	attempt, end := context.WithCancelCause(bounded)
	t.end = end
	defer end(nil)
	defer context.AfterFunc(stopping, func() { end(errStop) })()
	defer context.AfterFunc(attempt, func() { t.over.Store(time.Now().UnixNano()) })()
	e.mu.Lock()
	e.tries[p.Claim()] = t
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.tries, p.Claim())
		e.mu.Unlock()
	}()
	err = e.handle(attempt, t)
	outcome := e.judge(attempt, t, err)
	switch {
	case errors.Is(err, errTaken):
		log.Warn("another worker has taken a process that ran here")
		return
	case outcome.State == intent.ProcessDead:
		log.Error("a process died", "reason", outcome.Reason, "error", outcome.Problem)
	case outcome.Problem != "":
		again := outcome.After.Round(time.Millisecond)
		log.Warn("an attempt at a process failed", "again", again, "error", outcome.Problem)
	}
	if err := e.record(ctx, stopping, *p, outcome); err != nil {
		log.Warn("the end of an attempt cannot be recorded; it is run again", "error", err)
	}
	e.publish(p.Environment)
}

// delegate returns the process that continues in a state that ends this one; nil: none does.
func (e *Engine) delegate(d Definition) *intent.NewProcess {
	if d.Delegate == "" {
		return nil
	}
	p, err := e.New(Intention{Process: d.Delegate})
	if err != nil {
		return nil // validate has found it
	}
	return &p
}

// bound returns how long an attempt may take.
func (e *Engine) bound(d Definition, p intent.Process) time.Duration {
	if p.Left == 0 {
		return d.Attempt
	}
	return min(d.Attempt, p.Left)
}

// handle runs the handlers that have not finished yet.
func (e *Engine) handle(ctx context.Context, t *try) error {
	if err := json.Unmarshal(t.run.process.Data, &t.run.data); err != nil || t.run.data == nil {
		t.run.data = map[string]json.RawMessage{}
	}
	all := t.def.handlers()
	// A handler that is not known any more leaves -1: all run again.
	next := slices.IndexFunc(all, func(h Handler) bool { return h.Name == t.run.process.Phase }) + 1
	for i := next; i < len(all); i++ {
		h := all[i]
		if err := call(ctx, h, t.run); err != nil {
			return err
		}
		if i == len(all)-1 {
			return nil // the end is recorded with the state of the resource
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := json.Marshal(t.run.data)
		if err != nil {
			return err
		}
		why, err := e.recordPhase(ctx, t, h.Name, data)
		if err != nil {
			return err
		}
		if why != "" {
			return &cancelError{why}
		}
	}
	return nil
}

// call runs one handler, and turns a panic into an error.
func call(ctx context.Context, h Handler, r *Run) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler %s panicked: %v\n%s", h.Name, v, debug.Stack())
		}
	}()
	return h.Do(ctx, r)
}

// recordPhase records that a handler finished. While the database does not answer, it keeps trying: what comes next
// must not begin before.
func (e *Engine) recordPhase(ctx context.Context, t *try, phase string, data json.RawMessage) (string, error) {
	for {
		why, err := e.cfg.Record.ProcessPhase(ctx, t.run.process.Claim(), phase, data)
		switch {
		case errors.Is(err, store.ErrProcessTaken):
			return "", errTaken
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case !fault.Is(err, fault.Unavailable):
			return why, err
		}
		pause(ctx, calm)
	}
}

// judge says what follows from the end of the handlers.
func (e *Engine) judge(ctx context.Context, t *try, err error) intent.ProcessEnd {
	p, d := t.run.process, t.def
	data, failed := json.Marshal(t.run.data)
	if failed != nil {
		data = nil
	}
	end := intent.ProcessEnd{State: intent.ProcessWaiting, Data: data}
	switch cause := context.Cause(ctx); {
	case err == nil || cause == nil:
	case errors.Is(cause, errAttempt):
		err = fmt.Errorf("%w: %w", cause, err)
	default:
		err = cause // what the handler says is only a consequence
	}
	var again *againError
	var never *neverError
	var cancelled *cancelError
	switch {
	case err == nil && d.Schedule != "":
		end.Fresh, end.After = true, time.Until(d.next(time.Now()))
	case err == nil:
		end.State = intent.ProcessDone
		end.Then, end.Reason = e.follow(t)
	case errors.Is(err, errStop):
		end.Free, end.Problem = true, p.Problem
	case errors.As(err, &cancelled):
		end.State, end.Reason = intent.ProcessCancelled, cancelled.why
	case errors.As(err, &again):
		end.Fresh, end.After = true, max(time.Until(again.at), 0)
	case errors.As(err, &never):
		end.State, end.Reason, end.Problem = intent.ProcessDead, "it can never succeed", err.Error()
	case p.Left != 0 && time.Since(t.begun) >= p.Left:
		end.State, end.Reason, end.Problem = intent.ProcessDead, "its time ran out", err.Error()
	case p.Attempts >= p.Most && d.Schedule == "":
		end.State, end.Reason, end.Problem = intent.ProcessDead, "its attempts ran out", err.Error()
	default:
		end.After, end.Problem = e.cfg.Backoff(p.Attempts), err.Error()
	}
	return end
}

// follow returns the process that comes after one that is done, and the reason of its end for people.
func (e *Engine) follow(t *try) (*intent.NewProcess, string) {
	p := t.run.process
	next := t.run.then
	if next == nil && t.def.Then != "" {
		next = &Intention{Process: t.def.Then, Resource: p.Resource.ID}
	}
	if next == nil {
		return nil, ""
	}
	if next.Environment == (intent.EnvironmentID{}) && next.Project == [16]byte{} {
		next.Environment, next.Project = p.Environment, p.Project
	}
	if next.By == "" {
		next.By = p.MadeBy
	}
	np, err := e.New(*next)
	if err != nil {
		e.cfg.Logger.Error("a process cannot be continued", "process", p.ID, "next", next.Process, "error", err)
		return nil, ""
	}
	return &np, "continued with " + np.Name
}

// record records the end of an attempt. While the database does not answer, it keeps trying as long as the server runs:
// nobody else can take the process then either.
func (e *Engine) record(ctx, stopping context.Context, p intent.Process, end intent.ProcessEnd) error {
	for left := stopPatience; ; left -= calm {
		bounded, cancel := context.WithTimeout(ctx, e.cfg.Lease)
		err := e.cfg.Record.EndProcess(bounded, p.Claim(), end)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrProcessTaken):
			return err
		case end.Then != nil && (fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound)):
			// What was to follow may not begin in this state: the process is done nevertheless.
			end.Then, end.Reason = nil, "done; "+end.Then.Name+" could not follow: "+err.Error()
			continue
		case !fault.Is(err, fault.Unavailable), stopping.Err() != nil && left <= 0:
			return err
		case stopping.Err() == nil:
			left = stopPatience + calm
		}
		pause(ctx, calm)
	}
}
