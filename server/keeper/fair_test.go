package keeper

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Where several wait, the one goes first that had no turn for the longest time,
// not the one that asked first: who asks often waits longer.
func TestWhoHadNoTurnForLongestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := map[intent.EnvironmentID]string{}
		environment := func(name string) intent.EnvironmentID {
			id := uuid.New()
			names[id] = name
			return id
		}
		often, now, never := environment("often"), environment("now"), environment("never")
		all := newTurns(1, newProjectTurns())
		take := func(env intent.EnvironmentID) *turn {
			mine, err := all.take(t.Context(), env, uuid.Nil)
			if err != nil {
				t.Error(err)
			}
			return mine
		}
		take(often).release()
		held := take(now)
		var order []string
		for _, env := range []intent.EnvironmentID{often, never} {
			go func() {
				mine := take(env)
				order = append(order, names[env])
				mine.release()
			}()
			synctest.Wait() // it waits for its turn
		}
		held.release()
		synctest.Wait()
		if !slices.Equal(order, []string{"never", "often"}) {
			t.Errorf("they had their turns in this order: %q", order)
		}
	})
}
