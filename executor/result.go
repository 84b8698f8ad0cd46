package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Processes limit what they send about a task. These limits are a little wider:
// they protect the server from a process that ignores its own.
const (
	maxLines    = 6000     // log lines of a task
	maxLogBytes = 16 << 20 // of all log lines of a task
	maxLogLine  = 2 << 20  // bytes
)

// reply is a process's answer to the request `run`.
type reply struct {
	Status  intent.Status                     `json:"status"`
	Change  intent.Change                     `json:"change"`
	Changes map[string]intent.AttributeChange `json:"changes"`
	// Unreachable says why the target could not be reached. It is empty if it was reached.
	Unreachable string `json:"unreachable"`
	Facts       []struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		Expires bool   `json:"expires"`
	} `json:"facts"`
	Discovered map[string]json.RawMessage `json:"discovered"`
	Retire     string                     `json:"retire"` // why the process asks to be replaced, if it does
}

// handlerStatuses are the statuses with which a handler can end.
var handlerStatuses = []intent.Status{
	intent.StatusDeployed, intent.StatusFailed, intent.StatusSkipped, intent.StatusUnavailable, intent.StatusDry,
	intent.StatusNonCompliant, intent.StatusSkippedForDependency,
}

var handlerChanges = []intent.Change{intent.NoChange, intent.Created, intent.Updated, intent.Purged}

// apply puts a reply into the result.
func (r *taskRun) apply(reply reply) {
	if !slices.Contains(handlerStatuses, reply.Status) || !slices.Contains(handlerChanges, reply.Change) {
		message := fmt.Sprintf("The executor answered with status %.40q and change %.40q, which do not exist; "+
			"the resource counts as failed", reply.Status, reply.Change)
		r.log("ERROR", message, nil)
		reply.Status, reply.Change = intent.StatusFailed, intent.NoChange
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isFinished {
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
	if r.m.c.Cell != nil && reply.Status == intent.StatusFailed &&
		slices.ContainsFunc(r.result.Messages, outOfReach) {
		r.result.Messages = append(r.result.Messages, ownLine("INFO", "Handlers reach the files of their own "+
			"environment only. If this file is one of the server's machine that they should manage, the server's "+
			"operator can allow its folder with [isolation] allow-read or allow-write; docs/isolation.md says more",
			nil))
	}
}

// outOfReach reports whether a log line is about a file that is missing or must not be changed: inside, a
// file that is out of reach looks like that.
func outOfReach(l intent.LogLine) bool {
	for _, sign := range []string{"[Errno 1]", "[Errno 2]", "[Errno 13]", "[Errno 30]"} {
		if strings.Contains(l.Message, sign) || strings.Contains(string(l.Arguments), sign) {
			return true
		}
	}
	return false
}

// notice keeps a log line of the handler.
func (r *taskRun) notice(op string, args json.RawMessage) {
	switch op {
	case "log":
	case "thread", "ends":
		r.noteEnd(args)
		return
	default:
		return
	}
	var line intent.LogLine
	readable := len(args) <= maxLogLine && json.Unmarshal(args, &line) == nil
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isFinished:
	case !readable, len(r.result.Messages) >= maxLines, r.logSize+len(args) > maxLogBytes:
		r.linesLost++
	default:
		r.logSize += len(args)
		r.result.Messages = append(r.result.Messages, line)
		if r.task.OnLine != nil {
			r.task.OnLine(line)
		}
	}
}
