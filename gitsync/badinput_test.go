package gitsync

import (
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// The branch is deleted, then everything is: it is said, and the checkout stays.
func TestBranchDeletedAndRepositoryEmptied(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src, _, unchanged := deployed(t, o, s, o.bare)
	o.run(o.bare, "branch", "other", "main")
	o.run(o.bare, "update-ref", "-d", "refs/heads/main")
	_, _, err := s.Fetch(t.Context(), src)
	wantFault(t, err, fault.NotFound, `"main"`, "other")
	unchanged()
	o.run(o.bare, "update-ref", "-d", "refs/heads/other")
	_, _, err = s.Fetch(t.Context(), src)
	wantFault(t, err, fault.NotFound, o.bare)
	unchanged()
}
