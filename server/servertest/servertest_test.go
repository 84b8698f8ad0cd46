package servertest

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// The history of a rich server is complete: what tests of the doors look for is there.
func TestRich(t *testing.T) {
	r := NewRich(t)
	counts, err := r.Store.ResourceCounts(t.Context(), r.Production.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := map[intent.Status]int{
		intent.StatusDeployed: 185, intent.StatusFailed: 2, intent.StatusSkipped: 3, intent.StatusUndefined: 1,
		intent.StatusSkippedForUndefined: 1, intent.StatusDeploying: 4, intent.StatusAvailable: 6,
		intent.StatusNonCompliant: 2,
	}
	for status, n := range want {
		if counts[status] != n {
			t.Errorf("%d resources are %s, want %d", counts[status], status, n)
		}
	}
	if r.Waiting.State != intent.PromotionWaiting || len(r.Waiting.Held()) != 3 {
		t.Errorf("the promotion that waits is %+v", r.Waiting)
	}
}
