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
		Doc:     "Name of another environment of this project and repository, such as staging: what is deployed here is the commit that is deployed there, once the gates follow_soak, follow_compliant, follow_no_drift and follow_approval are open. Empty: the tip of the branch.",
	},
	{
		Name:    "follow_soak",
		People:  true,
		Type:    SettingInt,
		Default: 0,
		Most:    366 * 86400,
		Doc:     "Seconds that a commit must have been deployed in the environment that is followed, without a deployment that failed.",
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

// SourceOf finds the environment that e follows among those of a server. The
// error says why it cannot be followed: nothing of it is promoted then. Nil and
// no error: e follows none.
func SourceOf(all []Environment, e Environment) (*Environment, error) {
	name := e.Follows()
	if name == "" {
		return nil, nil
	}
	source := named(all, e.ProjectID, name)
	switch {
	case source == nil:
		for _, other := range all {
			if other.Name == name {
				return nil, fmt.Errorf(
					"the environment %s is not of the project of %s, and only environments of one project follow each other",
					name,
					e.Name,
				)
			}
		}
		return nil, fmt.Errorf("there is no environment %s in the project of %s", name, e.Name)
	case source.ID == e.ID:
		return nil, fmt.Errorf("the environment %s cannot follow itself", e.Name)
	case e.Source.URL == "":
		return nil, fmt.Errorf("the environment %s is not bound to a repository", e.Name)
	case source.Source.URL != e.Source.URL:
		return nil, fmt.Errorf(
			"the environment %s is of another repository than %s, so that it cannot have the same commit",
			name,
			e.Name,
		)
	}
	way := []string{e.Name, name}
	for at := source; at != nil && at.Follows() != ""; {
		next := named(all, at.ProjectID, at.Follows())
		if next == nil {
			break
		}
		way = append(way, next.Name)
		if next.ID == e.ID {
			return nil, fmt.Errorf("that would be a circle: %s", strings.Join(way, " follows "))
		}
		if len(way) > len(all)+1 {
			break // a circle that e is no part of
		}
		at = next
	}
	return source, nil
}

func named(all []Environment, project ProjectID, name string) *Environment {
	for i := range all {
		if all[i].ProjectID == project && all[i].Name == name {
			return &all[i]
		}
	}
	return nil
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

// Unfit says why nothing of it can be promoted; empty when its commit can.
func (f Followed) Unfit(name string) string {
	switch {
	case f.Version == 0:
		return "nothing is deployed in " + name
	case f.Provenance.RolledBack != nil:
		return fmt.Sprintf(
			"%s was rolled back to version %d; the next commit that is deployed there can be promoted",
			name,
			f.Provenance.RolledBack.To,
		)
	case f.Provenance.Commit == "":
		return fmt.Sprintf("version %d of %s was made of no commit", f.Version, name)
	case f.Provenance.PartialBase > 0:
		return fmt.Sprintf("version %d of %s is a partial export, which no single commit gives", f.Version, name)
	case f.Blocked != nil:
		return fmt.Sprintf(
			"%s is blocked in %s: %s took it back: %s",
			Revision{Commit: f.Provenance.Commit}.Short(),
			name,
			f.Blocked.By,
			f.Blocked.Reason,
		)
	}
	return ""
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

// firm tells that a person cannot override it.
func (g PromotionGate) firm() bool { return g.Gate == GateBlocked || g.Gate == GateStopped }

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

// Judge tells how each gate of a promotion stands. None held: it is promoted.
func (f FollowPolicy) Judge(d Followed, h FollowHold, approved *Actor, now time.Time) []PromotionGate {
	gates := []PromotionGate{}
	add := func(gate string, open bool, format string, args ...any) {
		gates = append(gates, PromotionGate{Gate: gate, Open: open, Text: fmt.Sprintf(format, args...)})
	}
	if b := h.Blocked; b != nil {
		add(GateBlocked, false, "the commit is blocked here: %s took it back: %s", b.By, b.Reason)
	}
	switch {
	case h.Halted:
		add(GateStopped, false, "the environment is halted")
	case h.NoCompile:
		add(GateStopped, false, "the environment does not compile on the server")
	}
	if p := h.Paused; p != nil {
		add(GatePaused, false, "%s paused promotions: %s", p.By, p.Reason)
	}
	if f.Soak > 0 {
		gates = append(gates, f.soak(d, now))
	}
	if f.Compliant {
		if d.Differ == 0 {
			add(GateCompliant, true, "all resources are compliant")
		} else {
			add(GateCompliant, false, "%s not compliant: %s", are(d.Differ, "resource is", "resources are"), someOf(d.DifferFirst, d.Differ))
		}
	}
	if f.NoDrift {
		if d.Drifted == 0 {
			add(GateNoDrift, true, "no drift is open")
		} else {
			add(GateNoDrift, false, "%s open: %s", are(d.Drifted, "record of drift is", "records of drift are"), someOf(d.DriftFirst, d.Drifted))
		}
	}
	if f.Approval {
		if approved != nil {
			add(GateApproval, true, "%s approved it: %s", approved.By, approved.Reason)
		} else {
			add(GateApproval, false, "approval of this commit")
		}
	}
	return gates
}

func (f FollowPolicy) soak(d Followed, now time.Time) PromotionGate {
	from, why := d.Since, ""
	if d.Broke != nil && d.Broke.After(from) {
		from, why = *d.Broke, fmt.Sprintf(", for %s failed at %s", d.BrokeOf, clock(*d.Broke, now))
	}
	until := from.Add(f.Soak)
	if now.Before(until) {
		return PromotionGate{Gate: GateSoak, Text: fmt.Sprintf("soak until %s%s", clock(until, now), why), Until: until}
	}
	return PromotionGate{Gate: GateSoak, Open: true, Text: fmt.Sprintf("soaked since %s", clock(from, now))}
}

// clock is a time as people read it, with the date unless that is today's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

func are(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func someOf(first []string, n int) string {
	text := strings.Join(first, ", ")
	if rest := n - len(first); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// GatesHeld tells what a promotion waits for: whether anything does, whether
// only a person's approval, whether what a person cannot override, and when the
// last gate that opens by itself does; zero: none.
func GatesHeld(gates []PromotionGate) (held, approval, firm bool, next time.Time) {
	others := false
	for _, g := range gates {
		if g.Open {
			continue
		}
		held = true
		firm = firm || g.firm()
		others = others || g.Gate != GateApproval
		next = Earlier(next, g.Until)
	}
	return held, held && !others, firm, next
}
