package intent

import (
	"time"

	"github.com/google/uuid"
)

// HookKind says what a webhook is about.
type HookKind string

// Kinds of webhooks.
const (
	HookPush  HookKind = "push" // a branch was pushed to, created or deleted
	HookTag   HookKind = "tag"  // a tag was pushed, created or deleted
	HookPull  HookKind = "pull" // a pull or merge request
	HookPing  HookKind = "ping"
	HookOther HookKind = "other"
)

// HookEvent is the content of a webhook in one form for all forges, reduced to what
// is needed to process it again. All text in it is untrusted.
type HookEvent struct {
	Kind       HookKind `json:"kind"`
	Name       string   `json:"name,omitempty"`       // the forge's name for the event
	Repository string   `json:"repository,omitempty"` // its name, for people
	URLs       []string `json:"urls,omitempty"`       // all URLs of the repository
	Ref        string   `json:"ref,omitempty"`        // full name of the branch or tag
	// the commit that it pointed to; empty if it is unknown or there was none
	Before string `json:"before,omitempty"`
	// the commit that it points to; empty if it is unknown or the ref was deleted
	Commit        string `json:"commit,omitempty"`
	Deleted       bool   `json:"deleted,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"`
	Sender        string `json:"sender,omitempty"`
	Subject       string `json:"subject,omitempty"` // first line of the message of Commit
	// Paths holds what changed between Before and Commit; empty unless all are known.
	Paths []string `json:"paths,omitempty"`
	// Pull is set for a HookPull.
	Pull *Pull `json:"pull,omitempty"`
	// More holds the other refs that changed, if the webhook has several.
	More []HookEvent `json:"more,omitempty"`
}

// PullAction says what happened to a pull or merge request.
type PullAction string

// Actions on pull requests.
const (
	PullOpened   PullAction = "opened"
	PullUpdated  PullAction = "updated" // commits were pushed to it
	PullReopened PullAction = "reopened"
	PullEdited   PullAction = "edited" // title, text, base or labels
	PullClosed   PullAction = "closed"
	PullMerged   PullAction = "merged"
	PullOther    PullAction = "other"
)

// Pull is a pull or merge request as a webhook describes it.
type Pull struct {
	Number int        `json:"number"`
	Action PullAction `json:"action"`
	Title  string     `json:"title,omitempty"`
	URL    string     `json:"url,omitempty"` // its page
	Head   PullSide   `json:"head"`
	Base   PullSide   `json:"base"`
	Author string     `json:"author,omitempty"`
	// Association is the author's role in the repository, in the forge's words (GitHub:
	// OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, NONE …); empty if unknown.
	Association string `json:"association,omitempty"`
	// Fork means that the head is in another repository than the base.
	Fork  bool `json:"fork,omitempty"`
	Draft bool `json:"draft,omitempty"`
}

// PullSide is one of the two commits of a pull request.
type PullSide struct {
	Ref    string `json:"ref,omitempty"`    // branch, without refs/heads/
	Commit string `json:"commit,omitempty"` // empty if the forge does not say
	URL    string `json:"url,omitempty"`    // of its repository, to clone
}

// HookTarget is an environment that webhooks may notify.
type HookTarget struct {
	Environment EnvironmentID
	Name        string
	Source      Source
	Modules     map[string]string // repositories of the modules that its project uses, by name of module
	Secrets     [][]byte          // each can sign webhooks for the environment; without any it cannot be notified
}

// Delivery is a webhook that was received.
type Delivery struct {
	ID       uuid.UUID
	Forge    string // dialect: github, gitlab …
	Key      string // the forge's id of the delivery; empty if it has none
	Received time.Time
	Size     int64 // of the payload, in bytes
	Event    HookEvent
	// ReplayOf is the delivery that a person sent again; nil if a forge sent this one.
	ReplayOf *uuid.UUID
	// Verified means that the sender knows a secret of an environment. Other
	// deliveries are recorded only so that people can see what is wrong.
	Verified bool
	Outcomes []DeliveryOutcome
}

// OutcomeState is how a delivery ended for an environment.
type OutcomeState string

// States of outcomes.
const (
	OutcomeWaiting OutcomeState = "waiting" // recorded, not yet processed
	OutcomeStarted OutcomeState = "started" // a compile or a preview was requested
	OutcomeSkipped OutcomeState = "skipped" // it does not concern the environment; see Reason
	OutcomeFailed  OutcomeState = "failed"  // the server could not process it
	OutcomeRefused OutcomeState = "refused" // its signature does not match the environment's secrets
)

// DeliveryOutcome is what a delivery led to in one environment.
type DeliveryOutcome struct {
	Environment EnvironmentID
	Name        string // of the environment; filled in by reads
	Module      string // the module whose repository it is about; empty for the environment's own
	State       OutcomeState
	Reason      string
	Compile     *CompileID // the compile that it started
	Handled     *time.Time // nil while it waits
}
