package control_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// compiled asks for a compile and tells whether it succeeded.
func (s *stage) compiled(r control.CompileRequest) bool {
	s.t.Helper()
	id, _, err := s.RequestCompile(s.t.Context(), s.env, r)
	if err != nil {
		s.t.Fatal(err)
	}
	c, _ := s.done(id)
	return *c.Success
}

func (s *stage) deployed() intent.Version {
	s.t.Helper()
	v, err := s.store.ActiveVersion(s.t.Context(), s.env)
	if err != nil || v == nil {
		s.t.Fatal(v, err)
	}
	return *v
}

// idle waits until no compile is open.
func (s *stage) idle() {
	s.t.Helper()
	queue, err := s.store.OpenCompiles(s.t.Context(), s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, open := range queue {
		s.done(open.ID)
	}
}

// A bad commit is taken back: what ran before runs again, nothing that asks for
// compiles brings the bad one back, and the fix on top of it goes out by itself.
func TestRollbackSticks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	person := control.As(t.Context(), "ida", "the shop is down")
	if _, err := s.RollBack(person, s.env, 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("with nothing deployed: %v", err)
	}
	s.done(s.request("api"))
	if _, err := s.RollBack(person, s.env, 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("with nothing before: %v", err)
	}
	s.push("bad-commit")
	s.done(s.request("webhook"))
	if _, err := s.RollBack(t.Context(), s.env, 0); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	for _, to := range []int{2, 3} {
		if _, err := s.RollBack(person, s.env, to); err == nil {
			t.Errorf("rolled back to version %d", to)
		}
	}
	v, err := s.RollBack(person, s.env, 0)
	if err != nil || v.Number != 3 || v.Status != intent.VersionActive || v.Provenance.Commit != "c1" {
		t.Fatalf("%+v, %v", v, err)
	}
	if b := v.Provenance.RolledBack; b == nil || b.From != 2 || b.To != 1 || b.Blocked != "bad-commit" ||
		b.By != "ida" ||
		b.Reason != "the shop is down" {
		t.Errorf("%+v", b)
	}
	if got := s.git(); got.Kind != intent.GitBlocked || got.Commit != "bad-commit" ||
		!strings.Contains(got.Message, "the shop is down") ||
		got.Advice == "" {
		t.Errorf("the state of Git is %+v", got)
	}
	for _, r := range []control.CompileRequest{
		{Update: true, Trigger: intent.Trigger{Type: "schedule"}}, {Trigger: intent.Trigger{Type: "facts"}},
		{Update: true, Reinstall: true, Trigger: intent.Trigger{Type: "api"}},
	} {
		if s.compiled(r) {
			t.Errorf("%+v compiled what is blocked", r)
		}
	}
	if err := s.SourceMoved(t.Context(), s.env, "bad-commit", "poll", ""); err != nil {
		t.Fatal(err)
	}
	s.idle()
	if got := s.deployed(); got.Number != 3 {
		t.Errorf("version %d is deployed", got.Number)
	}
	s.Stop()
	s.restart()
	s.idle()
	if got := s.deployed(); got.Number != 3 {
		t.Errorf("after a restart version %d is deployed", got.Number)
	}
	if did, err := s.store.Interventions(t.Context(), s.env, 100); err != nil || len(did) != 2 ||
		did[0].Kind != intent.DidBlock && did[1].Kind != intent.DidBlock {
		t.Errorf("%+v, %v", did, err)
	}
	// Of all of it the commits are kept, however old they grow.
	if err := s.keepers.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "mirrors [/repo  0 bad-commit,c1] 720h0m0s"; !slices.Contains(s.parts.toldOf(), want) {
		t.Errorf("%q, want %q", s.parts.toldOf(), want)
	}
	s.push("fix")
	if err := s.SourceMoved(t.Context(), s.env, "fix", "poll", ""); err != nil {
		t.Fatal(err)
	}
	s.idle()
	if got := s.deployed(); got.Number != 4 || got.Provenance.Commit != "fix" || got.Provenance.RolledBack != nil {
		t.Errorf("%+v is deployed", got)
	}
	if got := s.git(); got.Kind != intent.GitOK {
		t.Errorf("the state of Git is %+v", got)
	}
	// Back once more: the copy of version 1 is the last good one, not the blocked version 2.
	if v, err = s.RollBack(person, s.env, 0); err != nil || v.Number != 5 || v.Provenance.RolledBack.To != 3 ||
		v.Provenance.Commit != "c1" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := s.RollBack(person, s.env, 2); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "blocked") {
		t.Errorf("to a blocked commit: %v", err)
	}
}

