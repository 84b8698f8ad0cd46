package intent

import (
	"slices"
	"time"
)

// DryRun finds out what deploying a version would change, and changes nothing.
type DryRun struct {
	ID          ActionID
	Environment EnvironmentID
	Version     int // 0 as long as its commit is compiled
	Date        time.Time
	Total       int // resources to look at
	Todo        int // counts down to 0
	// Commit is what was asked for, where it was a commit; Compile is what makes its version.
	Commit  string
	Compile *CompileID
	Filter  DryRunFilter
	Base    int // the version that was active when it was asked for; 0: none
	// Ended is nil as long as it goes on; then Ending says how, and Reason why it failed.
	Ended  *time.Time
	Ending DryRunEnding
	Reason string
	// Unknown is how many resources it could not tell about.
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

// State is one word for where it stands: compiling, running, or how it ended.
func (d DryRun) State() string {
	switch {
	case d.Ended != nil:
		return string(d.Ending)
	case d.Version == 0:
		return "compiling"
	}
	return "running"
}

// Complete tells that it ended and could tell about every resource.
func (d DryRun) Complete() bool { return d.Ending == DryRunDone && d.Unknown == 0 }

// DryRunFilter chooses what to look at; what is empty chooses all. In Agents
// and Types, * and ? stand for any text and any one character.
type DryRunFilter struct {
	Agents    []string     `json:"agents,omitempty"`
	Types     []string     `json:"types,omitempty"`
	Resources []ResourceID `json:"resources,omitempty"`
}

// IsZero tells that it chooses everything.
func (f DryRunFilter) IsZero() bool {
	return len(f.Agents) == 0 && len(f.Types) == 0 && len(f.Resources) == 0
}

// Match tells whether it chooses a resource.
func (f DryRunFilter) Match(id ResourceID) bool {
	return matchesOne(f.Agents, id.Agent) && matchesOne(f.Types, id.Type) &&
		(len(f.Resources) == 0 || slices.Contains(f.Resources, id))
}

// DiffUnknown: the handler could not tell.
const DiffUnknown DiffKind = "unknown"

// Unknown tells that nothing is known of what a deployment would do.
func (k DiffKind) Unknown() bool { return k == DiffUnknown || k == DiffAgentDown }

func matchesOne(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, text) })
}
