package intent

import (
	"time"

	"github.com/google/uuid"
)

// RemoteState is whether a remote agent may connect.
type RemoteState string

// The states.
const (
	RemoteJoined  RemoteState = "joined"
	RemoteRevoked RemoteState = "revoked" // until it joins again
	RemoteRemoved RemoteState = "removed"
)

// RemoteAgent is an agent that runs on, or close to, its target.
type RemoteAgent struct {
	Environment EnvironmentID
	Name        string
	State       RemoteState
	Joined      time.Time
	Ended       *time.Time // when it was revoked or removed
	EndedBy     string
	Program     string // with its version, as the agent says
	Machine     RemoteMachine
	Connected   bool
	Since       *time.Time // when it connected, or was disconnected; nil: it never connected
	Replica     string     // the name of the server process to which it is connected
	Expires     *time.Time // when its newest certificate does; nil: it has none that is valid
	Waiting     int        // commands without an answer
	Problem     string     // what went wrong with it last; empty: nothing
	ProblemAt   *time.Time
}

// RemoteMachine is where a remote agent runs, as it says.
type RemoteMachine struct {
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	Libc    string   `json:"libc"`
	Pythons []string `json:"pythons"`
}

// JoinToken lets one agent join, once. Its secret is not kept.
type JoinToken struct {
	ID          uuid.UUID
	Environment EnvironmentID
	Agent       string
	Made        time.Time
	MadeBy      string
	Expires     time.Time
	Used        *time.Time
	UsedFrom    string // address
	Revoked     *time.Time
}

// AgentCommand is a command to a remote agent, without its payload and its answer.
type AgentCommand struct {
	ID       uuid.UUID
	Agent    string
	Seq      int64
	Action   string
	Subject  string // what a new owner knows it by
	Made     time.Time
	Deadline time.Time
	Sent     *time.Time
	Answered *time.Time
	Status   string // of the answer
}

// NewAgentCommand is a command before it is recorded.
type NewAgentCommand struct {
	ID      uuid.UUID
	Agent   string
	Action  string
	Subject string
	Needs   []string
	Sealed  []byte // the payload, sealed
	Within  time.Duration
}

// State says what became of the token: waiting, used, revoked or expired.
func (t JoinToken) State(now time.Time) string {
	switch {
	case t.Used != nil:
		return "used"
	case t.Revoked != nil:
		return "revoked"
	case !now.Before(t.Expires):
		return "expired"
	}
	return "waiting"
}
