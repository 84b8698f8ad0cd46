// Package protocol has the messages between the agent server and agents, as
// docs/agent-protocol.md describes them. It is used by both sides, sends nothing
// itself, and checks what can be checked of one message alone.
package protocol

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol; Subprotocol names it in the WebSocket handshake.
const (
	Version     = 1
	Subprotocol = "ordain-agent.1"
)

// Paths of the agent server.
const (
	JoinPath      = "/agent/v1/join"
	SubscribePath = "/agent/v1/subscribe"
)

// Limits in bytes.
const (
	MaxMessage = 4 << 20  // one message
	MaxPart    = 1 << 20  // data of one part of a content or an answer, before base64
	MaxAnswer  = 64 << 20 // all parts of an answer
	MaxWaiting = 32 << 20 // messages that wait for an agent
)

// Times.
const (
	HelloTimeout = 10 * time.Second
	PingInterval = 10 * time.Second
	SlowTimeout  = 30 * time.Second
)

// Type says what a message is.
type Type string

// Types of messages from the server, and then from the agent.
const (
	Welcome     Type = "welcome"
	Ping        Type = "ping"
	Content     Type = "content"
	Command     Type = "command"
	Cancel      Type = "cancel"
	Recorded    Type = "recorded"
	Returned    Type = "returned"
	Rotate      Type = "rotate"
	Certificate Type = "certificate"
	Bye         Type = "bye"

	Hello    Type = "hello"
	Pong     Type = "pong"
	Stored   Type = "stored"
	Progress Type = "progress"
	Answer   Type = "answer"
	Call     Type = "call"
	Renew    Type = "renew"
)

// Action is what a command asks for.
type Action string

// The actions.
const (
	Deploy  Action = "deploy"
	DryRun  Action = "dryrun"
	Facts   Action = "facts"
	Prepare Action = "prepare"
	Forget  Action = "forget"
)

// Statuses of answers beside those of handlers.
const (
	Lost      = "lost"      // the agent ended while it carried out the command
	Late      = "late"      // the deadline passed
	Cancelled = "cancelled" // before it began
	Refused   = "refused"   // it cannot be carried out; a line says why
)

// Machine describes where an agent runs.
type Machine struct {
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	Libc    string   `json:"libc"`
	Pythons []string `json:"pythons"` // major.minor
}

// HelloMessage is the first message of an agent.
type HelloMessage struct {
	Type       Type     `json:"type"`
	Protocol   int      `json:"protocol"`
	Program    string   `json:"program"`
	Machine    Machine  `json:"machine"`
	Seen       int64    `json:"seen"`
	Running    []string `json:"running"`
	Unrecorded []string `json:"unrecorded"`
	Holds      []string `json:"holds"`
}

// WelcomeMessage answers it.
type WelcomeMessage struct {
	Type        Type      `json:"type"`
	Protocol    int       `json:"protocol"`
	Server      string    `json:"server"`
	Environment string    `json:"environment"`
	Agent       string    `json:"agent"`
	Now         time.Time `json:"now"`
	PingSeconds int       `json:"ping_seconds"`
	MaxMessage  int       `json:"max_message"`
	MaxAnswer   int       `json:"max_answer"`
}

// CommandMessage asks for an action.
type CommandMessage struct {
	Type       Type     `json:"type"`
	Seq        int64    `json:"seq"`
	ID         string   `json:"id"`
	DeadlineMS int64    `json:"deadline_ms"`
	Action     Action   `json:"action"`
	Needs      []string `json:"needs"` // content hashes
	Payload    Payload  `json:"payload"`
}

// Payload holds all that a command needs beside its contents.
type Payload struct {
	Task      *Task             `json:"task,omitempty"`
	Blueprint *Blueprint        `json:"blueprint,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	Hashes    []string          `json:"hashes,omitempty"`
}

// Task is one thing to do to one resource: executor.Task without its blueprint.
type Task struct {
	Resource          json.RawMessage   `json:"resource"` // intent.Resource as JSON
	Reason            string            `json:"reason"`
	Requires          map[string]string `json:"requires"` // status by resource id
	DependencyChanged bool              `json:"dependency_changed"`
	Lanes             int               `json:"lanes"`
	TimeoutMS         int64             `json:"timeout_ms"`
}

// Blueprint is what a process of handlers needs.
type Blueprint struct {
	Hash    string            `json:"hash"`
	Python  string            `json:"python"`
	Modules map[string]string `json:"modules"` // path by dotted module name
	Files   map[string]string `json:"files"`   // content hash by path below the code folder
	Wheels  []Wheel           `json:"wheels"`
	Runtime string            `json:"runtime"` // content hash of a zip archive
}

// Wheel is one package of a virtual environment.
type Wheel struct {
	Name string `json:"name"` // of the file
	Hash string `json:"hash"` // of its content
}

// AnswerBody is the JSON whose parts are the data of answer messages.
type AnswerBody struct {
	Status      string                     `json:"status"`
	Change      string                     `json:"change"`
	Changes     json.RawMessage            `json:"changes,omitempty"`
	Facts       []Fact                     `json:"facts,omitempty"`
	Discovered  map[string]json.RawMessage `json:"discovered,omitempty"`
	Lines       []json.RawMessage          `json:"lines,omitempty"` // intent.LogLine as JSON
	Unreachable bool                       `json:"unreachable,omitempty"`
	DurationMS  int64                      `json:"duration_ms"`
}

// Fact is a value that a handler learned.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Expires bool   `json:"expires"`
}
