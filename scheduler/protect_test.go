package scheduler

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// No request purges a protected resource: it is skipped and says why, and what goes after it waits. A look
// does no harm. Without the protection it is purged, and then what waited.
func TestProtectedIsNotPurged(t *testing.T) {
	w := newWorld(t, Limits{}, "x/dir 1", "x/file 1 x/dir", "x/kept 1")
	w.endAll()
	w.said("start x/dir", "start x/file", "start x/kept")
	protect := func(patterns ...string) { w.take(w.s.SetPolicy(Policy{Protected: patterns}, w.now)) }
	protect("t::R[x,name=file]", "t::R[x,name=kept]")
	w.release("x/dir 2 - p", "x/file 2 x/dir p", "x/kept 2")
	w.said("skip x/file for /", "skip x/dir for x/file", "start x/kept")
	w.endAll()
	w.said()
	w.status("x/file", intent.StatusSkipped)
	for _, kind := range []Priority{UserDeploy, UserRepair, RepairTimer} {
		w.take(w.s.Trigger(kind, Filter{Resources: []intent.ResourceID{rid("x/file")}}, w.now))
		w.said("skip x/file for /")
	}
	w.take(w.s.SetPolicy(Policy{Protected: []string{"t::R[x,name=file]"}, ReportDrift: true}, w.now))
	w.said()
	protect()
	w.said("start x/file")
	w.endAll()
	w.said("start x/dir")
	w.status("x/dir", intent.StatusDeployed)
}

// Turning edges never makes circles of kept and purged resources, and a purge that fails half-way goes on with what
// remains, in its order.
func TestAPurgeThatFailsHalfWay(t *testing.T) {
	w := newWorld(t, Limits{}, "x/top 1 - p", "x/mid 1 x/top p", "y/low 1 x/mid p", "y/other 1 x/mid p",
		"y/kept 1 x/top")
	w.said("start y/low")
	w.end("y/low")
	w.said("start y/other")
	w.end("y/other=failed")
	w.said("skip x/mid for y/other", "skip x/top for x/mid", "skip y/kept for x/top")
	w.take(w.s.Trigger(UserDeploy, Filter{}, w.now))
	w.said("start y/other")
	w.endAll()
	w.said("start x/mid", "start x/top", "start y/kept")
}
