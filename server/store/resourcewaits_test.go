package store_test

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// Of three resources in a row, the first is deployed, so the second waits for nothing and the third for the second.
// Their agent is paused, which all of them say.
func TestAResourceWaitsForWhatIsNotDeployed(t *testing.T) {
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(12)
	number := release(t, s, env, rs)
	first, second, third := rs[0].ID, rs[4].ID, rs[8].ID
	must(t, s.FinishActions(t.Context(), env, []intent.FinishedAction{deployed(states(t, s, env)[first], number, 5)}))
	must(t, s.SetAgentPaused(t.Context(), env, "host0", true, intent.Actor{By: "ada", At: epoch}))
	found := map[intent.ResourceID]intent.ResourceWait{}
	ids := []intent.ResourceID{first, second, third, file("nowhere", 1)}
	for _, w := range get(s.ResourceWaits(t.Context(), env, ids))(t) {
		if found[w.ID] = w; !w.AgentPaused || w.Unreachable != nil {
			t.Errorf("%s: paused %v, unreachable since %v", w.ID, w.AgentPaused, w.Unreachable)
		}
	}
	if len(found) != 3 || !found[first].Need.IsZero() || !found[second].Need.IsZero() {
		t.Errorf("of what is there and can be deployed: %+v", found)
	}
	if w := found[third]; w.Need != second || w.Status != intent.StatusAvailable {
		t.Errorf("the third waits for %s, %s", w.Need, w.Status)
	}
}
