package intent

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// followSettings say whose deployed commit an environment follows, and when it takes one.
var followSettings = []Setting{
	{
		Name:    "follow",
		People:  true,
		Type:    SettingText,
		Default: "",
		Doc: "Name of another environment of this project and repository, such as staging: what is deployed here " +
			"is the commit that is deployed there, once the gates follow_soak, follow_compliant, follow_no_drift and " +
			"follow_approval are open. Empty: the tip of the branch.",
	},
	{
		Name:    "follow_soak",
		People:  true,
		Type:    SettingInt,
		Default: 0,
		Most:    366 * 86400,
		Doc: "Seconds that a commit must have been deployed in the environment that is followed, without a " +
			"deployment that failed.",
	},
	{
		Name:    "follow_compliant",
		People:  true,
		Type:    SettingBool,
		Default: true,
		Doc:     "Take a commit only when every resource of the environment that is followed is compliant.",
	},
	{
		Name:    "follow_no_drift",
		People:  true,
		Type:    SettingBool,
		Default: true,
		Doc:     "Take a commit only when no record of drift is open in the environment that is followed.",
	},
	{
		Name:    "follow_approval",
		People:  true,
		Type:    SettingBool,
		Default: false,
		Doc:     "Take a commit only when a person approved exactly that one.",
	},
}

// Follows names the environment of the same project whose deployed commit this
// one takes; empty: it follows the tip of its branch.
func (e Environment) Follows() string { return e.Text("follow") }

// FollowPolicy is what must hold before an environment takes the commit of the
// one that it follows.
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

// Followed is what an environment has deployed, as those that follow it see it
// at one moment.
type Followed struct {
	Version    int // that is the intent; 0: none is
	Provenance Provenance
	Since      time.Time // it has had the commit, without a break, since then
	Blocked    *Block    // its commit was taken back there
	// Broke is when a deployment failed last since then, of BrokeOf.
	Broke   *time.Time
	BrokeOf string
	// Differ counts the resources that are not compliant, Drifted the open records
	// of drift; the lists have the first of them.
	Differ      int
	DifferFirst []string
	Drifted     int
	DriftFirst  []string
}

// Gate names of a promotion.
const (
	GateSoak      = "soak"
	GateCompliant = "compliant"
	GateNoDrift   = "no_drift"
	GateApproval  = "approval"
	// GatePaused is there while a person pauses promotions.
	GatePaused = "paused"
	// These are there only while they hold, and nobody overrides them.
	GateBlocked = "blocked" // the commit was taken back in the environment that follows
	GateStopped = "stopped" // the environment that follows is halted, or is not compiled on the server
)

// PromotionGate is one condition of a promotion, as it was found.
type PromotionGate struct {
	Gate  string    `json:"gate"`
	Open  bool      `json:"open"`
	Text  string    `json:"text"`           // why it is held, or what opened it
	Until time.Time `json:"until,omitzero"` // when it opens by itself, if nothing happens
}

// PromotionState is where a promotion stands.
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

// Promotion is one commit on its way from an environment to one that follows it.
type Promotion struct {
	ID          uuid.UUID
	Environment EnvironmentID // that follows
	Source      EnvironmentID // that is followed
	SourceName  string
	Version     int // of the source
	Commit      string
	Branch      string // that the source had it from
	Follows     string // what the source follows in the repository: its branch as it is set
	Subject     string
	Author      string
	Since       time.Time // the source has had the commit since then
	Created     time.Time
	State       PromotionState
	Gates       []PromotionGate // as they were found last
	Checked     time.Time
	Approved    *Actor // who approved this commit
	Overridden  *Actor // who promoted it in spite of its gates
	Ended       *time.Time
	Reason      string // of its end
	// Compile is what it asked for; Made the version that came of its commit, and
	// Success how the newest compile of it ended.
	Compile *CompileID
	Made    int
	Success *bool
}

// Short is the beginning of its commit.
func (p Promotion) Short() string { return Revision{Commit: p.Commit}.Short() }

// Held lists the gates that are not open.
func (p Promotion) Held() (out []PromotionGate) {
	for _, g := range p.Gates {
		if !g.Open {
			out = append(out, g)
		}
	}
	return out
}

// Waits says what it waits for: "waits: soak until 14:05 UTC; 3 resources are not compliant: …".
func (p Promotion) Waits() string {
	var texts []string
	for _, g := range p.Held() {
		texts = append(texts, g.Text)
	}
	if len(texts) == 0 {
		return "waits to be looked at"
	}
	return "waits: " + strings.Join(texts, "; ")
}

// Waited says what it waited for, or that it was ready.
func (p Promotion) Waited() string {
	if len(p.Held()) == 0 {
		return "was ready"
	}
	return "waited: " + strings.TrimPrefix(p.Waits(), "waits: ")
}

// Text says where it stands.
func (p Promotion) Text() string {
	switch p.State {
	case PromotionSuperseded:
		return "superseded: " + p.Reason
	case PromotionPromoted:
		text := "promoted"
		if o := p.Overridden; o != nil {
			text += fmt.Sprintf(" by %s in spite of its gates: %s", o.By, o.Reason)
		}
		switch {
		case p.Made > 0:
			return fmt.Sprintf("%s; it is version %d", text, p.Made)
		case p.Success != nil && !*p.Success:
			return text + "; its compile failed"
		}
		return text
	}
	return p.Waits()
}

// FollowHold is what holds all promotions of an environment.
type FollowHold struct {
	Halted    bool
	NoCompile bool   // it is not compiled on the server
	Blocked   *Block // the commit was taken back in it
	Paused    *Actor // who paused promotions
}
