package executor

import (
	"context"
	"encoding/json"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Action is what to do with a resource.
type Action string

// Actions.
const (
	Deploy   Action = "deploy"
	DryRun   Action = "dryrun"
	GetFacts Action = "facts"
)

// Task is one thing to do to one resource.
type Task struct {
	ID        intent.ActionID
	Action    Action
	Resource  intent.Resource
	Blueprint intent.Blueprint
	Reason    string // such as "new version 3" or "repair timer"; logged
	// Requires holds the outcome of each dependency, for handlers that look.
	Requires map[intent.ResourceID]intent.Status
	// DependencyChanged says that something it requires changed since it was
	// last deployed; handlers that can reload then do.
	DependencyChanged bool
	// Lanes is how many tasks of its agent may run side by side, each lane with a
	// thread, a cache and connections of its own; 0 means 1.
	Lanes int
	// Behind: it may be sent before the one before it on its agent has ended, and can be recalled until
	// it begins. Only for Begin, and for agents with one lane.
	Behind bool
	// Timeout of the handler; 0 means the manager's default.
	Timeout time.Duration
}

// Result is how a task ended. Every task gets exactly one.
type Result struct {
	Task     intent.ActionID
	Resource intent.ResourceID
	Version  int
	Status   intent.Status // deployed, failed, skipped, unavailable, dry, non_compliant, skipped_for_dependency
	Change   intent.Change
	Changes  map[string]intent.AttributeChange
	// Withdrawn: the task was Behind, and did not begin and never will. Nothing else is said then.
	Withdrawn bool
	// Unreachable: the handler ran, and could not reach its target.
	Unreachable bool
	Messages    []intent.LogLine
	Facts       []Fact
	// Discovered holds what a discovery resource found: records by the id that
	// each would have as a resource.
	Discovered map[string]json.RawMessage
	Started    time.Time
	Finished   time.Time
}

// Fact is a value that a handler learnt.
type Fact struct {
	Name    string
	Value   string
	Expires bool
}

// Files gives executors the sources and files that versions refer to, from
// the place of record.
type Files interface {
	// File gives the content stored under this hex SHA-1, or a fault of kind NotFound.
	File(ctx context.Context, sha1 string) ([]byte, error)
	// PutFile stores content under its hex SHA-1, which it returns.
	PutFile(ctx context.Context, content []byte) (string, error)
}

// Desk answers calls that handlers make to the server, by their names in the
// API: the status code and the JSON body (nil for none) that a client would
// see. known is false for a call that handlers cannot make. It is called from
// many goroutines.
type Desk interface {
	Call(
		ctx context.Context,
		name string,
		positional []json.RawMessage,
		named map[string]json.RawMessage,
	) (code int, body json.RawMessage, known bool)
}
