package solve

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The simple layout that is used when choosing takes too long is a layout as well.
func TestSimpleLayoutsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := smallRequest(t, rapid.Bool().Draw(t, "amend"))
		s, c := newScope(r)
		if c != nil {
			return
		}
		sv := newSolver(context.Background(), newProblem(s, nil))
		st, kept, ok := sv.first()
		if !ok {
			return
		}
		if wrong := Check(r, sv.simple(st, kept)); len(wrong) > 0 {
			t.Fatalf("the layout %v is wrong:\n%s", sv.simple(st, kept), strings.Join(wrong, "\n"))
		}
	})
}

// Large and intricate ones are valid too.
func TestSimpleLayoutsOfLargeClustersAreValid(t *testing.T) {
	for _, l := range largeRequests() {
		t.Run(l.name, func(t *testing.T) {
			s, c := newScope(l.r)
			if c != nil {
				t.Fatal(c)
			}
			sv := newSolver(context.Background(), newProblem(s, nil))
			st, kept, ok := sv.first()
			if !ok {
				return
			}
			for _, wrong := range Check(l.r, sv.simple(st, kept)) {
				t.Error(wrong)
			}
		})
	}
}
