package intent

import (
	"encoding/json"
	"slices"
	"time"
)

// DryRun finds out what deploying a version would change, and changes nothing.
type DryRun struct {
	ID          ActionID
	Environment EnvironmentID
	Version     int // 0 while its commit is being compiled
	Date        time.Time
	Total       int // resources to examine
	Todo        int // counts down to 0
	// Commit is set for a dry run of a commit; Compile is the compile that makes its version.
	Commit  string
	Compile *CompileID
	Filter  DryRunFilter
	// ResourceFilter is the filter that chose its resources when it began, and Context what its client keeps with it:
	// JSON objects as the client sent them, or nil. Chosen are the resources that the filter matched, nil for all; it
	// is written once, and read with Store.DryRunChosen.
	ResourceFilter json.RawMessage
	Context        json.RawMessage
	Chosen         []ResourceID
	Base           int // the version that was active when it was requested; 0: none
	// Ended is nil while it runs. Then Ending says how it ended, and Reason why it failed.
	Ended  *time.Time
	Ending DryRunEnding
	Reason string
	// Unknown is how many resources it could not examine.
	Unknown int
}

// DryRunEnding is how a dry run ended.
type DryRunEnding string

// Endings of a dry run.
const (
	DryRunDone      DryRunEnding = "done"
	DryRunCancelled DryRunEnding = "cancelled"
	DryRunFailed    DryRunEnding = "failed" // its commit could not be compiled
)

// State returns its state in one word: compiling, running, or how it ended.
func (d DryRun) State() string {
	switch {
	case d.Ended != nil:
		return string(d.Ending)
	case d.Version == 0:
		return "compiling"
	}
	return "running"
}

// Complete reports whether it has ended and examined every resource.
func (d DryRun) Complete() bool { return d.Ending == DryRunDone && d.Unknown == 0 }

// DryRunFilter chooses the resources to examine; an empty field chooses all. In Agents
// and Types, * stands for any text and ? for any one character.
type DryRunFilter struct {
	Agents    []string     `json:"agents,omitempty"`
	Types     []string     `json:"types,omitempty"`
	Resources []ResourceID `json:"resources,omitempty"`
}

// IsZero reports whether it chooses everything.
func (f DryRunFilter) IsZero() bool {
	return len(f.Agents) == 0 && len(f.Types) == 0 && len(f.Resources) == 0
}

// Match reports whether it chooses a resource.
func (f DryRunFilter) Match(id ResourceID) bool {
	return matchesOne(f.Agents, id.Agent) && matchesOne(f.Types, id.Type) &&
		(len(f.Resources) == 0 || slices.Contains(f.Resources, id))
}

// DiffUnknown means that the handler could not find out.
const DiffUnknown DiffKind = "unknown"

// Unknown reports whether it is unknown what a deployment would do.
func (k DiffKind) Unknown() bool { return k == DiffUnknown || k == DiffAgentDown }

// Touches reports whether a deployment would create, change or purge the resource.
func (k DiffKind) Touches() bool { return k == DiffAdded || k == DiffModified || k == DiffDeleted }

func matchesOne(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, text) })
}
