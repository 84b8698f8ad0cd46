package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// looked waits until a dry run is as wanted.
func (s *stage) looked(id intent.ActionID, as func(intent.DryRun) bool) intent.DryRun {
	s.t.Helper()
	moves := s.events.Subscribe(nil)
	defer moves.Close()
	for {
		run, _, err := s.store.DryRun(s.t.Context(), s.env, id)
		if err != nil {
			s.t.Fatal(err)
		}
		if as(run) {
			return run
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			s.t.Fatalf("the dry run stays %+v", run)
		}
	}
}

func ended(d intent.DryRun) bool    { return d.Ended != nil }
func compiled(d intent.DryRun) bool { return d.Version > 0 }

// A commit on another branch is looked at while the environment compiles: in a
// checkout of its own, without waiting for that compile. Its version is marked,
// nobody can release it, and the next push is not compared with it.
func TestACommitIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	gate := make(chan struct{})
	s.parts.mu.Lock()
	s.parts.hold, s.parts.holding = gate, make(chan struct{}, 10)
	s.parts.mu.Unlock()
	own := s.request("api")
	<-s.parts.holding
	s.parts.mu.Lock()
	s.parts.hold = nil
	s.parts.mu.Unlock()
	id, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: " feature "})
	if err != nil {
		t.Fatal(err)
	}
	run := s.looked(id, compiled)
	if run.Version != 2 || run.Total != 1 || run.Todo != 1 || run.Base != 1 || run.Commit != "feature" ||
		run.State() != "running" {
		t.Fatalf("%+v", run)
	}
	v, err := s.store.Version(t.Context(), s.env, 2)
	if err != nil || !v.Preview || v.Status != intent.VersionCandidate || v.Provenance.Commit != "of-feature" ||
		v.Provenance.Trigger.Type != "dryrun" {
		t.Fatalf("%+v, %v", v, err)
	}
	if err := s.Release(t.Context(), s.env, 2); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "preview") {
		t.Fatalf("a preview is released: %v", err)
	}
	if c, _, err := s.store.Compile(t.Context(), own); err != nil || c.Completed != nil {
		t.Fatalf("the environment's own compile: %+v, %v", c, err)
	}
	if open, err := s.store.OpenCompiles(t.Context(), s.env); err != nil || len(open) != 1 || open[0].ID != own {
		t.Fatalf("the queue: %+v, %v", open, err)
	}
	close(gate)
	if c, _ := s.done(own); c.Version == nil || *c.Version != 3 {
		t.Fatalf("%+v", c)
	}
	s.parts.mu.Lock()
	checked := slices.Clone(s.parts.checked)
	s.parts.mu.Unlock()
	if !slices.Contains(checked, "of-feature preview") || !slices.Contains(checked, "c1") {
		t.Errorf("checked out %q", checked)
	}
	s.looked(id, func(intent.DryRun) bool { return slices.Contains(s.parts.toldOf(), "dryrun "+id.String()) })
	if last, err := s.store.LastCompile(t.Context(), s.env); err != nil || last.ID != own {
		t.Errorf("the last compile is %+v, %v", last, err)
	}
}

// What cannot be compiled, or has nothing of what was asked for, is said with
// the dry run; nobody is told that the environment's own compile failed.
func TestACommitThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	for name, q := range map[string]control.DryRunRequest{
		"of nothing": {}, "of both": {Version: 1, Commit: "main"}, "an odd name": {Commit: "a b"},
		"no such agent": {Version: 1, Filter: intent.DryRunFilter{Agents: []string{"zz*"}}},
		"no such thing": {Version: 1, Filter: intent.DryRunFilter{Resources: []intent.ResourceID{{Type: "a::B",
			Agent: "c", Attribute: "d", Value: "e"}}}},
		"no version": {Version: 9},
	} {
		if _, err := s.StartDryRun(t.Context(), s.env, q); !fault.Is(err, fault.Invalid) &&
			!fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.parts.mu.Lock()
	s.parts.broken = true
	s.parts.mu.Unlock()
	start := func(q control.DryRunRequest) intent.DryRun {
		id, err := s.StartDryRun(t.Context(), s.env, q)
		if err != nil {
			t.Fatal(err)
		}
		return s.looked(id, ended)
	}
	if run := start(control.DryRunRequest{Commit: "feature"}); run.Ending != intent.DryRunFailed ||
		!strings.Contains(run.Reason, "errors") ||
		run.Complete() {
		t.Errorf("%+v", run)
	}
	s.parts.mu.Lock()
	s.parts.broken = false
	s.parts.mu.Unlock()
	if run := start(control.DryRunRequest{Commit: "feature",
		Filter: intent.DryRunFilter{Agents: []string{"zz"}}}); run.Ending != intent.DryRunFailed ||
		!strings.Contains(run.Reason, "no resource that matches") {
		t.Errorf("%+v", run)
	}
	// That its compile failed is told once, as the end of the dry run, and rings no bell.
	if titles, all := s.notices(2, "true"); len(titles) != 2 || titles[0] != "Dry run of feature failed" ||
		!strings.Contains(all[1].Message, "errors") ||
		all[1].Compile == nil {
		t.Errorf("%+v", all)
	}
}

