package executor

import (
	"bytes"
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

// readReply reads what a process says of a task.
func readReply(raw json.RawMessage) (reply, error) {
	if r, quick := quickReply(raw); quick {
		return r, nil
	}
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("pyworker: reply to run: %w", err)
	}
	return r, nil
}

// quickReply reads the reply of most tasks, in the form that the worker gives it:
//
//	{"status":"deployed","change":"nochange"}
func quickReply(raw []byte) (r reply, ok bool) {
	status, rest, is := quickText(raw, `{"status":"`)
	if !is {
		return r, false
	}
	change, rest, is := quickText(rest, `,"change":"`)
	if !is || string(rest) != "}" {
		return r, false
	}
	return reply{Status: intent.Status(status), Change: intent.Change(change)}, true
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
	line, quick := quickLine(args)
	if len(args) > maxLogLine || !quick && json.Unmarshal(args, &line) != nil {
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

// quickLine reads a log line in the form that the worker gives it, where its
// texts need no decoding:
//
//	{"level":"DEBUG","msg":"…","kwargs":{…},"timestamp":"…"}
//
// Any other form is for the decoder.
func quickLine(body []byte) (line intent.LogLine, ok bool) {
	level, rest, is := quickText(body, `{"level":"`)
	if !is {
		return line, false
	}
	message, rest, is := quickText(rest, `,"msg":"`)
	if !is {
		return line, false
	}
	rest, is = bytes.CutPrefix(rest, []byte(`,"kwargs":`))
	at := bytes.LastIndex(rest, []byte(`,"timestamp":"`))
	if !is || at < 2 || rest[0] != '{' || !json.Valid(rest[:at]) {
		return line, false
	}
	moment, end, is := quickText(rest[at:], `,"timestamp":"`)
	if !is || string(end) != "}" {
		return line, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(moment))
	return intent.LogLine{Level: string(level), Message: string(message), Time: t, Arguments: rest[:at:at]}, err == nil
}

// quickText reads a text after what leads to it, and its closing quote; false
// when it has to be decoded.
func quickText(body []byte, lead string) (text, rest []byte, ok bool) {
	body, is := bytes.CutPrefix(body, []byte(lead))
	if !is {
		return nil, nil, false
	}
	for i, c := range body {
		switch {
		case c == '"':
			return body[:i], body[i+1:], true
		case c == '\\' || c < 0x20 || c >= 0x7f:
			return nil, nil, false
		}
	}
	return nil, nil, false
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
