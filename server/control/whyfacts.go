package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// WhyFacts holds the facts from which Answer derives its answer.
type WhyFacts struct {
	Environment intent.Environment
	Agent       intent.Agent
	Detail      intent.ResourceDetail
	// Needs are the states of its requirements that are not deployed successfully.
	Needs []intent.ResourceState
	// Behind is an undefined resource that it needs, directly or indirectly; zero: none.
	Behind intent.ResourceID
	Held   []intent.Version // versions that wait for a confirmation
	Now    time.Time
}

// Answer says why a resource is not deployed.
func (f WhyFacts) Answer() intent.Why {
	w := f.reasons()
	if w.Sentence == "" {
		texts := make([]string, 0, len(w.Reasons))
		for _, r := range w.Reasons {
			texts = append(texts, r.Text)
		}
		w.Sentence = "It is not deployed: " + strings.Join(texts, "; ") + "."
	}
	return w
}

// reasons adds what the resource is waiting for, and sets the sentence where the reasons do not say it all.
func (f WhyFacts) reasons() intent.Why {
	st := f.Detail.State
	w := intent.Why{Resource: st.ID, Status: st.Status()}
	add := func(kind, text string, until *time.Time, id intent.ResourceID) {
		r := intent.WhyReason{Kind: kind, Text: text, Resource: id}
		if until != nil {
			r.Until = *until
		}
		w.Reasons = append(w.Reasons, r)
	}
	f.heldVersion(add)
	switch {
	case st.Orphaned > 0:
		w.Reasons = nil
		add("orphan", fmt.Sprintf("the model has no such resource since version %d", st.Orphaned+1), nil,
			intent.ResourceID{})
		return w
	case st.IsDeploying:
		w.Sentence = "It is being deployed now."
		add("deploying", "it is being deployed now", nil, intent.ResourceID{})
		return w
	case w.Status == intent.StatusDeployed:
		w.Sentence = "It is deployed as the model wants it."
		if len(w.Reasons) > 0 {
			w.Sentence = "It is deployed as the active version wants it; " + w.Reasons[0].Text + "."
		}
		return w
	}
	f.gates(add)
	f.itself(add)
	if len(w.Reasons) == 0 {
		add("queue", "it is its agent's turn next, or something that it requires is being deployed first", nil,
			intent.ResourceID{})
	}
	return w
}

type addReason func(kind, text string, until *time.Time, id intent.ResourceID)

// gates adds the reasons that hold everything on its agent.
func (f WhyFacts) gates(add addReason) {
	e, a, id := f.Environment, f.Agent, f.Detail.State.ID
	if e.Halted {
		add("halted", "the environment is halted"+doneBy(e.HaltedBy, e.HaltedAt)+"; resume it", nil,
			intent.ResourceID{})
	}
	if a.Paused {
		add("paused", "its agent "+id.Agent+" is paused"+doneBy(a.PausedBy, a.PausedAt)+"; unpause it", nil,
			intent.ResourceID{})
	}
	if ws, err := e.Windows(); err == nil && intent.Overridden(e.Overrides, id.Agent, f.Now) == nil {
		if g := ws.Gate(id, f.Now); g.Held() {
			until := g.Until
			add(map[intent.WindowKind]string{intent.WindowOpen: "window", intent.WindowFreeze: "freeze"}[g.Kind],
				"it "+isGate(g), &until, intent.ResourceID{})
		}
	}
	if a.Breaker.Open() {
		add(
			"breaker",
			fmt.Sprintf(
				"the target of its agent %s could not be reached %d times in a row since %s; one deployment tries "+
					"again at %s, or when somebody deploys now",
				id.Agent,
				a.Breaker.Failures,
				minute(*a.Breaker.Since),
				minute(*a.Breaker.ProbeAt),
			),
			a.Breaker.ProbeAt,
			intent.ResourceID{},
		)
	}
}

func isGate(g intent.Gate) string {
	if g.Kind == intent.WindowFreeze {
		return "is " + g.String()
	}
	return g.String()
}

// itself adds the reasons that concern the resource alone.
func (f WhyFacts) itself(add addReason) {
	st := f.Detail.State
	if names := f.Detail.Resource.Undefined; len(names) > 0 {
		add("undefined", "the model does not know a value yet: "+strings.Join(names, ", "), nil, intent.ResourceID{})
	} else if st.Blocked == intent.IsBlocked {
		text := "it needs something that is undefined"
		if !f.Behind.IsZero() {
			text = "it needs " + f.Behind.String() + ", of which the model does not know a value yet"
		}
		add("undefined", text, nil, f.Behind)
	}
	if st.Parked == intent.ParkedAttempts {
		add("parked",
			fmt.Sprintf("it is parked: it failed %d times for the same intent; unpark it or deploy it", st.Attempts),
			nil, intent.ResourceID{})
	} else if st.Parked == intent.ParkedContested {
		add("parked", "it is parked: something else keeps changing it back, so healing stopped, and what is out there "+
			"may be foreign; find out what changes it, then unpark it", nil, intent.ResourceID{})
	}
	if f.Detail.Resource.Purged && intent.GuardOf(f.Environment).Protected.Match(st.ID) {
		add("protected", "it is to be purged, and the setting protected_resources protects it", nil,
			intent.ResourceID{})
	}
	for _, need := range slices.SortedFunc(slices.Values(f.Needs), func(a,
		b intent.ResourceState) int {
		return strings.Compare(a.ID.String(), b.ID.String())
	}) {
		add("requires", "it waits for "+need.ID.String()+", which "+inWords(need), nil, need.ID)
	}
	if st.Compliance == intent.NonCompliant && st.LastRun == intent.RunSuccessful && st.Parked == intent.NotParked {
		add(
			"reported",
			"it was found to differ, and its handler or the setting drift_policy says to only report that; a person "+
				"may deploy it",
			nil,
			intent.ResourceID{},
		)
	}
	if st.LastRun == intent.RunFailed && st.Parked == intent.NotParked {
		text := fmt.Sprintf("it failed %s", times(st.Attempts))
		if st.RetryAt != nil {
			text += ", and is tried again at " + minute(*st.RetryAt) + " at the earliest"
		}
		add("retry", text, st.RetryAt, intent.ResourceID{})
	}
}

// heldVersion adds a newer version that waits for a confirmation.
func (f WhyFacts) heldVersion(add addReason) {
	for _, v := range f.Held {
		if v.Hold != nil && v.Number > f.Detail.Resource.Version {
			add("held_version", fmt.Sprintf("version %d waits for a confirmation (%s)", v.Number, v.Hold.Text), nil,
				intent.ResourceID{})
			return
		}
	}
}

// inWords describes what is wrong with a resource that another one needs.
func inWords(st intent.ResourceState) string {
	switch {
	case st.IsDeploying:
		return "is being deployed"
	case st.Compliance == intent.Undefined:
		return "is undefined"
	case st.Blocked == intent.IsBlocked:
		return "needs something undefined"
	case st.Parked != intent.NotParked:
		return "is parked"
	case st.LastRun == intent.RunFailed && st.RetryAt != nil:
		return "failed and is tried again at " + minute(*st.RetryAt) + " at the earliest"
	case st.LastRun == intent.RunFailed:
		return "failed"
	case st.LastRun == intent.RunSkipped:
		return "was skipped"
	case st.Compliance == intent.NonCompliant:
		return "is only reported to differ"
	}
	return "is to be deployed first"
}

func doneBy(by string, at *time.Time) string {
	if at == nil {
		return ""
	}
	return " by " + by + " since " + minute(*at)
}

func times(n int) string {
	if n <= 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
