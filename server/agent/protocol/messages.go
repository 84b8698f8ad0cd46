package protocol

import (
	"encoding/json"
	"time"
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

// WelcomeMessage answers it. Protocol is the version that both sides speak.
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

// PingMessage asks whether the agent is there.
type PingMessage struct {
	Type Type  `json:"type"`
	ID   int64 `json:"id"`
}

// PongMessage answers it.
type PongMessage struct {
	Type Type  `json:"type"`
	ID   int64 `json:"id"`
}

// ContentMessage is a part of a content.
type ContentMessage struct {
	Type   Type   `json:"type"`
	Hash   string `json:"hash"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
	Last   bool   `json:"last"`
}

// StoredMessage says that the agent has a content, or with Error that it does not have it.
type StoredMessage struct {
	Type  Type   `json:"type"`
	Hash  string `json:"hash"`
	Error string `json:"error,omitempty"`
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
	Plain     []string          `json:"plain,omitempty"` // names of variables that are no secrets
	Hashes    []string          `json:"hashes,omitempty"`
}

// Task is one thing to do to one resource: executor.Task without its blueprint.
type Task struct {
	Resource          Resource          `json:"resource"`
	Reason            string            `json:"reason"`
	Requires          map[string]string `json:"requires"` // status by resource id
	DependencyChanged bool              `json:"dependency_changed"`
	Lanes             int               `json:"lanes"`
	TimeoutMS         int64             `json:"timeout_ms"`
}

// Resource is what a handler gets of intent.Resource.
type Resource struct {
	ID         string          `json:"id"` // module::Type[agent,attribute=value]
	Version    int             `json:"version"`
	Attributes json.RawMessage `json:"attributes"` // object
	Requires   []string        `json:"requires"`
}

// Blueprint is what a process of handlers needs.
type Blueprint struct {
	Hash    string            `json:"hash"`
	Python  string            `json:"python"`
	Modules map[string]string `json:"modules"` // path by dotted module name; "": a package of the wheels
	Files   map[string]string `json:"files"`   // content hash by path below the code folder
	Wheels  []Wheel           `json:"wheels"`
	Runtime string            `json:"runtime"` // content hash of a zip archive
}

// Wheel is one package of a virtual environment.
type Wheel struct {
	Name string `json:"name"` // of the file
	Hash string `json:"hash"` // of its content
}

// ProgressMessage has log lines of a command that runs. They are shown, not kept: the answer has them all again.
type ProgressMessage struct {
	Type  Type              `json:"type"`
	ID    string            `json:"id"`
	Lines []json.RawMessage `json:"lines"`
}

// AnswerMessage is a part of the JSON of an AnswerBody.
type AnswerMessage struct {
	Type Type   `json:"type"`
	ID   string `json:"id"`
	Part int    `json:"part"`
	Last bool   `json:"last"`
	Data []byte `json:"data"`
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

// RecordedMessage says that the answers of these commands need not be kept any more.
type RecordedMessage struct {
	Type Type     `json:"type"`
	IDs  []string `json:"ids"`
}

// CancelMessage asks the agent to end a command.
type CancelMessage struct {
	Type Type   `json:"type"`
	ID   string `json:"id"`
}

// CallMessage is a call of a handler to the server.
type CallMessage struct {
	Type       Type                       `json:"type"`
	ID         string                     `json:"id"`
	Call       int64                      `json:"call"`
	Method     string                     `json:"method"`
	Args       map[string]json.RawMessage `json:"args"`
	Positional []json.RawMessage          `json:"positional,omitempty"`
}

// ReturnedMessage answers it. Code is 0 when handlers may not make the call.
type ReturnedMessage struct {
	Type Type            `json:"type"`
	ID   string          `json:"id"`
	Call int64           `json:"call"`
	Code int             `json:"code"`
	Body json.RawMessage `json:"body,omitempty"`
}

// RotateMessage asks the agent for a request for a new certificate.
type RotateMessage struct {
	Type Type `json:"type"`
}

// RenewMessage is that request, in PEM.
type RenewMessage struct {
	Type    Type   `json:"type"`
	Request string `json:"request"`
}

// CertificateMessage is the new certificate, in PEM.
type CertificateMessage struct {
	Type        Type   `json:"type"`
	Certificate string `json:"certificate"`
}

// ByeMessage comes before the server closes the connection.
type ByeMessage struct {
	Type         Type   `json:"type"`
	Reason       Reason `json:"reason"`
	Message      string `json:"message"`
	RetrySeconds int    `json:"retry_seconds,omitempty"`
}

// JoinRequest is the body of a request to JoinPath.
type JoinRequest struct {
	Token   string `json:"token"`
	Request string `json:"request"` // certificate request, PEM
	Program string `json:"program"`
}

// JoinAnswer is the body of the answer.
type JoinAnswer struct {
	Certificate string `json:"certificate"`  // PEM
	CA          string `json:"ca,omitempty"` // PEM; empty: the authorities of the machine
	Environment string `json:"environment"`
	Agent       string `json:"agent"`
	URL         string `json:"url"`
}

// Refusal is the body of an answer to a request that was refused.
type Refusal struct {
	Message string `json:"message"`
	// Reason says it to programs: unknown, used, expired or revoked for a join token; certificate, expired, revoked or
	// removed for a certificate; busy or unavailable when it helps to try again.
	Reason string `json:"reason"`
}
