package scheduler

import (
	"fmt"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Retries are spread: the pause is within a quarter of the doubled base, the same for the same seed, and not the same
// for all resources.
func TestBackOff(t *testing.T) {
	s, _ := New(Snapshot{}, Limits{RetryBase: time.Minute, RetryCap: time.Hour, Seed: 7})
	seen := map[time.Duration]bool{}
	for i := range 100 {
		for attempt, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
			n := &node{state: intent.ResourceState{ID: rid(fmt.Sprintf("a/%d", i)), Attempts: attempt}}
			if attempt == 0 {
				continue
			}
			s.failedAgain(n, t0)
			pause := n.state.RetryAt.Sub(t0)
			if pause > want*time.Minute || pause < want*time.Minute*3/4 {
				t.Fatalf("attempt %d: %s", attempt, pause)
			}
			seen[pause] = true
		}
		n := &node{state: intent.ResourceState{ID: rid("a/x"), Attempts: 1 << 20}}
		s.failedAgain(n, t0)
		if pause := n.state.RetryAt.Sub(t0); pause > time.Hour || pause < 45*time.Minute {
			t.Fatal(pause)
		}
	}
	if len(seen) < 700 {
		t.Fatalf("only %d different pauses", len(seen))
	}
}
