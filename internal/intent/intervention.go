package intent

import "time"

// Actor says who did something, why, and when.
type Actor struct {
	By     string
	Reason string // may be empty
	At     time.Time
}

// InterventionKind is what a person did to stop changes or to let them through.
type InterventionKind string

// Kinds of interventions.
const (
	DidHalt        InterventionKind = "halt"
	DidResume      InterventionKind = "resume"
	DidPause       InterventionKind = "pause"
	DidUnpause     InterventionKind = "unpause"
	DidOverride    InterventionKind = "override"
	DidEndOverride InterventionKind = "override_end"
	DidAccept      InterventionKind = "accept"   // a commit that rewrites history
	DidBlock       InterventionKind = "block"    // a commit
	DidUnblock     InterventionKind = "unblock"  // a commit
	DidRollBack    InterventionKind = "rollback" // to an earlier version
	DidApprove     InterventionKind = "approve"  // a pull request, or a promotion
	DidPromote     InterventionKind = "promote"  // a commit from another environment
	DidPauseFollow InterventionKind = "pause_promotions"
	DidFollowAgain InterventionKind = "resume_promotions"
)

// Intervention is the record of what a person did.
type Intervention struct {
	At     time.Time
	By     string
	Kind   InterventionKind
	Agent  string // empty: all
	Reason string
}
