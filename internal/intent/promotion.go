package intent

import (
	"time"

	"github.com/google/uuid"
)

// followSettings are the settings for following another environment.
var followSettings = []Setting{
	{
		Name: "follow", Group: GroupPromotion, Title: "Environment to follow",
		People:  true,
		Type:    SettingText,
		Default: "",
		Doc: "Name of another environment of this project and repository, such as staging. The commit that is " +
			"deployed there is deployed here too, once the gates follow_soak, follow_compliant, follow_no_drift and " +
			"follow_approval are open. Empty: deploy the tip of the branch.",
	},
	{
		Name: "follow_soak", Group: GroupPromotion, Title: "Time a commit must have run there", Unit: Seconds,
		People:  true,
		Type:    SettingInt,
		Default: 0,
		Most:    366 * 86400,
		Doc: "How many seconds a commit must have been deployed in the followed environment without a failed " +
			"deployment.",
	},
	{
		Name: "follow_compliant", Group: GroupPromotion, Title: "Only when everything there is compliant",
		People:  true,
		Type:    SettingBool,
		Default: true,
		Doc:     "Take a commit only if every resource of the followed environment is compliant.",
	},
	{
		Name: "follow_no_drift", Group: GroupPromotion, Title: "Only when nothing has drifted there",
		People:  true,
		Type:    SettingBool,
		Default: true,
		Doc:     "Take a commit only if the followed environment has no open record of drift.",
	},
	{
		Name: "follow_approval", Group: GroupPromotion, Title: "Only after a person approved",
		People:  true,
		Type:    SettingBool,
		Default: false,
		Doc:     "Take a commit only if a person approved exactly that commit.",
	},
}

// Follows returns the name of the environment of the same project whose deployed
// commit this one takes, or an empty string if it follows its branch.
func (e Environment) Follows() string { return e.Text("follow") }

// FollowPolicy is what must be true before an environment takes a commit of the one
// that it follows.
type FollowPolicy struct {
	Soak      time.Duration
	Compliant bool
	NoDrift   bool
	Approval  bool
}

// FollowPolicy reads the settings.
func (e Environment) FollowPolicy() FollowPolicy {
	return FollowPolicy{
		Soak: secondsDuration(e.Int("follow_soak")), Compliant: e.Bool("follow_compliant"),
		NoDrift: e.Bool("follow_no_drift"), Approval: e.Bool("follow_approval"),
	}
}

// Followed is what an environment has deployed at one moment, for the environments
// that follow it.
type Followed struct {
	Version    int // its active version; 0: none
	Provenance Provenance
	Since      time.Time // since when it has had the commit without a break
	Blocked    *Block    // set if its commit is blocked there
	// Broke is when a deployment, of BrokeOf, last failed since then.
	Broke   *time.Time
	BrokeOf string
	// Differ counts the resources that are not compliant, and Drifted the open records
	// of drift; the lists name the first ones.
	Differ      int
	DifferFirst []string
	Drifted     int
	DriftFirst  []string
}

// Names of the gates of a promotion.
const (
	GateSoak      = "soak"
	GateCompliant = "compliant"
	GateNoDrift   = "no_drift"
	GateApproval  = "approval"
	// GatePaused exists while promotions are paused.
	GatePaused = "paused"
	// These gates exist only while they are closed. Nobody can override them.
	GateBlocked = "blocked" // the commit is blocked in the environment that follows
	GateStopped = "stopped" // the environment that follows is halted, or is not compiled on the server
)

// PromotionGate is a condition of a promotion, and whether it is met.
type PromotionGate struct {
	Gate  string    `json:"gate"`
	Open  bool      `json:"open"`
	Text  string    `json:"text"`           // why it is closed, or what opened it
	Until time.Time `json:"until,omitzero"` // when it opens by itself, if nothing happens
}

// PromotionState is the state of a promotion.
//
//	waiting ──gates open, or a person──▶ promoted
//	   └──the environment that is followed moves on──▶ superseded
type PromotionState string

// States of a promotion.
const (
	PromotionWaiting    PromotionState = "waiting"
	PromotionPromoted   PromotionState = "promoted"
	PromotionSuperseded PromotionState = "superseded"
)

// Promotion is the way of a commit from an environment to one that follows it.
type Promotion struct {
	ID          uuid.UUID
	Environment EnvironmentID // the environment that follows
	Source      EnvironmentID // the environment that is followed
	SourceName  string
	Version     int // of the source
	Commit      string
	Branch      string // the branch that the source took it from
	Follows     string // what the source follows in the repository: its branch as it is set
	Subject     string
	Author      string
	Since       time.Time // since when the source has had the commit
	Created     time.Time
	State       PromotionState
	Gates       []PromotionGate // as they were last evaluated
	Checked     time.Time
	Approved    *Actor // who approved this commit
	Overridden  *Actor // who promoted it without waiting for its gates
	Ended       *time.Time
	Reason      string // why it ended
	// Compile is the compile that it requested, Made the version of its commit, and
	// Success how the newest compile of the commit ended.
	Compile *CompileID
	Made    int
	Success *bool
}

// Short returns the beginning of its commit's hash.
func (p Promotion) Short() string { return Revision{Commit: p.Commit}.Short() }

// Held returns the gates that are not open.
func (p Promotion) Held() (out []PromotionGate) {
	for _, g := range p.Gates {
		if !g.Open {
			out = append(out, g)
		}
	}
	return out
}

// FollowHold says what stops all promotions to an environment.
type FollowHold struct {
	Halted    bool
	NoCompile bool   // it is not compiled on the server
	Blocked   *Block // the block of the commit in it
	Paused    *Actor // who paused promotions
}
