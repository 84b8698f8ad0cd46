package deployer

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// differedOf returns those of a handler's findings that the model decides: the resource's attributes, and whether it
// exists at all. What a handler names beside them is what it did, not what it found.
func differedOf(r intent.Resource, changes map[string]intent.AttributeChange) map[string]intent.AttributeChange {
	if len(changes) == 0 {
		return nil
	}
	var attributes map[string]json.RawMessage
	if json.Unmarshal(r.Attributes, &attributes) != nil {
		return nil
	}
	out := maps.Clone(changes)
	maps.DeleteFunc(out, func(name string, _ intent.AttributeChange) bool {
		_, decided := attributes[name]
		return !decided && name != "purged"
	})
	return out
}

// driftReport turns the scheduler's judgement of an outcome into what is recorded.
func driftReport(
	d scheduler.Drift,
	status intent.Status,
	differed map[string]intent.AttributeChange,
) *intent.DriftReport {
	switch d {
	case scheduler.DriftFound:
		return &intent.DriftReport{
			Found:    differed,
			Open:     true,
			Complete: status != intent.StatusFailed && status != intent.StatusUnavailable,
		}
	case scheduler.DriftHealed:
		return &intent.DriftReport{Found: differed, Open: true, Healed: true, Complete: true}
	case scheduler.DriftSettled:
		return &intent.DriftReport{Found: differed, Healed: true, Complete: true}
	}
	return nil
}

func parkedNotice(st intent.ResourceState) intent.Notice {
	n := intent.Notice{Severity: intent.SeverityError, URI: "/api/v2/resource/" + url.PathEscape(st.ID.String())}
	if st.Parked == intent.ParkedContested {
		n.Title = "Somebody else changes " + st.ID.String()
		n.Message = fmt.Sprintf(
			"The same drift was healed again and again, last of %s. Healing stopped: the resource is left alone "+
				"until a person or new intent unparks it.",
			st.Heals[len(st.Heals)-1].Of,
		)
		return n
	}
	n.Title = st.ID.String() + " is parked"
	n.Message = fmt.Sprintf(
		"It failed %d times for the same intent. It is left alone until a person or new intent unparks it.",
		st.Attempts,
	)
	return n
}

func breakerNotice(c scheduler.SetBreaker) intent.Notice {
	return intent.Notice{
		Severity: intent.SeverityError, Title: "Agent " + c.Agent + " cannot reach its target", URI: "/api/v2/agents",
		Message: fmt.Sprintf(
			"%d deployments in a row could not reach it. Nothing starts there but one try after %s; a person's "+
				"deployment is tried at once.",
			c.Breaker.Failures,
			c.Breaker.Pause.Round(time.Second),
		),
	}
}
