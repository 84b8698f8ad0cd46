package scheduler

import (
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Drift is what an outcome says about drift: that a resource, which had been brought to its intent, was found to
// differ.
type Drift uint8

// What an outcome may say.
const (
	DriftNone    Drift = iota
	DriftFound         // it is there
	DriftHealed        // it was there, and was put right
	DriftSettled       // what was known of it is over
)

// mostHeals bounds how many heals of one resource are remembered.
const mostHeals = 100

// judge returns what the outcome of an enforcing run says about drift. Only what was as intended can drift; a handler
// that only reports finds the same each time.
func (s *Scheduler) judge(n *node, o Outcome, now time.Time) Drift {
	st := &n.state
	switch {
	case n.runHash != st.IntentHash:
	case st.Parked == intent.ParkedContested:
		contested(st)
		if len(o.Differed) > 0 {
			return DriftFound
		}
	case o.Status == intent.StatusDeployed && n.runVerify && len(o.Differed) > 0:
		st.Drifted = false
		s.healed(n, o, now)
		if st.Parked == intent.ParkedContested {
			contested(st)
			return DriftFound // its record stays open until a person or new intent unparks it
		}
		return DriftHealed
	case o.Status == intent.StatusDeployed && st.Drifted:
		st.Drifted = false
		return DriftSettled
	case len(o.Differed) > 0 && (o.Status == intent.StatusNonCompliant || st.LastRun == intent.RunFailed &&
		n.runVerify):
		st.Drifted = true
		return DriftFound
	}
	return DriftNone
}

// contested makes a state say that something else decides what is out there: even right after a successful run, the
// resource does not count as deployed.
func contested(st *intent.ResourceState) {
	if st.Compliance == intent.Compliant {
		st.Compliance = intent.NonCompliant
	}
	st.DeployedHash = ""
	st.Drifted = true
}

// healed remembers that drift was put right, unless a person asked for it, and parks the resource when the same drift
// was put right too often.
func (s *Scheduler) healed(n *node, o Outcome, now time.Time) {
	if s.policy.HealLimit == 0 || n.runPrio == UserDeploy || n.runPrio == UserRepair {
		return
	}
	st := &n.state
	of := strings.Join(o.Differed, ",")
	heals := slices.DeleteFunc(slices.Clone(st.Heals),
		func(h intent.Heal) bool { return now.Sub(h.At) > s.policy.HealWindow })
	heals = append(heals, intent.Heal{Of: of, At: now})
	st.Heals = heals[max(0, len(heals)-mostHeals):]
	same := 0
	for _, h := range st.Heals {
		if h.Of == of {
			same++
		}
	}
	if same >= s.policy.HealLimit {
		s.park(n, intent.ParkedContested, now)
	}
}

// recordLook updates the state with the outcome of a run that only looked. A failed look leaves everything as it was.
func (s *Scheduler) recordLook(n *node, o Outcome, now time.Time) Drift {
	st := &n.state
	st.LastRunAt = &now
	looked := o.Status == intent.StatusDry || o.Status == intent.StatusDeployed || o.Status == intent.StatusNonCompliant
	switch {
	case !looked || n.runHash != st.IntentHash:
		return DriftNone
	case len(o.Differed) > 0:
		st.LastRun, st.Compliance = intent.RunSuccessful, intent.NonCompliant
		st.DeployedHash = "" // something else is out there
		st.Drifted = true
		return DriftFound
	case st.Drifted && st.Parked == intent.NotParked:
		st.LastRun, st.Compliance = intent.RunSuccessful, intent.Compliant
		st.DeployedHash = n.runHash
		st.Drifted = false
		return DriftSettled
	}
	return DriftNone
}
