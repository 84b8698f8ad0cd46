package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/protocol"
)

// maxLines is how many log lines of an answer are kept. An agent of ours sends fewer.
const maxLines = 6000

func line(level, message string) intent.LogLine {
	return intent.LogLine{Level: level, Message: message, Time: time.Now().UTC()}
}

func resultOf(t executor.Task, began time.Time) executor.Result {
	return executor.Result{
		Task: t.ID, Resource: t.Resource.ID, Version: t.Resource.Version, Change: intent.NoChange, Started: began,
		Finished: time.Now(),
	}
}

// failed is the result of a task that did not get to its agent.
func failed(t executor.Task, began time.Time, status intent.Status, err error) executor.Result {
	r := resultOf(t, began)
	r.Status = status
	l := line("ERROR", "The remote agent did not get this task: "+err.Error())
	l.Arguments, _ = json.Marshal(
		map[string]string{"kind": string(fault.KindOf(err))},
	) // a string can always be encoded
	r.Messages = []intent.LogLine{l}
	return r
}

var changes = []intent.Change{intent.NoChange, intent.Created, intent.Updated, intent.Purged}

// result returns the result of an answer. What the agent says is not trusted to be well-formed.
func (e *Executor) result(t executor.Task, a protocol.AnswerBody, began time.Time) executor.Result {
	r := resultOf(t, began)
	if took := time.Duration(a.DurationMS) * time.Millisecond; took < r.Finished.Sub(began) {
		r.Started = r.Finished.Add(-took)
	}
	r.Status, r.Change = intent.Status(a.Status), intent.Change(a.Change)
	r.Unreachable = a.Unreachable && r.Status == intent.StatusUnavailable
	unreadable := max(0, len(a.Lines)-maxLines)
	for _, text := range a.Lines[:min(len(a.Lines), maxLines)] {
		var l intent.LogLine
		if json.Unmarshal(text, &l) != nil {
			unreadable++
			continue
		}
		r.Messages = append(r.Messages, l)
	}
	say := func(level, format string, values ...any) {
		r.Messages = append(r.Messages, line(level, fmt.Sprintf(format, values...)))
	}
	if unreadable > 0 {
		say("WARNING", "%d log lines of the remote agent are left out", unreadable)
	}
	if len(a.Changes) > 0 && json.Unmarshal(a.Changes, &r.Changes) != nil {
		say("WARNING", "The remote agent's list of changes cannot be read")
	}
	for _, f := range a.Facts {
		r.Facts = append(r.Facts, executor.Fact{Name: f.Name, Value: f.Value, Expires: f.Expires})
	}
	if len(a.Discovered) > 0 {
		r.Discovered = a.Discovered
	}
	if r.Change != "" && !slices.Contains(changes, r.Change) || r.Change == "" {
		r.Change = intent.NoChange
	}
	switch a.Status {
	case protocol.Lost:
		r.Status = intent.StatusFailed
		say("ERROR", "The remote agent ended while it carried out this task, so nobody knows how far the handler got")
	case protocol.Late:
		r.Status = intent.StatusFailed
		say("ERROR", "The remote agent did not answer in time")
	case protocol.Cancelled:
		r.Status = intent.StatusUnavailable
		say("ERROR", "The task was cancelled before it began")
	case protocol.Refused:
		r.Status = intent.StatusUnavailable
		say("ERROR", "The remote agent refused this task")
	}
	return r
}
