package intent

import (
	"encoding/json"
	"time"
)

// ResourceRow is a resource of the active version with its state, for lists.
type ResourceRow struct {
	State    ResourceState
	Version  int
	Requires []ResourceID
}

// ResourceDetail is everything about one resource.
type ResourceDetail struct {
	Resource Resource
	State    ResourceState
	// FirstGenerated is when a version first had it.
	FirstGenerated time.Time
	// RequiresStatus is the state of each resource that it requires.
	RequiresStatus map[ResourceID]Status
	// Provides are the resources that require it, and ProvidesStatus the state of each.
	Provides       []ResourceID
	ProvidesStatus map[ResourceID]Status
}

// ResourceHistory is one change of a resource's intent.
type ResourceHistory struct {
	Date          time.Time
	Version       int // first version that had these attributes
	Attributes    json.RawMessage
	AttributeHash string
	Requires      []ResourceID
}

// ResourceLog is a line of a resource's log.
type ResourceLog struct {
	Action ActionID
	Kind   ActionKind
	LogLine
}

// DiffKind says how a resource differs between two versions, or between its current
// and its desired state.
type DiffKind string

// Kinds of differences, as the API shows them.
const (
	DiffAdded      DiffKind = "added"
	DiffModified   DiffKind = "modified"
	DiffDeleted    DiffKind = "deleted"
	DiffUnmodified DiffKind = "unmodified"
	DiffAgentDown  DiffKind = "agent_down"
	DiffUndefined  DiffKind = "undefined"
	DiffSkipped    DiffKind = "skipped_for_undefined"
)

// ResourceDiff is one entry of a comparison.
type ResourceDiff struct {
	ID         ResourceID
	Kind       DiffKind
	Attributes map[string]AttributeChange // Current: from; Desired: to
	// Reason says why a dry run could not examine the resource, and Behind what would
	// have to be created first, if that is why.
	Reason string
	Behind ResourceID
}

// Agent is the name of a target.
type Agent struct {
	Name      string
	Paused    bool
	Resources int // in the active version
	Breaker   Breaker
	// PausedBy and PausedAt say who paused it and when; empty if it is not paused.
	PausedBy string
	PausedAt *time.Time
}

// Parameter is a value for later compiles. It is a fact if Resource is set.
type Parameter struct {
	ID       ActionID
	Name     string
	Value    string
	Source   string // fact, plugin, user, report
	Resource ResourceID
	Updated  time.Time
	Expires  bool
	Metadata map[string]any
	SetBy    string // the person or token that set it; empty when no request did
}

// FactsDue is a resource whose facts have to be fetched, now or later.
type FactsDue struct {
	Resource ResourceID
	Updated  *time.Time // when the oldest fact that expires was fetched
	Unknown  bool       // the model waits for them
}
