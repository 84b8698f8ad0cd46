package intent

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// RequestKind says what the owner of an environment is asked for.
type RequestKind string

// Kinds of requests. What most of them are about is recorded elsewhere; the request makes the owner look at it.
const (
	RequestDeploy       RequestKind = "deploy"         // detail: DeployRequest
	RequestUnpark       RequestKind = "unpark"         // detail: the resources
	RequestPause        RequestKind = "pause"          // detail: PauseRequest
	RequestFacts        RequestKind = "facts"          // detail: the resources
	RequestDryRun       RequestKind = "dryrun"         // detail: its id
	RequestCancelDryRun RequestKind = "cancel dryrun"  // detail: its id
	RequestCancel       RequestKind = "cancel compile" // detail: CancelRequest
	RequestRelease      RequestKind = "release"        // a version was released
	RequestLook         RequestKind = "look"           // the environment, its settings or secrets changed
	RequestClear        RequestKind = "clear"          // its record was deleted: begin anew, with empty folders
	RequestVenvs        RequestKind = "venvs"          // remove the virtual environments of executors
)

// Request asks the owner of an environment for something. The owner takes requests in the order of their ids.
type Request struct {
	ID          int64
	Environment EnvironmentID
	Kind        RequestKind
	Detail      json.RawMessage
	Made        time.Time
	// Taken is when an owner first began with it; nil: none has.
	Taken *time.Time
}

// DeployRequest asks for a deployment of what is not as intended, or with Full of everything. No agents and no
// resources means all.
type DeployRequest struct {
	Full      bool         `json:"full"`
	Agents    []string     `json:"agents,omitempty"`
	Resources []ResourceID `json:"resources,omitempty"`
}

// PauseRequest says that an agent was paused or resumed; every agent when the name is empty.
type PauseRequest struct {
	Agent  string `json:"agent"`
	Paused bool   `json:"paused"`
}

// CancelRequest says that a person cancelled a compile.
type CancelRequest struct {
	Compile CompileID `json:"compile"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
}

// Replica is a server process.
type Replica struct {
	ID      uuid.UUID
	Name    string // for people
	Roles   []string
	Version string
	Address string // where it answers; empty when it does not listen
	Started time.Time
	Seen    time.Time // by the clock of the database
	Owned   int       // environments that it owns
	Wanted  int       // its share of them
}
