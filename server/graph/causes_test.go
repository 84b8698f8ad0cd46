package graph_test

import (
	"fmt"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/graph"
)

// In a row of resources the first fails, and each waits for the one before it: all of them wait because of the first,
// by way of those between. A resource with two ways waits because of what is nearest, and one that is only not deployed
// yet waits because of nothing.
func TestCausesAreFoundHoweverFarAwayTheyAre(t *testing.T) {
	const last = 30
	e := newEstate(t)
	e.release(last+4, func(i int) (string, string) { return "web", "web::Server" }, func(i int) []int {
		switch {
		case i == 0 || i == last+2: // another one that fails
			return nil
		case i == last+1:
			return []int{last, last + 2}
		case i == last+3:
			return []int{last + 1}
		}
		return []int{i - 1}
	})
	e.ends(intent.StatusFailed, 0, last+2)
	var stuck []int
	for i := 1; i <= last+1; i++ {
		stuck = append(stuck, i)
	}
	e.ends(intent.StatusSkipped, stuck...)
	found, err := graph.New(e.store).Causes(t.Context(), e.env, e.ids)
	e.must(err)
	for i, want := range map[int]string{
		1: "[r0000] 0", 2: "[r0000] 1", last: fmt.Sprint("[r0000] ", last-1), last + 1: "[r0032] 0",
		last + 3: "[r0032] 1",
	} {
		got := found[e.ids[i]]
		if text := fmt.Sprintf("[%s] %d", got.ID.Value, len(got.Via)); text != want {
			t.Errorf("%s waits because of %s, not %s", e.ids[i].Value, text, want)
		}
	}
	if got := found[e.ids[3]]; got.Status != intent.StatusFailed || got.Via[0] != e.ids[2] || got.Via[1] != e.ids[1] {
		t.Errorf("the fourth waits because of %+v", got)
	}
	if _, has := found[e.ids[0]]; has {
		t.Error("what failed waits for something")
	}
}
