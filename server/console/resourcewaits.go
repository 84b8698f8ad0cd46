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
		if row.State != waiting && row.State != pending || row.Parked != nil {
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
	for _, w := range waits {
		rows[at[w.ID]].Waits = waitOf(env, w)
	}
	return err
}

// resourceWait is what a row says about what its resource waits for. Text is followed by a link to a resource, if URL
// is set, and by the state of that resource.
type resourceWait struct {
	Text, Of, URL string
	State         string
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