// compiling asks for a dry run of a commit, and returns in the midst of its compile, which is held up.
func (s *stage) compiling(commit string) intent.ActionID {
	s.t.Helper()
	s.parts.mu.Lock()
	s.parts.hold, s.parts.holding = make(chan struct{}), make(chan struct{}, 10)
	s.parts.mu.Unlock()
	id, err := s.StartDryRun(s.t.Context(), s.env, control.DryRunRequest{Commit: commit})
	if err != nil {
		s.t.Fatal(err)
	}
	<-s.parts.holding
	return id
}

// A person cancels while the commit is compiled. The next one is compiled.
func TestACommitIsCancelled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.compiling("feature")
	if err := s.CancelDryRun(t.Context(), s.env, id); err != nil {
		t.Fatal(err)
	}
	if err := s.CancelDryRun(t.Context(), s.env, id); !fault.Is(err, fault.Conflict) {
		t.Fatalf("cancelled twice: %v", err)
	}
	run := s.looked(id, ended)
	if c, _ := s.done(*run.Compile); c.Success == nil || *c.Success || run.Ending != intent.DryRunCancelled {
		t.Fatalf("%+v %+v", run, c)
	}
	s.parts.mu.Lock()
	s.parts.hold = nil
	s.parts.mu.Unlock()
	id, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if run := s.looked(id, compiled); run.Version != 1 {
		t.Fatalf("%+v", run)
	}
}

// The server ends while a commit is compiled; the next one compiles it, at the
// commit that was found, and looks.
func TestACommitOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.compiling("feature")
	s.Stop()
	s.parts.mu.Lock()
	s.parts.hold = nil
	fetched := s.parts.fetched
	s.parts.mu.Unlock()
	s.restart()
	run := s.looked(id, compiled)
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	if run.Version != 1 || s.parts.fetched != fetched {
		t.Fatalf("%+v, fetched %d times more", run, s.parts.fetched-fetched)
	}
}

// The model does without a fact. When it becomes known the model is compiled
// again, once; the same fact again, or one that nobody waits for, compiles nothing.
func TestAFactThatTheModelWaitsForCompiles(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: "1"}
	s.parts.mu.Lock()
	s.parts.unknowns = []intent.Unknown{{Parameter: "serial", Resource: r, Source: "fact"}}
	s.parts.mu.Unlock()
	s.done(s.request("api"))
	s.parts.mu.Lock()
	s.parts.unknowns = nil
	s.parts.mu.Unlock()
	set := func(name, value string) []intent.Compile {
		t.Helper()
		if err := s.SetParameter(t.Context(), s.env, intent.Parameter{Name: name, Value: value, Source: "fact",
			Resource: r, Updated: time.Now(), Expires: true}); err != nil {
			t.Fatal(err)
		}
		page, err := s.store.Compiles(t.Context(), s.env, intent.ListQuery{Sort: "requested", Desc: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	if all := set("other", "1"); len(all) != 1 {
		t.Fatalf("%d compiles for a fact that nobody waits for", len(all))
	}
	all := set("serial", "41")
	if len(all) != 2 || all[0].Trigger.Type != "param" ||
		!strings.Contains(all[0].Trigger.Message, "serial of lab::Note[a,n=1]") {
		t.Fatalf("%+v", all)
	}
	s.done(all[0].ID)
	if all := set("serial", "42"); len(all) != 2 {
		t.Fatalf("%d compiles", len(all))
	}
	asked, err := s.RefreshFacts(t.Context(), s.env, nil)
	if err != nil || !slices.Equal(asked, []intent.ResourceID{r}) ||
		!slices.Contains(s.parts.toldOf(), "facts [lab::Note[a,n=1]]") {
		t.Fatalf("%v, %v, told %q", asked, err, s.parts.toldOf())
	}
	if _, err := s.RefreshFacts(t.Context(), s.env, []intent.ResourceID{{Type: "x::Y", Agent: "a", Attribute: "b",
		Value: "c"}}); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
}
