package keeper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// A fetch ends at the very moment at which its place is given away: the compile
// has a place when it goes on, and nobody else has that one.
func TestAPlaceIsGivenAwayOrKept(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			all := newTurns(1, newProjectTurns())
			mine, err := all.take(t.Context(), uuid.New(), uuid.Nil)
			if err != nil {
				t.Fatal(err)
			}
			mine.during(t.Context(), func() { time.Sleep(fetchGrace) })
			synctest.Wait()
			if !mine.held || all.free != 0 {
				t.Fatalf("it has a place: %v; %d others are free", mine.held, all.free)
			}
			mine.release()
			if all.free != 1 {
				t.Fatalf("%d places are free in the end", all.free)
			}
		})
	}
}
