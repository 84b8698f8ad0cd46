package intent

import (
	"encoding/json"
	"time"
)

// Compliance says how a resource compares to its intent.
type Compliance string

// HandlerResult is how the last run of the handler ended.
type HandlerResult string

// Blocked says whether a resource may be deployed at all.
type Blocked string

// The values that the API shows (API.md section 6).
const (
	Compliant    Compliance = "compliant"
	HasUpdate    Compliance = "has_update" // the intent changed since it was last deployed
	NonCompliant Compliance = "non_compliant"
	Undefined    Compliance = "undefined" // the intent holds an unknown

	RunNew        HandlerResult = "new" // never ran
	RunSuccessful HandlerResult = "successful"
	RunFailed     HandlerResult = "failed"
	RunSkipped    HandlerResult = "skipped"

	NotBlocked         Blocked = "not_blocked"
	IsBlocked          Blocked = "blocked" // undefined, or behind something undefined
	TemporarilyBlocked Blocked = "temporarily_blocked"
)

// ResourceState is what is known of one resource of an environment.
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
	// LastEvents is when it last changed something, for dependents that receive events.
	LastEvents *time.Time
	Attempts   int // failed runs since the last success or new intent
	// Parked is why it is left alone until a person or new intent frees it; empty: it is not.
	Parked   Parking
	ParkedAt *time.Time
	// RetryAt is when a failed one is tried again, at the earliest; nil: no time of its own.
	RetryAt *time.Time
	// FailedCode marks the handler code under which it failed or was parked; other code frees it.
	FailedCode string
	// Heals are the latest times that drift was put right, oldest first.
	Heals []Heal
	// Drifted: records of drift are open.
	Drifted bool
	// Orphaned is the last version that had it, when the active one has not; 0: not an orphan.
	Orphaned int
}

// Parking is why a resource is left alone.
type Parking string

// Reasons to park a resource.
const (
	NotParked       Parking = ""
	ParkedAttempts  Parking = "attempts"  // it failed too often for one intent
	ParkedContested Parking = "contested" // self-healing reversed the same drift too often
)

// Heal is one time that drift was put right.
type Heal struct {
	Of string    `json:"of"` // the attributes, sorted, with commas between
	At time.Time `json:"at"`
}

// Free ends parking, and forgets what led to it.
func (s *ResourceState) Free() {
	s.Parked, s.ParkedAt, s.RetryAt, s.FailedCode, s.Heals, s.Attempts = NotParked, nil, nil, "", nil, 0
}

// CutOff is what is known of a resource whose run began, or was about to, and whose end
// nobody saw: it may be as before, as intended, or anything between, until it is deployed again.
func (s *ResourceState) CutOff() {
	s.IsDeploying, s.DeployedHash = false, ""
	if s.Compliance == Compliant {
		s.Compliance = HasUpdate
	}
}

// Status is the single word that the older API shows.
type Status string

// The words of the older API, also the outcome that a handler reports.
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

// Status derives the single word; the first rule that matches wins.
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

// AttributeChange is one line of a diff: found beside desired.
type AttributeChange struct {
	Current any `json:"current"`
	Desired any `json:"desired"`
}

// LogLine is one message of a resource action.
type LogLine struct {
	Level     string          `json:"level"` // DEBUG, INFO, WARNING, ERROR, CRITICAL, TRACE
	Message   string          `json:"msg"`   // with the values already filled in
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
