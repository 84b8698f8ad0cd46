package intent

import (
	"slices"
	"strings"
	"time"
)

// AllowPushed is the setting that lets people send versions that were compiled on other machines.
const AllowPushed = "allow_pushed_versions"

// TriggerPushed is the trigger type of a compile that ran on another machine, whose result was sent to the server.
const TriggerPushed = "pushed"

// Pushed says that a version was compiled on another machine and sent to the server: it is not from a commit that the
// server has read. Nothing that the client says was checked; only By and When are the server's own.
type Pushed struct {
	By     string    `json:"by"` // the person or token that sent it
	When   time.Time `json:"when"`
	User   string    `json:"user,omitempty"` // the account on that machine
	Host   string    `json:"host,omitempty"`
	Client string    `json:"client,omitempty"` // the program that compiled it
	Commit string    `json:"commit,omitempty"` // the commit that was checked out there
	Branch string    `json:"branch,omitempty"`
	// Dirty says whether the working tree had changes that were not committed; nil: the client did not say.
	Dirty   *bool  `json:"dirty,omitempty"`
	Message string `json:"message,omitempty"`
	// Constraints are the version constraints that the project sets for the packages of agents, one per line.
	Constraints string `json:"constraints,omitempty"`
	// After is the newest commit of the branch that was deployed before. The next commit must descend from it.
	After string `json:"after,omitempty"`
}

// Tree returns what was checked out, for people.
func (p Pushed) Tree() string {
	switch {
	case p.Commit == "" && p.Dirty == nil:
		return "an unknown working tree"
	case p.Commit == "":
		return "a working tree without commits"
	}
	at := "commit " + Revision{Commit: p.Commit}.Short()
	switch {
	case p.Dirty == nil:
		return at + ", perhaps with changes"
	case *p.Dirty:
		return at + " with uncommitted changes"
	}
	return at + " without changes"
}

// From returns who sent the version and from where, for people.
func (p Pushed) From() string {
	var b strings.Builder
	b.WriteString("pushed by " + p.By)
	switch {
	case p.User != "" && p.Host != "":
		b.WriteString(" (" + p.User + " on " + p.Host + ")")
	case p.Host != "":
		b.WriteString(" (on " + p.Host + ")")
	case p.User != "":
		b.WriteString(" (" + p.User + ")")
	}
	return b.String()
}

// Words says in one sentence that the version is not from a commit, and where it is from.
func (p Pushed) Words() string {
	return "not from a commit: " + p.From() + ", compiled from " + p.Tree()
}

// BranchCommit returns the newest commit of the branch that a version follows: its own or, for a pushed version, the
// one that was deployed before.
func (p Provenance) BranchCommit() string {
	if p.Pushed != nil {
		return p.Pushed.After
	}
	return p.Commit
}

// ConstraintLines returns the constraints for packages of agents, sorted.
func (p Pushed) ConstraintLines() []string {
	var out []string
	for line := range strings.Lines(p.Constraints) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
