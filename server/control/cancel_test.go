package control_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// A person cancels the compile that runs: it ends at once, as cancelled by that person, nobody is alarmed, and what is
// deployed stays. One that waits ends without having run, and the next one is not touched.
func TestAPersonCancelsACompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	hold, holding := s.holdCompiles()
	s.push("commit-1")
	first := s.request("api")
	<-holding
	waits := s.request("api")

	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	standing, err := s.Standing(t.Context(), s.env)
	if err != nil || standing.Kind() != intent.StandsCompiling || standing.Find(intent.StandsWaiting) == nil ||
		!strings.Contains(standing.Text, "A compile waits for the run before it, of commit-") {
		t.Errorf("%s, %v", standing.Text, err)
	}
	waiting, _, err := s.store.Compile(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := s.Waits(t.Context(), e, waiting); err != nil || w.Kind != intent.WaitsRun || *w.Run != first {
		t.Errorf("%+v, %v", w, err)
	}

	ada := control.As(t.Context(), "Ada", "the plug-in hangs")
	if err := s.CancelCompile(ada, s.env, waits); err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.store.Compile(t.Context(), waits); err != nil || c.Completed == nil || *c.Success ||
		c.Cancelled == nil || c.Cancelled.By != "Ada" || c.Cancelled.Reason != "the plug-in hangs" {
		t.Errorf("the one that waited is %+v, %v", c, err)
	}
	if err := s.CancelCompile(ada, s.env, first); err != nil {
		t.Fatal(err)
	}
	c, _ := s.done(first) // although the compiler is still held
	if *c.Success || c.Version != nil || c.Cancelled == nil || c.Cancelled.By != "Ada" {
		t.Errorf("the one that ran is %+v", c)
	}
	_, stages, err := s.store.Compile(t.Context(), first)
	if last := stages[len(stages)-1]; err != nil || last.Completed == nil ||
		!strings.Contains(last.ErrOutput, "cancelled by Ada: the plug-in hangs") {
		t.Errorf("its last stage is %+v, %v", last, err)
	}
	if err := s.CancelCompile(ada, s.env, first); !fault.Is(err, fault.Conflict) {
		t.Errorf("cancelling it again: %v", err)
	}
	if n, err := s.store.Notifications(t.Context(), s.env, intent.ListQuery{}); err != nil || len(n.Items) > 0 {
		t.Errorf("people were told %+v, %v", n.Items, err)
	}
	standing, err = s.Standing(t.Context(), s.env)
	if err != nil || standing.Kind() != intent.StandsCancelled || standing.Deployed == nil ||
		standing.Tip.Commit != "commit-1" {
		t.Errorf("%s, %+v, %v", standing.Text, standing, err)
	}

	close(hold)
	if c, _ := s.done(s.request("api")); !*c.Success || c.Cancelled != nil {
		t.Errorf("the next one is %+v", c)
	}
	if standing, err = s.Standing(t.Context(), s.env); err != nil || standing.Kind() != intent.StandsSame {
		t.Errorf("%s, %v", standing.Text, err)
	}
}

// A compile that was cancelled while no server ran is not begun again.
func TestACancelledCompileDoesNotStartOver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	_, holding := s.holdCompiles()
	run := s.request("api")
	<-holding
	s.keepers.Release(s.env)
	s.parts.mu.Lock()
	s.parts.hold = nil
	s.parts.mu.Unlock()
	if err := s.CancelCompile(control.As(t.Context(), "Ada", "not wanted"), s.env, run); err != nil {
		t.Fatal(err)
	}
	s.keepers.Keep(s.env)
	if c, _ := s.done(run); *c.Success || c.Cancelled == nil || c.Version != nil {
		t.Errorf("%+v", c)
	}
}

// A dry run of another commit says nothing about what stands between the branch and what is deployed: neither one
// that fails nor one that succeeds.
func TestDryRunsDoNotChangeTheStanding(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	standing := func() string {
		t.Helper()
		now, err := s.Standing(t.Context(), s.env)
		if err != nil {
			t.Fatal(err)
		}
		return string(now.Kind()) + ": " + now.Text
	}
	before := standing()
	run, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "feature"})
	if err != nil {
		t.Fatal(err)
	}
	s.versionOfDryRun(run)
	if now := standing(); now != before || !strings.HasPrefix(now, "same: ") {
		t.Errorf("%q before, %q after", before, now)
	}
	s.parts.mu.Lock()
	s.parts.broken = true
	s.parts.mu.Unlock()
	s.push("commit-bad")
	s.done(s.request("api"))
	before = standing()
	if !strings.HasPrefix(before, "failed: ") || !strings.Contains(before, "commit-") {
		t.Errorf("after a push that does not compile: %q", before)
	}
	s.parts.mu.Lock()
	s.parts.broken = false
	s.parts.mu.Unlock()
	if run, err = s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "feature"}); err != nil {
		t.Fatal(err)
	}
	s.versionOfDryRun(run)
	if now := standing(); now != before {
		t.Errorf("a dry run hides it: %q", now)
	}
}
