package scheduler

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Priority orders wishes; the lower one goes first. Pushed work always
// precedes periodic work.
type Priority uint8

// Priorities, most urgent first.
const (
	UserDeploy  Priority = iota // a person asked for what is not as intended
	NewVersion                  // the intent changed
	UserRepair                  // a person asked for everything
	DeployTimer                 // periodic: what is not as intended
	RepairTimer                 // periodic: everything
	priorities
)

// Periodic tells timers from pushes.
func (p Priority) Periodic() bool { return p >= DeployTimer }

// String names a priority as logs and pages show it.
func (p Priority) String() string {
	switch p {
	case UserDeploy:
		return "user deploy"
	case NewVersion:
		return "new version"
	case UserRepair:
		return "user repair"
	case DeployTimer:
		return "deploy timer"
	case RepairTimer:
		return "repair timer"
	}
	return "unknown priority"
}

// Command is what the scheduler wants done: a Start or a SetState. Commands
// are carried out in the order in which they were given.
type Command interface{ isCommand() }

// Start asks for one run of a resource's handler. Exactly one Outcome with
// this resource and version must come back through TaskDone.
type Start struct {
	Resource intent.Resource // as the version has it
	Priority Priority
	Reason   string // for people: "new version 3"
	// Requires is the status of everything the resource had to wait for, by id.
	Requires []Dependency
	// DependencyChanged: something that it requires, and that sends events,
	// changed something since the resource was last deployed well.
	DependencyChanged bool
}

// Dependency is what a resource needs, and how it fared.
type Dependency struct {
	ID     intent.ResourceID
	Status intent.Status
}

// SetState gives the state of a resource after a task ended or was skipped.
type SetState struct {
	State intent.ResourceState
	// Skipped is set when no task ran, because of the dependency named in Cause.
	Skipped bool
	Version int // of the intent that was skipped
	Cause   intent.ResourceID
	Reason  string
}

func (Start) isCommand()    {}
func (SetState) isCommand() {}

// Outcome is how a started task ended.
type Outcome struct {
	ID      intent.ResourceID
	Version int           // of the Start it answers
	Status  intent.Status // deployed, failed, skipped, unavailable, non_compliant, skipped_for_dependency
	Change  intent.Change
}

// Snapshot is the intent and what is known of it.
type Snapshot struct {
	Version   int
	Resources []intent.Resource
	// States of everything known, orphans included. Resources without one are
	// new. Where IsDeploying is set, a run was cut off: it is done again.
	States       []intent.ResourceState
	PausedAgents []string
	Halted       bool
	// Code tells, per resource type, which handler code the version has: any
	// text that changes with it. A resource that is not as intended is tried
	// again when its code changed.
	Code map[string]string
	Now  time.Time
}

// Limits bound what runs. The zero value means the defaults.
type Limits struct {
	// Concurrency is how many tasks may run at once in the environment, 0 for one per agent.
	Concurrency int
	// RetryBase is the pause after the first failure; it doubles with each further one up to RetryCap.
	RetryBase time.Duration // default 30 s
	RetryCap  time.Duration // default 1 h
	Seed      uint64        // of the jitter
}

func (l Limits) withDefaults() Limits {
	if l.RetryBase <= 0 {
		l.RetryBase = 30 * time.Second
	}
	if l.RetryCap <= 0 {
		l.RetryCap = time.Hour
	}
	return l
}

// room tells whether one more task of a priority may start beside those that
// run. A quarter of the places, and at least one of several, is kept free of
// periodic work, so that a push finds room.
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
