// Package promote decides about commits on their way from an environment to one
// that follows it: which environment that is, whether what it has deployed can be
// promoted, and which gates hold it. It takes values and returns values; the store
// judges with it in the transaction that promotes, the keeper of the environment
// that follows says when, and control lets people override, approve and pause.
package promote

import (
	"fmt"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Unfit says why nothing that an environment has deployed can be promoted; empty
// when its commit can. name is that environment's.
func Unfit(f intent.Followed, name string) string {
	switch {
	case f.Version == 0:
		return "nothing is deployed in " + name
	case f.Provenance.RolledBack != nil:
		return fmt.Sprintf("%s was rolled back to version %d; the next commit that is deployed there can be promoted",
			name, f.Provenance.RolledBack.To)
	case f.Provenance.Pushed != nil:
		return fmt.Sprintf("version %d of %s is %s; only commits are promoted", f.Version, name,
			f.Provenance.Pushed.Words())
	case f.Provenance.Commit == "":
		return fmt.Sprintf("version %d of %s was made of no commit", f.Version, name)
	case f.Provenance.PartialBase > 0:
		return fmt.Sprintf("version %d of %s is a partial export, which no single commit gives", f.Version, name)
	case f.Blocked != nil:
		return fmt.Sprintf("%s is blocked in %s: %s took it back: %s",
			intent.Revision{Commit: f.Provenance.Commit}.Short(), name, f.Blocked.By, f.Blocked.Reason)
	}
	return ""
}

// Judge returns how each gate of a promotion stands. When none is held, the commit
// is promoted. approved is who approved the commit; nil when nobody did.
func Judge(
	policy intent.FollowPolicy,
	d intent.Followed,
	h intent.FollowHold,
	approved *intent.Actor,
	now time.Time,
) []intent.PromotionGate {
	gates := []intent.PromotionGate{}
	add := func(gate string, open bool, format string, args ...any) {
		gates = append(gates, intent.PromotionGate{Gate: gate, Open: open, Text: fmt.Sprintf(format, args...)})
	}
	if b := h.Blocked; b != nil {
		add(intent.GateBlocked, false, "the commit is blocked here: %s took it back: %s", b.By, b.Reason)
	}
	switch {
	case h.Halted:
		add(intent.GateStopped, false, "the environment is halted")
	case h.NoCompile:
		add(intent.GateStopped, false, "the environment does not compile on the server")
	}
	if p := h.Paused; p != nil {
		add(intent.GatePaused, false, "%s paused promotions: %s", p.By, p.Reason)
	}
	if policy.Soak > 0 {
		gates = append(gates, soak(policy, d, now))
	}
	if policy.Compliant {
		if d.Differ == 0 {
			add(intent.GateCompliant, true, "all resources are compliant")
		} else {
			add(intent.GateCompliant, false, "%s not compliant: %s",
				counted(d.Differ, "resource is", "resources are"), someOf(d.DifferFirst, d.Differ))
		}
	}
	if policy.NoDrift {
		if d.Drifted == 0 {
			add(intent.GateNoDrift, true, "no drift is open")
		} else {
			add(intent.GateNoDrift, false, "%s open: %s",
				counted(d.Drifted, "record of drift is", "records of drift are"), someOf(d.DriftFirst, d.Drifted))
		}
	}
	if policy.Approval {
		if approved != nil {
			add(intent.GateApproval, true, "%s approved it: %s", approved.By, approved.Reason)
		} else {
			add(intent.GateApproval, false, "approval of this commit")
		}
	}
	return gates
}

func soak(policy intent.FollowPolicy, d intent.Followed, now time.Time) intent.PromotionGate {
	from, why := d.Since, ""
	if d.Broke != nil && d.Broke.After(from) {
		from, why = *d.Broke, fmt.Sprintf(", for %s failed at %s", d.BrokeOf, clock(*d.Broke, now))
	}
	until := from.Add(policy.Soak)
	if now.Before(until) {
		return intent.PromotionGate{
			Gate:  intent.GateSoak,
			Text:  fmt.Sprintf("soak until %s%s", clock(until, now), why),
			Until: until,
		}
	}
	return intent.PromotionGate{
		Gate: intent.GateSoak,
		Open: true,
		Text: fmt.Sprintf("soaked since %s", clock(from, now)),
	}
}

// clock is a time as people read it, with the date unless that is today's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

func counted(n int, one, many string) string {
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

// Hold is what a promotion waits for.
type Hold struct {
	Held     bool      // a gate is not open
	Approval bool      // only a person's approval is missing
	Firm     bool      // a gate is held that a person cannot override
	Next     time.Time // when the first gate opens by itself; zero when none does
}

// Held sums up the gates of a promotion.
func Held(gates []intent.PromotionGate) (h Hold) {
	others := false
	for _, g := range gates {
		if g.Open {
			continue
		}
		h.Held = true
		h.Firm = h.Firm || g.Gate == intent.GateBlocked || g.Gate == intent.GateStopped
		others = others || g.Gate != intent.GateApproval
		h.Next = intent.Earlier(h.Next, g.Until)
	}
	h.Approval = h.Held && !others
	return h
}
