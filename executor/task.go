package executor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Action is what to do with a resource.
type Action string

// The actions.
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
	// Requires holds the status of each dependency, for handlers that use it.
	Requires map[intent.ResourceID]intent.Status
	// DependencyChanged reports that a dependency changed since the resource was
	// last deployed. Handlers that can reload do so then.
	DependencyChanged bool
	// Lanes is how many tasks of the agent may run side by side; 0 means 1. Each
	// lane has a thread, a cache and connections of its own.
	Lanes int
	// Behind allows Begin to send the task while the one before it on its agent
	// still runs, so that the process need not wait for it. Recall takes it back
	// until it begins. It is for agents with one lane.
	Behind bool
	// Timeout of the handler; 0 means the manager's default.
	Timeout time.Duration
	// OnLine is called with each line that the handler logs, at once. It must not wait. nil means that the lines of the
	// result are enough.
	OnLine func(intent.LogLine)
}

// ErrEnd is the cause with which a caller cancels the context of a task whose handler shall not go on: its process is
// ended, after other tasks in it have had some time to finish.
var ErrEnd = errors.New("the task is to be ended")

// Result is how a task ended. Every task gets exactly one.
type Result struct {
	Task     intent.ActionID
	Resource intent.ResourceID
	Version  int
	Status   intent.Status // deployed, failed, skipped, unavailable, dry, non_compliant, skipped_for_dependency
	Change   intent.Change
	Changes  map[string]intent.AttributeChange
	// Withdrawn reports that a task with Behind has not begun and never will. The
	// other fields say nothing then.
	Withdrawn bool
	// NotBegun reports that the task never reached a process.
	NotBegun bool
	// Unreachable reports that the handler ran but could not reach its target.
	Unreachable bool
	Messages    []intent.LogLine
	Facts       []Fact
	// Discovered holds what a discovery resource found, by the id that each find
	// would have as a resource.
	Discovered map[string]json.RawMessage
	Started    time.Time
	Finished   time.Time
}

// Fact is a value that a handler learned.
type Fact struct {
	Name    string
	Value   string
	Expires bool
}

// Files reads and stores the sources and files that versions refer to.
type Files interface {
	// File returns the content with this hex SHA-1, or a fault of kind NotFound.
	File(ctx context.Context, sha1 string) ([]byte, error)
	// PutFile stores content and returns its hex SHA-1.
	PutFile(ctx context.Context, content []byte) (string, error)
}

// Contents has what a blueprint refers to by SHA-256.
type Contents interface {
	// Wheel returns the path of a content, which has this hash.
	Wheel(ctx context.Context, hash string) (string, error)
	// Runtime returns the folder with the Python runtime of an archive.
	Runtime(ctx context.Context, hash string) (string, error)
}

// Desk answers calls that handlers make to the server. A call has the name of a
// method of the API; Call returns the status code and the JSON body (nil for
// none) that a client would get. known is false for methods that handlers may
// not call. Many goroutines call it.
type Desk interface {
	Call(
		ctx context.Context,
		name string,
		positional []json.RawMessage,
		named map[string]json.RawMessage,
	) (code int, body json.RawMessage, known bool)
}
