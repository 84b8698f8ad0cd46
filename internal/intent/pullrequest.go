package intent

import "time"

// PullState is the state of a pull request.
type PullState string

// States of a pull request, as its forge has them.
const (
	PullIsOpen   PullState = "open"
	PullIsClosed PullState = "closed"
	PullIsMerged PullState = "merged"
)

// PullRequest is a pull or merge request towards the branch of an environment, as its
// forge last described it, with its preview.
type PullRequest struct {
	Environment EnvironmentID
	Number      int
	State       PullState
	Title       string
	URL         string // its page
	Author      string
	Fork        bool // its commits are in another repository
	Trusted     bool // its code may run without approval
	Base        string
	Head        string // commit
	Updated     time.Time
	// Approved is the commit that a person approved, with who did and when.
	Approved   string
	ApprovedBy string
	ApprovedAt *time.Time
	// DryRun is the newest preview, and PreviewOf the head that it was computed for.
	DryRun    *ActionID
	PreviewOf string
	// Problem says why there is no preview, if it could not be computed.
	Problem string
	// Comment is the forge's id of the comment that is kept up to date.
	Comment string
	// Preview is the dry run; it is set when the pull request is read.
	Preview *DryRun
}

// PreviewState is the state of a pull request's preview.
type PreviewState string

// States of a preview.
const (
	PreviewNone     PreviewState = "none"
	PreviewApproval PreviewState = "needs approval"
	PreviewRunning  PreviewState = "running"
	PreviewDone     PreviewState = "done"
	PreviewFailed   PreviewState = "failed"
	PreviewOld      PreviewState = "cancelled"
	PreviewClosed   PreviewState = "closed"
)

// MayRun reports whether the code of its head may run on the server.
func (p PullRequest) MayRun() bool { return p.Trusted || p.Approved != "" && p.Approved == p.Head }

// PreviewState returns the state of the preview of its head.
func (p PullRequest) PreviewState() PreviewState {
	switch {
	case p.State != PullIsOpen:
		return PreviewClosed
	case !p.MayRun():
		return PreviewApproval
	case p.DryRun == nil || p.PreviewOf != p.Head || p.Preview == nil:
		if p.Problem != "" {
			return PreviewFailed
		}
		return PreviewNone
	case p.Preview.Ended == nil:
		return PreviewRunning
	case p.Preview.Ending == DryRunDone:
		return PreviewDone
	case p.Preview.Ending == DryRunFailed:
		return PreviewFailed
	}
	return PreviewOld
}

// Short returns the seven characters of its head that pages show.
func (p PullRequest) Short() string { return Revision{Commit: p.Head}.Short() }

// OutboxKind is the kind of a request to a forge.
type OutboxKind string

// Kinds of requests to a forge.
const (
	OutboxStatus  OutboxKind = "status"  // set the status of a commit
	OutboxComment OutboxKind = "comment" // update the comment on a pull request
	OutboxPull    OutboxKind = "pull"    // read a pull request
	OutboxPulls   OutboxKind = "pulls"   // look for pull requests that no webhook announced
)

// OutboxState is the state of a request to a forge.
type OutboxState string

// States of requests to a forge.
const (
	OutboxWaiting OutboxState = "waiting"
	OutboxSent    OutboxState = "sent"
	OutboxDead    OutboxState = "dead" // it failed too often, or can never succeed
)

// Outbox is a request to a forge. A newer request about the same topic replaces one
// that waits.
type Outbox struct {
	ID          int64
	Environment EnvironmentID
	Kind        OutboxKind
	Topic       string
	Round       int // grows when a newer request replaces it
	Payload     OutboxPayload
	Created     time.Time
	Attempts    int
	Next        time.Time // when it is tried next
	State       OutboxState
	Problem     string // of the last attempt
	Done        *time.Time
}

// OutboxPayload is the content of a request; which fields are set depends on the kind.
type OutboxPayload struct {
	Number int `json:"number,omitempty"` // of the pull request
	// Of a status.
	Commit      string      `json:"commit,omitempty"`
	Context     string      `json:"context,omitempty"`
	State       CommitState `json:"state,omitempty"`
	Description string      `json:"description,omitempty"`
	Path        string      `json:"path,omitempty"` // page of the console
}

// CommitState is the state of a commit that a forge shows.
type CommitState string

// States of commits.
const (
	CommitPending   CommitState = "pending"
	CommitSuccess   CommitState = "success"
	CommitFailure   CommitState = "failure"
	CommitCancelled CommitState = "cancelled" // something newer replaced it
)
