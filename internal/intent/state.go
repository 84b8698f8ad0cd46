package intent

import (
	"encoding/json"
	"time"
)

// Compliance says how a resource compares to its intent.
type Compliance string

// HandlerResult says how the last run of the handler ended.
type HandlerResult string

// Blocked says whether a resource may be deployed at all.
type Blocked string

// Values, as the API shows them (API.md section 6).
const (
	Compliant    Compliance = "compliant"
	HasUpdate    Compliance = "has_update" // the intent changed since it was last deployed
	NonCompliant Compliance = "non_compliant"
	Undefined    Compliance = "undefined" // the intent contains an unknown

	RunNew        HandlerResult = "new" // never ran
	RunSuccessful HandlerResult = "successful"
	RunFailed     HandlerResult = "failed"
	RunSkipped    HandlerResult = "skipped"

	NotBlocked         Blocked = "not_blocked"
	IsBlocked          Blocked = "blocked" // undefined, or behind something undefined
	TemporarilyBlocked Blocked = "temporarily_blocked"
)

// ResourceState is the state of one resource of an environment.
type ResourceState struct {
	ID           ResourceID
	Compliance   Compliance
	LastRun      HandlerResult
	Blocked      Blocked
	IsDeploying  bool
	LastRunAt    *time.Time
	LastSuccess  *time.Time
	LastDeployed int    // version that was last deployed; 0: none
	DeployedHash string // attribute hash last deployed successfully
	IntentHash   string // attribute hash of the active version
	// LastEvents is when its deployment last changed something, for dependents that receive events.
	LastEvents *time.Time
	Attempts   int // failed runs since the last success or new intent
	// Parked says why it is not deployed until a person or a new intent unparks it;
	// empty: it is not parked.
	Parked   Parking
	ParkedAt *time.Time
	// RetryAt is the earliest time at which it is retried after a failure; nil: at the
	// next interval.
	RetryAt *time.Time
	// FailedCode identifies the handler code with which it failed or was parked; other
	// code unparks it.
	FailedCode string
	// Heals holds the latest corrections of drift, oldest first.
	Heals []Heal
	// Drifted means that there are open records of drift.
	Drifted bool
	// Orphaned is the last version that had it, if the active version does not; 0: it is
	// not an orphan.
	Orphaned int
}

// Parking says why a resource is parked.
type Parking string

// Reasons to park a resource.
const (
	NotParked       Parking = ""
	ParkedAttempts  Parking = "attempts"  // it failed too often for one intent
	ParkedContested Parking = "contested" // self-healing reversed the same drift too often
	// A parked resource is never Compliant: nobody looks after it. The scheduler sees to that, and a constraint of
	// the table resource_state holds it to that, so that whatever counts or judges by Compliance or Status agrees.
)

// Heal is a correction of drift.
type Heal struct {
	Of string    `json:"of"` // the attributes, sorted and separated by commas
	At time.Time `json:"at"`
}

// Status is the state in one word, as the older API shows it.
type Status string

// Statuses of the older API; handlers report some of them as their outcome.
const (
	StatusUnavailable          Status = "unavailable"
	StatusSkipped              Status = "skipped"
	StatusDry                  Status = "dry"
	StatusDeployed             Status = "deployed"
	StatusFailed               Status = "failed"
	StatusDeploying            Status = "deploying"
	StatusAvailable            Status = "available"
	StatusCancelled            Status = "cancelled"
	StatusUndefined            Status = "undefined"
	StatusSkippedForUndefined  Status = "skipped_for_undefined"
	StatusSkippedForDependency Status = "skipped_for_dependency"
	StatusNonCompliant         Status = "non_compliant"
	StatusOrphaned             Status = "orphaned"
)

// Status returns the state in one word. The first rule that matches decides.
func (s ResourceState) Status() Status {
	switch {
	case s.Orphaned > 0:
		return StatusOrphaned
	case s.IsDeploying:
		return StatusDeploying
	case s.Compliance == Undefined:
		return StatusUndefined
	case s.Blocked == IsBlocked:
		return StatusSkippedForUndefined
	case s.Compliance == HasUpdate:
		return StatusAvailable
	case s.LastRun == RunSkipped:
		return StatusSkipped
	case s.LastRun == RunFailed:
		return StatusFailed
	case s.Compliance == NonCompliant:
		return StatusNonCompliant
	case s.LastRun == RunSuccessful:
		return StatusDeployed
	}
	return StatusAvailable
}

// Change is the kind of change that a deployment made.
type Change string

// Kinds of change, as the API shows them.
const (
	NoChange Change = "nochange"
	Created  Change = "created"
	Purged   Change = "purged"
	Updated  Change = "updated"
)

// AttributeChange is the current and the desired value of an attribute.
type AttributeChange struct {
	Current any `json:"current"`
	Desired any `json:"desired"`
}

// LogLine is one message of a resource action.
type LogLine struct {
	Level     string          `json:"level"` // DEBUG, INFO, WARNING, ERROR, CRITICAL, TRACE
	Message   string          `json:"msg"`   // with the arguments filled in
	Time      time.Time       `json:"timestamp"`
	Arguments json.RawMessage `json:"kwargs,omitempty"`
}

// ActionKind is what was done to a resource.
type ActionKind string

// Kinds of action.
const (
	ActionStore   ActionKind = "store"
	ActionDeploy  ActionKind = "deploy"
	ActionDryRun  ActionKind = "dryrun"
	ActionGetFact ActionKind = "getfact"
	ActionOther   ActionKind = "other"
)

// Action is one entry of the resource action log.
type Action struct {
	ID          ActionID
	Environment EnvironmentID
	Kind        ActionKind
	Resource    ResourceID
	Version     int
	Started     time.Time
	Finished    *time.Time
	Status      Status
	Change      Change
	Changes     map[string]AttributeChange
	Messages    []LogLine
}

// Secret is what a masked value reads as, everywhere.
const Secret = "***"
