package control_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

func (s *stage) push(commit string) {
	s.parts.mu.Lock()
	s.parts.tip = commit
	s.parts.pushed = append(s.parts.pushed, commit)
	s.parts.mu.Unlock()
}

func (s *stage) git() intent.GitState {
	s.t.Helper()
	state, err := s.store.GitState(s.t.Context(), s.env)
	if err != nil || state == nil {
		s.t.Fatalf("the state of Git is %v, %v", state, err)
	}
	return *state
}

// A commit that leaves out what is deployed is refused, until a person says that
// it was meant; who and why is kept. What is deployed stays meanwhile.
func TestRewrittenHistoryWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	if got := s.git(); got.Kind != intent.GitOK || got.Commit != "c1" {
		t.Errorf("the state of Git is %+v", got)
	}
	s.push("rewritten-1")
	c, names := s.done(s.request("webhook"))
	if *c.Success || names[len(names)-1] != intent.StageVerify {
		t.Errorf("%+v %q", c, names)
	}
	if got := s.git(); got.Kind != intent.GitRewritten || got.Commit != "rewritten-1" ||
		!strings.Contains(got.Message, "c1") ||
		got.Advice == "" {
		t.Errorf("the state of Git is %+v", got)
	}
	if v, err := s.store.ActiveVersion(t.Context(), s.env); err != nil || v.Provenance.Commit != "c1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
	person := control.As(t.Context(), "ida", "the secret had to go")
	if _, err := s.AcceptCommit(t.Context(), s.env, "rewritten-1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	for _, other := range []string{"c1", "rewritten-2", "rewr"} {
		if _, err := s.AcceptCommit(person, s.env, other); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", other, err)
		}
	}
	a, err := s.AcceptCommit(person, s.env, "rewritten")
	if err != nil || a.Commit != "rewritten-1" || a.By != "ida" {
		t.Fatalf("%+v, %v", a, err)
	}
	queue, err := s.store.OpenCompiles(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range queue {
		s.done(open.ID)
	}
	if v, err := s.store.ActiveVersion(t.Context(), s.env); err != nil || v.Provenance.Commit != "rewritten-1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
	if did, err := s.store.Interventions(t.Context(), s.env, 100); err != nil || len(did) != 1 ||
		did[0].Kind != intent.DidAccept ||
		did[0].By != "ida" ||
		!strings.Contains(did[0].Reason, "the secret had to go") {
		t.Errorf("%+v, %v", did, err)
	}
	if got := s.git(); got.Kind != intent.GitOK {
		t.Errorf("the state of Git is %+v", got)
	}
	commits, err := s.store.GitCommits(t.Context(), s.env, 100)
	if err != nil || len(commits) != 3 || commits[0].Version != 2 || commits[0].Status != intent.VersionActive ||
		commits[1].Version != 0 ||
		commits[2].Status != intent.VersionRetired {
		t.Errorf("%+v, %v", commits, err)
	}
}

// Who signed is part of a version's provenance.
func TestTheSignerIsKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.SetSetting(t.Context(), s.env, "git_allowed_signers", "nonsense"); !fault.Is(err, fault.Invalid) {
		t.Errorf("nonsense was taken: %v", err)
	}
	if err := s.SetSetting(t.Context(), s.env, "git_verify", "tip"); err != nil {
		t.Fatal(err)
	}
	s.done(s.request("api"))
	v, err := s.store.ActiveVersion(t.Context(), s.env)
	if err != nil || v.Provenance.Signer != "Ada" || v.Provenance.SignerKey != "SHA256:x" {
		t.Errorf("%+v, %v", v, err)
	}
	err = s.ProtectSettings(t.Context(), s.env, map[string]any{"git_verify": "off"}, intent.ProtectedByProject)
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("the repository lifts its own guard: %v", err)
	}
}

// A repository that cannot be read is a state of its own, which ends by itself.
func TestARepositoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.parts.mu.Lock()
	s.parts.fetchErr = fault.New("x", fault.Unauthorized, "the remote wants credentials").Hint("set them")
	s.parts.mu.Unlock()
	s.done(s.request("api"))
	if got := s.git(); got.Kind != intent.GitFailing || got.Message != "the remote wants credentials" ||
		got.Advice != "set them" {
		t.Errorf("the state of Git is %+v", got)
	}
	s.look(0, nil)
	if got := s.git(); got.Kind != intent.GitOK {
		t.Errorf("the state of Git is %+v", got)
	}
}

// Releases need not descend from each other; one whose tag was moved is a rewrite.
func TestReleasesThatAnEnvironmentFollows(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	e.Source.Branch = "semver:^1"
	if _, err := s.UpdateEnvironment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	release := func(tag, commit string) bool {
		s.push(commit)
		s.parts.mu.Lock()
		s.parts.tag = tag
		s.parts.mu.Unlock()
		c, _ := s.done(s.request("api"))
		return *c.Success
	}
	if !release("0", "c1") || !release("1", "rewritten-1") {
		t.Error("a newer release was refused")
	}
	if release("1", "rewritten-2") {
		t.Error("a release that was moved is deployed")
	}
}
