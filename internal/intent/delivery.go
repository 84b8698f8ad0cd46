package intent

import (
	"time"

	"github.com/google/uuid"
)

// HookKind says what a webhook is about.
type HookKind string

// Kinds of webhooks.
const (
	HookPush  HookKind = "push" // a branch moved, was created or deleted
	HookTag   HookKind = "tag"  // a tag was
	HookPull  HookKind = "pull" // a pull or merge request
	HookPing  HookKind = "ping"
	HookOther HookKind = "other"
)

// HookEvent is what a forge told in a webhook: one form for all forges, cut to
// what is needed to act on it again. Strangers wrote every text in it.
type HookEvent struct {
	Kind       HookKind `json:"kind"`
	Name       string   `json:"name,omitempty"`       // the forge's own word for it
	Repository string   `json:"repository,omitempty"` // its name, for people
	URLs       []string `json:"urls,omitempty"`       // all that name the repository
	Ref        string   `json:"ref,omitempty"`        // full name of what moved
	// commit that it pointed to; empty when the forge does not say or there was none
	Before string `json:"before,omitempty"`
	// commit that it points to; empty when the forge does not say or it was deleted
	Commit        string `json:"commit,omitempty"`
	Deleted       bool   `json:"deleted,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"`
	Sender        string `json:"sender,omitempty"`
	Subject       string `json:"subject,omitempty"` // first line of the message of Commit
	// Paths changed between Before and Commit; nothing when they are not all known.
	Paths []string `json:"paths,omitempty"`
	// Pull is set for a HookPull.
	Pull *Pull `json:"pull,omitempty"`
	// More are the other refs that moved, when a forge tells of several in one webhook.
	More []HookEvent `json:"more,omitempty"`
}

// PullAction says what happened to a pull or merge request.
type PullAction string

// What happens to pull requests.
const (
	PullOpened   PullAction = "opened"
	PullUpdated  PullAction = "updated" // commits were pushed to it
	PullReopened PullAction = "reopened"
	PullEdited   PullAction = "edited" // title, text, base or labels
	PullClosed   PullAction = "closed"
	PullMerged   PullAction = "merged"
	PullOther    PullAction = "other"
)

// Pull is a pull or merge request as a webhook tells of it.
type Pull struct {
	Number int        `json:"number"`
	Action PullAction `json:"action"`
	Title  string     `json:"title,omitempty"`
	URL    string     `json:"url,omitempty"` // its page
	Head   PullSide   `json:"head"`
	Base   PullSide   `json:"base"`
	Author string     `json:"author,omitempty"`
	// Association is what the forge says of the author and the repository, in
	// its own words (GitHub: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, NONE …); empty when it says nothing.
	Association string `json:"association,omitempty"`
	// Fork: the head is in another repository than the base.
	Fork  bool `json:"fork,omitempty"`
	Draft bool `json:"draft,omitempty"`
}

// PullSide is one of the two commits of a pull request.
type PullSide struct {
	Ref    string `json:"ref,omitempty"`    // branch, without refs/heads/
	Commit string `json:"commit,omitempty"` // empty when the forge does not say
	URL    string `json:"url,omitempty"`    // of its repository, to clone
}

// HookTarget is an environment that webhooks may notify.
type HookTarget struct {
	Environment EnvironmentID
	Name        string
	Source      Source
	Modules     map[string]string // repositories of the modules that its project uses, by name of module
	Secrets     [][]byte          // each of them can sign for the environment; with none it cannot be notified
}

// Delivery is a webhook that was received.
type Delivery struct {
	ID       uuid.UUID
	Forge    string // dialect: github, gitlab …
	Key      string // the forge's id of the delivery; empty when it has none
	Received time.Time
	Size     int64 // of the payload, in bytes
	Event    HookEvent
	// ReplayOf is the delivery that a person sent again; nil for those of forges.
	ReplayOf *uuid.UUID
	// Verified: the sender knows a secret of the environments. Others are
	// recorded only to tell people what is wrong.
	Verified bool
	Outcomes []DeliveryOutcome
}

// OutcomeState is how a delivery ended for an environment.
type OutcomeState string

// States of outcomes.
const (
	OutcomeWaiting OutcomeState = "waiting" // recorded, not yet looked at
	OutcomeStarted OutcomeState = "started" // a compile was asked for, or a preview
	OutcomeSkipped OutcomeState = "skipped" // it does not concern the environment; Reason says why
	OutcomeFailed  OutcomeState = "failed"  // the server could not act on it
	OutcomeRefused OutcomeState = "refused" // its signature does not fit the environment's secrets
)

// DeliveryOutcome is what a delivery did to one environment.
type DeliveryOutcome struct {
	Environment EnvironmentID
	Name        string // of the environment; filled in by reads
	Module      string // the module whose repository it is about; empty for the environment's own
	State       OutcomeState
	Reason      string
	Compile     *CompileID // what it started
	Handled     *time.Time // nil while it waits
}
