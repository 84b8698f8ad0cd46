package console

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// addWaits says in the waiting rows of a list what each of them waits for. One statement answers for all of them.
func (c *console) addWaits(ctx context.Context, env intent.EnvironmentID, rows []resourceRow) error {
	var ids []intent.ResourceID
	at := map[intent.ResourceID]int{}
	for i, row := range rows {
		if row.State != waiting && row.State != pending && row.State != blocked || row.Parked != nil {
			continue
		}
		id, err := intent.ParseResourceID(row.ID)
		if err != nil {
			return err
		}
		ids = append(ids, id)
		at[id] = i
	}
	if len(ids) == 0 {
		return nil
	}
	waits, err := c.store.ResourceWaits(ctx, env, ids)
	if err != nil {
		return err
	}
	causes, err := c.graphs.Causes(ctx, env, ids)
	for _, w := range waits {
		rows[at[w.ID]].Waits = waitOf(env, w)
		if cause, ok := causes[w.ID]; ok && !w.AgentPaused && w.Unreachable == nil {
			rows[at[w.ID]].Waits = causeWait(env, cause)
		}
	}
	return err
}

// resourceWait is what a row says about what its resource waits for. Text is followed by a link to a resource, if URL
// is set, by the state of that resource, and by the way to it.
type resourceWait struct {
	Text, Of, URL string
	State         string
	// Via is what the resource requires of what lies between, and More how many others do.
	Via, ViaURL string
	More        int
}

// waitOf puts a wait into words. What stops the whole agent comes before what stops the one resource.
func waitOf(env intent.EnvironmentID, w intent.ResourceWait) *resourceWait {
	switch {
	case w.AgentPaused:
		return &resourceWait{Text: "for its agent to be unpaused"}
	case w.Unreachable != nil:
		return &resourceWait{Text: "for its target to be reachable"}
	case !w.Need.IsZero():
		return &resourceWait{
			Text: "for", Of: w.Need.String(), URL: resourceURL(env, w.Need), State: stateOf(w.Status).Word,
		}
	}
	return nil
}

// causeWait says because of what a resource waits in the end.
func causeWait(env intent.EnvironmentID, cause intent.GraphCause) *resourceWait {
	w := &resourceWait{Text: "for", Of: cause.ID.String(), URL: resourceURL(env, cause.ID), State: causeWord(cause)}
	if len(cause.Via) > 0 {
		w.Via, w.ViaURL, w.More = cause.Via[0].String(), resourceURL(env, cause.Via[0]), len(cause.Via)-1
	}
	return w
}

func causeWord(cause intent.GraphCause) string {
	if cause.Parked {
		return parked.Word
	}
	return stateOf(cause.Status).Word
}

// waitInSentence returns because of what a resource waits, if its page has nothing more pressing to say.
func (c *console) waitInSentence(
	ctx context.Context, env intent.EnvironmentID, d intent.ResourceDetail, agent intent.Agent,
) (*resourceWait, error) {
	switch d.State.Status() {
	case intent.StatusSkipped, intent.StatusSkippedForDependency, intent.StatusSkippedForUndefined:
	default:
		return nil, nil
	}
	if agent.Paused || agent.Breaker.Open() || d.State.Parked != intent.NotParked {
		return nil, nil
	}
	id := d.State.ID
	causes, err := c.graphs.Causes(ctx, env, []intent.ResourceID{id})
	if cause, ok := causes[id]; ok {
		return causeWait(env, cause), err
	}
	return nil, err
}
