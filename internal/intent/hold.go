package intent

import "time"

// Guard says which versions a person has to confirm before they are deployed: those
// that take away many resources, or a protected one.
type Guard struct {
	Share     int // percent; more of the resources than this
	Minimum   int // and at least so many
	Protected Patterns
}

// GuardOf reads the guard from an environment's settings.
func GuardOf(e Environment) Guard {
	// The setting was checked when it was stored.
	protected, _ := ParsePatterns(e.Text("protected_resources"))
	return Guard{Share: e.Int("prune_share"), Minimum: e.Int("prune_minimum"), Protected: protected}
}

// Removal is what a version takes away from the deployed one: the resources that it
// no longer has, and those that it purges. Resources that were purged already do not
// count.
type Removal struct {
	Before      int           `json:"before"`       // the deployed version; 0: none
	BeforeTotal int           `json:"before_total"` // its resources
	Live        int           `json:"live"`         // those of them that are not purged
	Total       int           `json:"total"`        // resources of the new version
	Gone        int           `json:"gone"`
	Purged      int           `json:"purged"`
	Types       []RemovedType `json:"types"` // most first
	First       []Removed     `json:"first"` // the first of them by id
	// Protected holds the first protected resources by id, ProtectedCount how many there are.
	Protected      []Removed `json:"protected"`
	ProtectedCount int       `json:"protected_count"`
}

// Count returns how many resources a version takes away.
func (r Removal) Count() int { return r.Gone + r.Purged }

// RemovedType counts the resources of a type that are taken away.
type RemovedType struct {
	Type   string `json:"type"`
	Gone   int    `json:"gone"`
	Purged int    `json:"purged"`
}

// Removed is a resource that is taken away.
type Removed struct {
	ID     ResourceID `json:"resource_id"`
	Purged bool       `json:"purged"` // purged by the model; otherwise no longer in it
}

// RemovalShown is how many resources and types a removal lists.
const RemovalShown = 100

// HoldReason says why a version is held.
type HoldReason string

// Reasons of a hold.
const (
	HeldEmpty     HoldReason = "empty"     // it has no resources, and the active version has some
	HeldShare     HoldReason = "share"     // it takes away too large a part
	HeldProtected HoldReason = "protected" // it takes away something protected, and cannot be confirmed
)

// Hold says why a version waits for a person.
type Hold struct {
	Since   time.Time    `json:"since"`
	Reasons []HoldReason `json:"reasons"`
	Text    string       `json:"text"` // the reasons in words
	Removal
}

// Confirmable reports whether a person may release it as it is.
func (h Hold) Confirmable() bool { return h.ProtectedCount == 0 }

// Confirmation says who released a held version, and why.
type Confirmation struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}
