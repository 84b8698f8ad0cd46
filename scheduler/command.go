package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Priority orders wishes; the lower one goes first. Pushed work always precedes periodic work.
type Priority uint8

// Priorities, most urgent first.
const (
	UserDeploy  Priority = iota // a person asked for what is not as intended
	NewVersion                  // the intent changed
	UserRepair                  // a person asked for everything
	DryRun                      // a job: what would change
	DeployTimer                 // periodic: what is not as intended
	FactRefresh                 // a job: what a resource can tell
	RepairTimer                 // periodic: everything
	priorities
)

// Periodic reports whether a timer asks, and not a push or a person.
func (p Priority) Periodic() bool { return p >= DeployTimer }

// String returns the priority as logs and pages show it.
func (p Priority) String() string {
	switch p {
	case UserDeploy:
		return "user deploy"
	case NewVersion:
		return "new version"
	case UserRepair:
		return "user repair"
	case DryRun:
		return "dry run"
	case DeployTimer:
		return "deploy timer"
	case FactRefresh:
		return "fact refresh"
	case RepairTimer:
		return "repair timer"
	}
	return "unknown priority"
}

// Command is what the scheduler wants done: a Start, a SetState, a SetBreaker, a StartJob, a RefuseJob or a Recall.
// Commands are carried out in the order in which they were returned.
type Command interface{ isCommand() }

// Start asks for one run of a resource's handler. Exactly one Outcome with this resource and version must come back
// through TaskDone.
type Start struct {
	Resource intent.Resource // as the version has it
	Priority Priority
	Reason   string // for people: "new version 3"
	// Requires is the status of everything the resource had to wait for, by id.
	Requires []Dependency
	// DependencyChanged: something that it requires, and that sends events, changed something since the resource was
	// last deployed well.
	DependencyChanged bool
	// Report: find out what differs, and enforce nothing.
	Report bool
}

// Dependency is something that a resource needs, with its status.
type Dependency struct {
	ID     intent.ResourceID
	Status intent.Status
}

// SetState is the state of a resource after a task ended or was skipped.
type SetState struct {
	State intent.ResourceState
	// Skipped is set when no task ran, because of the dependency named in Cause or because of protection.
	Skipped bool
	// Protected: no task ran, because it would have purged what is protected.
	Protected bool
	Version   int // of the intent that was skipped
	Cause     intent.ResourceID
	Reason    string
	// Freed is set when no task ran, and a person or new handler code ended the parking.
	Freed bool
	// Parked is set when this outcome parked it.
	Parked bool
	// Drift is what the outcome says about drift.
	Drift Drift
}

// SetBreaker is the state of an agent's breaker after the outcome of a task on it. It comes right behind the SetState
// of that outcome.
type SetBreaker struct {
	Agent   string
	Breaker intent.Breaker
	Opened  bool // it was closed before
}

func (Start) isCommand()      {}
func (SetState) isCommand()   {}
func (SetBreaker) isCommand() {}

// Outcome is how a started task ended.
type Outcome struct {
	ID      intent.ResourceID
	Version int           // of the Start it answers
	Status  intent.Status // deployed, failed, skipped, unavailable, non_compliant, skipped_for_dependency
	Change  intent.Change
	// Differed are the attributes that were found to differ from what is desired, sorted.
	Differed []string
	// Unreachable: the handler could not reach its target.
	Unreachable bool
}

// Snapshot is the intent and what is known of it.
type Snapshot struct {
	Version   int
	Resources []intent.Resource
	// States of everything known, orphans included. Resources without one are new. Where IsDeploying is set, a run
	// was cut off: it is repeated.
	States       []intent.ResourceState
	PausedAgents []string
	Breakers     map[string]intent.Breaker // of agents; those that are open
	Halted       bool
	// Code is, per resource type, a text that changes with the version's handler code. A resource that is not as
	// intended is tried again when its code changed.
	Code map[string]string
	Now  time.Time
}

// Limits bound what runs. The zero value means the defaults.
type Limits struct {
	// Concurrency is how many tasks may run at once in the environment, 0 for one per agent.
	Concurrency int
	// DryRuns and Facts are how many jobs of each kind may run at once beside that.
	DryRuns int // default 4
	Facts   int // default 4
	// RetryBase is the pause after the first failure; it doubles with each further one up to RetryCap.
	RetryBase time.Duration // default 30 s
	RetryCap  time.Duration // default 1 h
	Seed      uint64        // of the jitter
}

func (l Limits) withDefaults() Limits {
	if l.DryRuns <= 0 {
		l.DryRuns = 4
	}
	if l.Facts <= 0 {
		l.Facts = 4
	}
	if l.RetryBase <= 0 {
		l.RetryBase = 30 * time.Second
	}
	if l.RetryCap <= 0 {
		l.RetryCap = time.Hour
	}
	return l
}

// room reports whether one more task of a priority may start beside those that are running. A quarter of the places,
// and at least one of several, is kept free of periodic work, so that a push finds room.
func (l Limits) room(p Priority, running, periodic int) bool {
	if l.Concurrency <= 0 {
		return true
	}
	if running >= l.Concurrency {
		return false
	}
	if p.Periodic() && l.Concurrency > 1 {
		return periodic < l.Concurrency-max(1, l.Concurrency/4)
	}
	return true
}

// Filter chooses resources; the zero value chooses all.
type Filter struct {
	Agents    []string
	Resources []intent.ResourceID
}
