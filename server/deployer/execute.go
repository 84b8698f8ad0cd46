package deployer

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/scheduler"
)

// taskEnded takes the result of a task that was sent.
func (d *Deployer) taskEnded(result executor.Result) {
	cutOff := d.tasks.Err() != nil && result.Status != intent.StatusDeployed
	d.post(func() {
		r := d.running[result.Task]
		if r == nil {
			return
		}
		if result.Withdrawn {
			d.withdrawn(r)
			return
		}
		if result.Finished.IsZero() {
			result.Finished = time.Now()
		}
		if result.Change == "" {
			result.Change = intent.NoChange
		}
		took := result.Finished.Sub(result.Started)
		d.taskTime.add(took)
		d.noteEndGap(result.Finished)
		d.queues.ended(d, r, took)
		d.finished(r, result, cutOff)
	})
}

// call runs a task; an executor that panics fails the task and nothing else.
func (d *Deployer) call(t executor.Task) (result executor.Result) {
	started := now()
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("the executor panicked", "resource", t.Resource.ID.String(), "panic", p)
			result = executor.Result{Status: intent.StatusFailed, Messages: []intent.LogLine{
				line(now(), "ERROR", fmt.Sprintf("the executor failed: %v", p)),
			}}
		}
		if result.Started.IsZero() {
			result.Started = started
		}
		if result.Change == "" {
			result.Change = intent.NoChange
		}
	}()
	return d.cfg.Executor.Run(d.tasks, t)
}

// outcome returns the status to record: handlers may report anything.
func outcome(s intent.Status, action executor.Action) intent.Status {
	if s == intent.StatusDry && action == executor.DryRun {
		return s
	}
	switch s {
	case intent.StatusDeployed, intent.StatusFailed, intent.StatusSkipped, intent.StatusUnavailable,
		intent.StatusNonCompliant, intent.StatusSkippedForDependency:
		return s
	}
	return intent.StatusFailed
}

// finished takes the outcome of a deployment. What Stop cut off is not recorded: it stays marked as running, and runs
// again at the next Start.
func (d *Deployer) finished(r *deployment, result executor.Result, cutOff bool) {
	if d.loading && !d.stopping {
		d.deferred = append(d.deferred, func() { d.finished(r, result, cutOff) })
		return
	}
	delete(d.running, r.task.ID)
	if r.shown != nil {
		r.shown.Stop()
	}
	if cutOff {
		return
	}
	at := now()
	if r.task.Behind {
		r.beganAt(result.Started)
	}
	status := outcome(result.Status, r.task.Action)
	differed := differedOf(r.task.Resource, result.Changes)
	commands := d.sched.TaskDone(scheduler.Outcome{
		ID: r.task.Resource.ID, Version: r.task.Resource.Version, Status: status, Change: result.Change,
		Differed: slices.Sorted(maps.Keys(differed)), Unreachable: result.Unreachable,
	}, at)
	action := r.action
	action.Finished, action.Status, action.Change, action.Changes = &at, status, result.Change, result.Changes
	action.Messages = slices.Concat(r.action.Messages, result.Messages)
	if status != result.Status {
		action.Messages = append(action.Messages, line(at, "ERROR",
			fmt.Sprintf("The handler reported %q, which is not how a deployment can end.", result.Status)))
	}
	found, nonsense := discovered(r.task.Resource.ID, result.Discovered, at)
	for _, problem := range nonsense {
		action.Messages = append(action.Messages, line(at, "ERROR", problem))
	}
	took := at.Sub(r.began).Round(time.Millisecond)
	what := "Deployment"
	if r.task.Action == executor.DryRun {
		what = "Look"
	}
	action.Messages = append(action.Messages, line(at, "INFO",
		fmt.Sprintf(what+" ended: %s, %s, after %s", status, result.Change, took),
		"change", string(result.Change), "deploy_id", r.task.ID.String(), "status", string(status)))
	end := intent.FinishedAction{Action: action, Facts: facts(r.task.Resource.ID, result.Facts, at), Discovered: found}
	for _, c := range commands {
		switch c := c.(type) {
		case scheduler.SetState:
			if !c.Skipped && !c.Freed && c.State.ID == r.task.Resource.ID {
				end.State, end.Drift = c.State, driftReport(c.Drift, status, differed)
				if c.Parked {
					end.Notices = append(end.Notices, parkedNotice(c.State))
				}
			}
		case scheduler.SetBreaker:
			end.Breaker = &c.Breaker
			if c.Opened {
				d.recallPrepared(c.Agent)
				end.Notices = append(end.Notices, breakerNotice(c))
			}
		}
	}
	if !end.State.ID.IsZero() {
		d.queueEnd(end)
	}
	if r.task.Behind { // its beginning was not logged, since it might not have begun
		d.logAction(action, action.Messages)
	} else {
		d.logAction(action, action.Messages[len(r.action.Messages):])
	}
	d.carryOut(commands)
	if id := r.task.Resource.ID; d.facts.awaited[id] && status == intent.StatusDeployed {
		d.ask([]intent.ResourceID{id}) // it may have the fact now
	}
}

func facts(id intent.ResourceID, found []executor.Fact, at time.Time) []intent.Parameter {
	var out []intent.Parameter
	for _, f := range found {
		out = append(out, intent.Parameter{
			ID: uuid.New(), Name: f.Name, Value: f.Value, Source: "fact", Resource: id, Updated: at, Expires: f.Expires,
		})
	}
	return out
}

// line returns a log line; values are names and texts in turn.
func line(at time.Time, level, message string, values ...string) intent.LogLine {
	l := intent.LogLine{Level: level, Message: message, Time: at}
	if len(values) > 0 {
		out := []byte{'{'}
		for i, text := range values {
			out = append(jsontext.AppendString(out, text), ":,"[i%2])
		}
		out[len(out)-1] = '}' // instead of the last comma
		l.Arguments = out
	}
	return l
}
