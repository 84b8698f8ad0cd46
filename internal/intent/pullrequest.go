package intent

import "time"

// PullState is whether a pull request is still one.
type PullState string

// States of a pull request, as its forge has them.
const (
	PullIsOpen   PullState = "open"
	PullIsClosed PullState = "closed"
	PullIsMerged PullState = "merged"
)

// PullRequest is a pull or merge request towards the branch of an environment,
// as its forge last told of it, and what became of its preview.
type PullRequest struct {
	Environment EnvironmentID
	Number      int
	State       PullState
	Title       string
	URL         string // its page
	Author      string
	Fork        bool // its commits are in another repository
	Trusted     bool // its code may run without anybody's approval
	Base        string
	Head        string // commit
	Updated     time.Time
	// Approved is the commit whose code a person let run, with who did and when.
	Approved   string
	ApprovedBy string
	ApprovedAt *time.Time
	// DryRun is the newest preview, PreviewOf the head that it is of.
	DryRun    *ActionID
	PreviewOf string
	// Problem is why there is no preview, where that is so.
	Problem string
	// Comment is the forge's id of the comment that is kept up to date.
	Comment string
	// Preview is the dry run, filled in by reads.
	Preview *DryRun
}

// PreviewState is where the preview of a pull request stands.
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

// MayRun tells that the code of its head may run here.
func (p PullRequest) MayRun() bool { return p.Trusted || p.Approved != "" && p.Approved == p.Head }

// PreviewState gives the state of what was computed for its head.
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

// Short is the seven characters of its head that pages show.
func (p PullRequest) Short() string { return Revision{Commit: p.Head}.Short() }

// OutboxKind is what is to be told to, or asked of, a forge.
type OutboxKind string

// Kinds of work for a forge.
const (
	OutboxStatus  OutboxKind = "status"  // of a commit
	OutboxComment OutboxKind = "comment" // bring the comment of a pull request up to date
	OutboxPull    OutboxKind = "pull"    // look a pull request up
	OutboxPulls   OutboxKind = "pulls"   // look for pull requests that nobody told of
)

// OutboxState is where a piece of work for a forge stands.
type OutboxState string

// States of work for a forge.
const (
	OutboxWaiting OutboxState = "waiting"
	OutboxSent    OutboxState = "sent"
	OutboxDead    OutboxState = "dead" // it was tried too often, or can never succeed
)

// Outbox is one piece of work for a forge. Newer work about the same topic
// takes the place of what waits.
type Outbox struct {
	ID          int64
	Environment EnvironmentID
	Kind        OutboxKind
	Topic       string
	Round       int // grows when newer work took its place
	Payload     OutboxPayload
	Created     time.Time
	Attempts    int
	Next        time.Time // when it is tried next
	State       OutboxState
	Problem     string // of the last attempt
	Done        *time.Time
}

// OutboxPayload says what; which fields are set depends on the kind.
type OutboxPayload struct {
	Number int `json:"number,omitempty"` // of the pull request
	// Of a status.
	Commit      string      `json:"commit,omitempty"`
	Context     string      `json:"context,omitempty"`
	State       CommitState `json:"state,omitempty"`
	Description string      `json:"description,omitempty"`
	Path        string      `json:"path,omitempty"` // page of the console
}

// CommitState is what a status says of a commit.
type CommitState string

// States of commits.
const (
	CommitPending   CommitState = "pending"
	CommitSuccess   CommitState = "success"
	CommitFailure   CommitState = "failure"
	CommitCancelled CommitState = "cancelled" // something newer took its place
)
