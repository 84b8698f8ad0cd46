package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
)

// settle reports whether the caller is the first to settle the run; only that
// caller may end the task and give back what it holds.
func (r *taskRun) settle() bool {
	if r.settled.Swap(true) {
		return false
	}
	r.mu.Lock()
	timeout, unwatch := r.timeout, r.unwatch
	r.mu.Unlock()
	if timeout != nil {
		timeout.Stop()
	}
	if unwatch != nil {
		unwatch()
	}
	return true
}

// withdrawnReply is the reply of a process that gives back a task of its own accord.
const withdrawnReply = `{"withdrawn":true}`

// replied ends a task that was sent: by its reply, or because the process
// refused it or ended.
func (r *taskRun) replied(raw json.RawMessage, err error) {
	if !r.settle() {
		return
	}
	defer func() {
		if p := recover(); p != nil { // a bug that one reply triggers must not end the server
			r.m.c.Logger.Error("a reply could not be processed", "resource", r.task.Resource.ID.String(), "panic", p)
			r.stopAnswering()
			r.log("ERROR", fmt.Sprintf("the executor gave up: %v", p), nil)
			r.finish(intent.StatusFailed)
		}
	}()
	var refused *worker.Failure
	processEnded := err != nil && !errors.As(err, &refused)
	neverBegan := processEnded && !r.hasBegun() || err == nil && string(raw) == withdrawnReply
	if r.task.Behind && neverBegan {
		r.endWithdrawn(!processEnded)
		return
	}
	var reply reply
	if err == nil {
		if err = json.Unmarshal(raw, &reply); err != nil {
			err = fmt.Errorf("its reply cannot be read: %w", err)
		}
	}
	if err == nil {
		r.apply(reply)
		if reply.Retire != "" {
			r.m.retireOnRequest(r.process, reply.Retire)
		}
	} else {
		r.failed(err)
	}
	r.stopAnswering()
	r.m.release(r.process, r.agent())
	r.m.releaseLane(r, !processEnded)
	if reply.Status == intent.StatusFailed && r.m.c.Cell.Exact() {
		r.m.countChildren() // it may have filled its process, which is then replaced before the next task
	}
	r.finish("")
}

// endWithdrawn gives back what a task holds that has not begun, and ends it.
func (r *taskRun) endWithdrawn(processLives bool) {
	r.stopAnswering()
	r.m.release(r.process, r.agent())
	r.m.releaseLane(r, processLives)
	r.finishWithdrawn()
}

// timedOut ends a task whose handler takes too long.
func (r *taskRun) timedOut() {
	timeout := r.task.Timeout
	r.abandon(fmt.Sprintf("The handler did not finish within %s; its process is replaced", timeout),
		map[string]any{"timeout": timeout.Seconds()})
}

// abandon ends a task whose handler still runs, together with its process.
func (r *taskRun) abandon(message string, arguments map[string]any) {
	if !r.settle() {
		return
	}
	w := r.process
	w.session.Forget(r.request.Load())
	// A thread cannot be stopped, so the process of the hung handler is replaced.
	dead := r.m.retireHung(w)
	r.setStatus(intent.StatusFailed)
	r.log("ERROR", message, arguments)
	r.stopAnswering()
	r.m.release(w, r.agent())
	go func() { // the next task of this agent must not run beside the hung one
		<-dead
		r.m.releaseLane(r, false)
	}()
	r.finish("")
}

// callerGone hands over a result when the caller's context ends. The handler goes on, unless the cause is ErrEnd.
func (r *taskRun) callerGone(cause error) {
	if errors.Is(cause, ErrEnd) && r.hasBegun() {
		r.abandon("The task was cancelled while its handler ran; its process is ended", nil)
		return
	}
	if r.task.Behind {
		r.m.Recall([]intent.ActionID{r.task.ID})
	}
	r.log("ERROR", "The task was cancelled while its handler ran; the handler is left to finish", nil)
	r.finish(intent.StatusFailed)
}

// finishUnavailable ends a task that never reached a process.
func (r *taskRun) finishUnavailable(ctx context.Context, err error) {
	r.mu.Lock()
	r.result.NotBegun = true
	r.mu.Unlock()
	r.setStatus(intent.StatusUnavailable)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.log("ERROR", "The task was cancelled before its handler could start", nil)
		r.finish("")
		return
	}
	r.log("ERROR", "No executor for this resource: "+err.Error(),
		map[string]any{"kind": string(fault.KindOf(err)), "executor": r.task.Blueprint.Hash()})
	r.finish("")
}

// failed notes why a task failed whose process refused it or ended.
func (r *taskRun) failed(err error) {
	w := r.process
	r.setStatus(intent.StatusFailed)
	var f *worker.Failure
	if errors.As(err, &f) {
		r.log("ERROR", "The executor could not do this task: "+w.masks.Replace(f.Error()),
			map[string]any{"traceback": w.masks.Replace(f.Trace)})
		return
	}
	words := w.masks.Replace(w.session.LastWords())
	why, whose := err.Error(), ""
	r.m.mu.Lock()
	if w.endedFor != "" {
		why = w.endedFor
	} else {
		whose = r.m.blameFor(w, words).describe(r)
	}
	r.m.mu.Unlock()
	message := "The executor process ended while it handled this resource: " + why +
		"; it is started again for the next task" + whose
	if words != "" {
		message += "\nIts last words:\n" + words
	}
	r.log("CRITICAL", message, map[string]any{"last_words": words, "executor": w.executor.hash})
}

func (r *taskRun) finishWithdrawn() {
	r.mu.Lock()
	r.result.Withdrawn = true
	r.mu.Unlock()
	r.finish("")
}

// finish hands the result over, once. A status that is not empty replaces the
// one that the result has.
func (r *taskRun) finish(status intent.Status) {
	r.mu.Lock()
	if r.isFinished {
		r.mu.Unlock()
		return
	}
	if r.linesLost > 0 {
		message := fmt.Sprintf("%d more log lines, or what did not look like one, are left out", r.linesLost)
		r.result.Messages = append(r.result.Messages, ownLine("WARNING", message, nil))
	}
	if status != "" {
		r.result.Status = status
	}
	r.result.Finished = time.Now()
	r.isFinished = true
	result := r.result
	r.mu.Unlock()
	r.done(result)
}

func (r *taskRun) setStatus(status intent.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isFinished {
		r.result.Status = status
	}
}

// log adds a log line of our own.
func (r *taskRun) log(level, message string, arguments map[string]any) {
	r.addLine(ownLine(level, message, arguments))
}

func ownLine(level, message string, arguments map[string]any) intent.LogLine {
	line := intent.LogLine{Level: level, Message: message, Time: time.Now().UTC()}
	if len(arguments) > 0 {
		line.Arguments, _ = json.Marshal(arguments)
	}
	return line
}

func (r *taskRun) addLine(line intent.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isFinished {
		r.result.Messages = append(r.result.Messages, line)
	}
}
