package intent

import "time"

// RollBack says that a version has the content of an earlier version, and why.
type RollBack struct {
	From int `json:"from"` // the version that was left
	To   int `json:"to"`   // the one whose content this has
	// Blocked is the commit of From, which is not deployed again automatically; empty if
	// From has no commit.
	Blocked string `json:"blocked,omitempty"`
	// Branch is the newest commit of the branch that was deployed before the rollback.
	// The next commit must descend from it, or from the commit that is deployed now.
	Branch string    `json:"branch,omitempty"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Block says that a person blocked a commit.
type Block struct {
	Commit string
	By     string
	Reason string
	At     time.Time
}