// newBadCommit is a stage on which version 2, of a bad commit, follows a good one.
func newBadCommit(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.done(s.request("api"))
	s.push("bad-commit")
	s.done(s.request("webhook"))
	return s
}

// A commit that somebody unblocks is deployed.
func TestUnblock(t *testing.T) {
	t.Parallel()
	s := newBadCommit(t)
	person := control.As(t.Context(), "ida", "because")
	if _, err := s.RollBack(person, s.env, 1); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"bad", "other-commit", "bad-commit2"} {
		if _, err := s.UnblockCommit(person, s.env, other); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", other, err)
		}
	}
	if _, err := s.UnblockCommit(t.Context(), s.env, "bad-commit"); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	if b, err := s.UnblockCommit(person, s.env, "bad-com"); err != nil || b.Commit != "bad-commit" {
		t.Fatalf("%+v, %v", b, err)
	}
	s.idle()
	if got := s.deployed(); got.Number != 4 || got.Provenance.Commit != "bad-commit" {
		t.Errorf("%+v is deployed", got)
	}
	if left, err := s.store.GitBlocks(t.Context(), s.env); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

// A compile of the bad commit is under way while it is taken back: what it
// makes is not released.
func TestRollbackWhileTheBadCommitCompiles(t *testing.T) {
	t.Parallel()
	s := newBadCommit(t)
	s.parts.mu.Lock()
	s.parts.hold, s.parts.holding = make(chan struct{}), make(chan struct{}, 10)
	s.parts.mu.Unlock()
	id := s.request("api")
	<-s.parts.holding
	if _, err := s.RollBack(control.As(t.Context(), "ida", "because"), s.env, 0); err != nil {
		t.Fatal(err)
	}
	close(s.parts.hold)
	if c, _ := s.done(id); c.Version == nil || *c.Version != 4 {
		t.Fatalf("%+v", c)
	}
	if got := s.deployed(); got.Number != 3 {
		t.Errorf("version %d is deployed", got.Number)
	}
	if err := s.Release(t.Context(), s.env, 4); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "blocked") {
		t.Errorf("it was released: %v", err)
	}
}

// After a rollback the history goes on from what is deployed, or from what was
// taken back; anything else is a rewrite as ever.
func TestHistoryGoesOnFromWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	s := newBadCommit(t)
	if _, err := s.RollBack(control.As(t.Context(), "ida", "because"), s.env, 0); err != nil {
		t.Fatal(err)
	}
	s.push("rewritten-1")
	if s.compiled(control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api"}}) {
		t.Error("history was rewritten")
	}
	s.parts.mu.Lock()
	s.parts.descends = map[string]string{"rewritten-1": "bad-commit"}
	s.parts.mu.Unlock()
	if !s.compiled(control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api"}}) {
		t.Error("a fix on top of the bad commit was refused")
	}
}

// A rollback that takes away much waits like any version; nothing is blocked
// meanwhile, and asking twice makes one version. Confirmed, it is a rollback.
func TestRollbackThatTakesAwayMuchIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	s.export("c1", control.CompileRequest{}, notes(1))
	s.export("bad-commit", control.CompileRequest{}, notes(30))
	person := control.As(ctx, "ida", "because")
	for range 2 {
		held := (*store.HeldError)(nil)
		if _, err := s.RollBack(person, s.env, 0); !errors.As(err, &held) || held.Version != 3 {
			t.Fatalf("%v", err)
		}
	}
	if got := s.deployed(); got.Number != 2 {
		t.Errorf("version %d is deployed", got.Number)
	}
	if b, err := s.store.GitBlocks(ctx, s.env); err != nil || len(b) != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if err := s.Confirm(ctx, s.env, 3, "ida", "they are not needed"); err != nil {
		t.Fatal(err)
	}
	if got := s.deployed(); got.Number != 3 || got.Total != 1 || got.Confirmed == nil {
		t.Errorf("%+v is deployed", got)
	}
	if b, err := s.store.GitBlocks(ctx, s.env); err != nil || len(b) != 1 || b[0].Commit != "bad-commit" {
		t.Errorf("%+v, %v", b, err)
	}
	if got := s.git(); got.Kind != intent.GitBlocked {
		t.Errorf("the state of Git is %+v", got)
	}
}
