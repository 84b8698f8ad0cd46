package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A process keeps to limits of its own for what it tells of a task. These are
// for one that does not, and are a little wider.
const (
	maxLines    = 6000     // of log, per task
	maxLogBytes = 16 << 20 // of all of them
	maxLogLine  = 2 << 20  // of one
)

// reply is what a process says of a task.
type reply struct {
	Status  intent.Status                     `json:"status"`
	Change  intent.Change                     `json:"change"`
	Changes map[string]intent.AttributeChange `json:"changes"`
	// Unreachable is why the target could not be reached; empty when it was not that.
	Unreachable string `json:"unreachable"`
	Facts       []struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		Expires bool   `json:"expires"`
	} `json:"facts"`
	Discovered map[string]json.RawMessage `json:"discovered"`
	Retire     string                     `json:"retire"` // why the process wants to be replaced, if it does
}

// outcomes are the statuses that a handler can give.
var outcomes = []intent.Status{
	intent.StatusDeployed, intent.StatusFailed, intent.StatusSkipped, intent.StatusUnavailable, intent.StatusDry,
	intent.StatusNonCompliant, intent.StatusSkippedForDependency,
}

var changes = []intent.Change{intent.NoChange, intent.Created, intent.Updated, intent.Purged}

// take makes a reply the result.
func (r *run) take(reply reply) {
	if !slices.Contains(outcomes, reply.Status) || !slices.Contains(changes, reply.Change) {
		r.say(
			"ERROR",
			fmt.Sprintf(
				"The executor answered with status %.40q and change %.40q, which do not exist; the resource counts as failed",
				reply.Status,
				reply.Change,
			),
			nil,
		)
		reply.Status, reply.Change = intent.StatusFailed, intent.NoChange
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.result.Status, r.result.Change, r.result.Changes = reply.Status, reply.Change, reply.Changes
	r.result.Unreachable = reply.Unreachable != "" && reply.Status == intent.StatusUnavailable
	for _, f := range reply.Facts {
		r.result.Facts = append(r.result.Facts, Fact{Name: f.Name, Value: f.Value, Expires: f.Expires})
	}
	if len(reply.Discovered) > 0 {
		r.result.Discovered = reply.Discovered
	}
}

// notice takes a log line of the handler.
func (r *run) notice(op string, args json.RawMessage) {
	if op != "log" {
		return
	}
	var line intent.LogLine
	if len(args) > maxLogLine || json.Unmarshal(args, &line) != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leftOut++
		return
	}
	r.mu.Lock()
	full := len(r.result.Messages) >= maxLines || r.size+len(args) > maxLogBytes
	if full {
		r.leftOut++
	} else {
		r.size += len(args)
	}
	r.mu.Unlock()
	if !full {
		r.add(line)
	}
}

func (r *run) add(line intent.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.result.Messages = append(r.result.Messages, line)
	}
}

// end makes the result what it is; false when it was given away before.
func (r *run) end(status intent.Status) (Result, bool) {
	if r.leftOutLines() > 0 {
		r.say(
			"WARNING",
			fmt.Sprintf("%d more log lines, or what did not look like one, are left out", r.leftOutLines()),
			nil,
		)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return Result{}, false
	}
	if status != "" {
		r.result.Status = status
	}
	r.result.Finished = time.Now()
	r.ended = true
	return r.result, true
}

func (r *run) leftOutLines() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leftOut
}
