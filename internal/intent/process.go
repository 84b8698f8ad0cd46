package intent

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ProcessState is the state of a process.
type ProcessState string

// The states of processes.
const (
	ProcessWaiting   ProcessState = "waiting"
	ProcessRunning   ProcessState = "running"
	ProcessDone      ProcessState = "done"
	ProcessCancelled ProcessState = "cancelled"
	ProcessDead      ProcessState = "dead" // its attempts or its time ran out, or it can never succeed
)

// Open reports whether there is still something to do.
func (s ProcessState) Open() bool { return s == ProcessWaiting || s == ProcessRunning }

// ProcessResource is what a process works on, such as the agent 7f3a….
type ProcessResource struct{ Type, ID string }

func (r ProcessResource) String() string { return r.Type + " " + r.ID }

// ProcessPath is the way that a process takes a resource: from a state in which it may begin, through a transitional
// state, to another one.
type ProcessPath struct{ From, During, Done string }

// Process is one intention: the run of a process on one resource, with all its attempts.
type Process struct {
	ID       int64
	Name     string
	Resource ProcessResource
	// Environment and Project say who may see it. Both zero: it belongs to the server.
	Environment     EnvironmentID
	EnvironmentName string
	Project         uuid.UUID

	State    ProcessState
	Path     ProcessPath // empty: the resource has no state
	Phase    string      // the last handler that finished
	Attempts int
	Most     int // attempts
	Priority int
	Problem  string // of the last attempt
	Reason   string // why it ended as it did
	Data     json.RawMessage
	MadeBy   string

	Made     time.Time
	Begun    *time.Time // the first attempt
	Next     time.Time  // the next attempt
	Deadline *time.Time
	// Left is the time until the deadline when the attempt began, which does not depend on anybody's clock; 0: endless.
	Left  time.Duration
	Ended *time.Time

	Worker string     // the process of the operating system that runs it, or ran it last
	Lease  *time.Time // until then, unless the worker renews it
	// Fence grows with each attempt; what an earlier attempt writes is refused.
	Fence    int64
	Cancel   string // who or what asks it to end
	WaitsFor int64  // another process of its resource, 0: none
	Due      bool   // the time for the next attempt has come
}

// Waits says for people what a waiting process waits for; empty when it does not wait.
func (p Process) Waits() string {
	switch {
	case p.State != ProcessWaiting:
		return ""
	case p.WaitsFor != 0:
		return "an earlier process of the same resource"
	case p.Due:
		return "a worker"
	case p.Attempts > 0:
		return "the next attempt"
	}
	return "its time"
}

// NewProcess is a process that is to be recorded.
type NewProcess struct {
	Name        string
	Resource    ProcessResource
	Environment EnvironmentID
	Project     uuid.UUID
	// Paths are the ways from which the state of the resource chooses one. None: the resource has no state.
	Paths []ProcessPath
	// Failed and Cancelled are the states of the resource when the process dies or is cancelled. No Cancelled: the
	// state from which it began.
	Failed, Cancelled string
	// Cancels are the names of the processes of the same resource that it ends.
	Cancels []string
	// Single merges it with one that waits under the same name for the same resource.
	Single   bool
	Most     int           // attempts
	Deadline time.Duration // after which it is dead; 0: none
	Priority int           // 1 is served before 4
	Queue    string
	Data     json.RawMessage
	MadeBy   string
	After    time.Duration // before the first attempt
}

// ProcessClaim proves that a worker runs a process: the process, and the fencing number of the attempt.
type ProcessClaim struct{ ID, Fence int64 }

// Claim returns the proof for the attempt that the value is about.
func (p Process) Claim() ProcessClaim { return ProcessClaim{p.ID, p.Fence} }

// ProcessEnd is how an attempt ended.
type ProcessEnd struct {
	// State is where the process goes: done, dead, cancelled, or waiting for another attempt.
	State   ProcessState
	Reason  string
	Problem string
	Data    json.RawMessage
	// After is the pause before the next attempt.
	After time.Duration
	// Fresh begins the next attempt with the first handler and counts attempts anew; Free does not count this one.
	Fresh, Free bool
	Then        *NewProcess // scheduled together with the end
}

// ProcessCounts are how many processes there are, by what people want to know of them.
type ProcessCounts struct{ Waiting, Running, Dead int }
