package control_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/promote"
)

// hand is a clock that a test puts forward.
type hand struct{ by atomic.Int64 }

func (h *hand) now() time.Time          { return time.Now().Add(time.Duration(h.by.Load())) }
func (h *hand) forward(d time.Duration) { h.by.Add(int64(d)) }

// follower is an environment that follows the one of a stage.
type follower struct {
	*stage
	clock *hand
	env   intent.EnvironmentID // that follows; stage.env is followed
}

// newFollower lets production follow the environment e of a stage, with settings.
func newFollower(t *testing.T, settings map[string]any) *follower {
	t.Helper()
	f := &follower{stage: newStage(t), clock: &hand{}}
	f.Stop()
	f.parts.now = f.clock.now
	f.restart()
	f.push("commit-1")
	e, err := f.store.Environment(t.Context(), f.stage.env)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.CreateEnvironment(
		t.Context(),
		control.NewEnvironment{
			Environment: intent.Environment{ProjectID: e.ProjectID, Name: "production", Source: e.Source},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	f.env = made.ID
	for name, value := range settings {
		if err := f.SetSetting(t.Context(), f.env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetSetting(t.Context(), f.env, "follow", "e"); err != nil {
		t.Fatal(err)
	}
	return f
}

// deploys lets the environment that is followed have a commit, with its
// resource compliant.
func (f *follower) deploys(commit string) intent.Version {
	f.t.Helper()
	f.push(commit)
	if c, _ := f.done(f.request("webhook")); !*c.Success {
		f.t.Fatalf("%+v", c)
	}
	v := f.deployed()
	f.ends(v, intent.Compliant)
	return v
}

// ends plays the end of the deployment of the resource of the environment that is followed.
func (f *follower) ends(v intent.Version, how intent.Compliance) {
	f.t.Helper()
	states, err := f.store.States(f.t.Context(), f.stage.env)
	if err != nil {
		f.t.Fatal(err)
	}
	now := f.clock.now().UTC().Truncate(time.Microsecond)
	for _, st := range states {
		a := intent.Action{
			ID:       uuid.New(),
			Kind:     intent.ActionDeploy,
			Resource: st.ID,
			Version:  v.Number,
			Started:  now,
			Finished: &now,
			Status:   intent.StatusDeployed,
			Change:   intent.Updated,
		}
		st.Compliance, st.LastRun, st.LastRunAt, st.DeployedHash, st.LastDeployed = how, intent.RunSuccessful, &now,
			st.IntentHash, v.Number
		if how != intent.Compliant {
			st.LastRun, a.Status = intent.RunFailed, intent.StatusFailed
		}
		if err := f.store.FinishActions(f.t.Context(), f.stage.env, []intent.FinishedAction{{State: st,
			Action: a}}); err != nil {
			f.t.Fatal(err)
		}
	}
	f.events.Publish(bus.Event{Environment: f.stage.env, Topic: bus.Resource})
}

// until waits for a state of what follows.
func (f *follower) until(what string, is func(control.Following) bool) control.Following {
	f.t.Helper()
	moves := f.events.Subscribe(nil)
	defer moves.Close()
	for {
		got, err := f.Following(f.t.Context(), f.env)
		if err != nil {
			f.t.Fatal(err)
		}
		if is(got) {
			return got
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			f.t.Fatalf("waited in vain for %s: %+v", what, got)
		}
	}
}

// waitsFor waits until a commit waits, for something that it mentions.
func (f *follower) waitsFor(commit, why string) {
	f.t.Helper()
	f.until(commit+" waits for "+why, func(g control.Following) bool {
		p := g.Waiting()
		return p != nil && p.Commit == commit && strings.Contains(promote.Waits(*p), why)
	})
}

// has waits until the environment that follows has a commit deployed.
func (f *follower) has(commit string) intent.Version {
	f.t.Helper()
	g := f.until("the promotion of "+commit, func(g control.Following) bool {
		return len(g.Promotions) > 0 && g.Promotions[0].Commit == commit &&
			g.Promotions[0].State == intent.PromotionPromoted &&
			g.Promotions[0].Success != nil
	})
	v, err := f.store.ActiveVersion(f.t.Context(), f.env)
	if err != nil || v == nil || v.Provenance.Commit != commit || g.Promotions[0].Made != v.Number {
		f.t.Fatalf("deployed is %+v of %+v, %v", v, g.Promotions[0], err)
	}
	return *v
}

// Production gets the commit that is deployed in the environment that it
// follows, and not the newer one that the branch has by then; webhooks, polls and
// buttons change nothing about that.
func TestProductionGetsTheCommitOfStaging(t *testing.T) {
	t.Parallel()
	f := newFollower(t, map[string]any{"follow_compliant": false, "follow_approval": true})
	ctx := control.As(t.Context(), "ida", "it is Monday")
	// Nothing was promoted yet, so nothing can be compiled.
	id, _, err := f.RequestCompile(ctx, f.env,
		control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "console"}})
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := f.done(id); *c.Success || c.Revision != nil {
		t.Errorf("compiled %+v", c)
	}
	first := f.deploys("commit-1")
	f.waitsFor("commit-1", "approval")
	f.push("commit-2")
	if err := f.SourceMoved(ctx, f.env, "commit-2", "poll", ""); err != nil {
		t.Fatal(err)
	}
	if open, err := f.store.OpenCompiles(ctx, f.env); err != nil || len(open) > 0 {
		t.Errorf("a move of the branch compiles %+v, %v", open, err)
	}
	f.parts.mu.Lock()
	watched := f.parts.watched[f.env]
	f.parts.mu.Unlock()
	if watched {
		t.Error("its branch is still polled")
	}
	if err := f.ApprovePromotion(t.Context(), f.env, "commit-1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("approved without a reason: %v", err)
	}
	for commit, kind := range map[string]fault.Kind{"commit-2": fault.Conflict, "com": fault.Invalid} {
		if err := f.ApprovePromotion(ctx, f.env, commit); !fault.Is(err, kind) {
			t.Errorf("approving %s: %v", commit, err)
		}
	}
	if err := f.ApprovePromotion(ctx, f.env, "commit-1"); err != nil {
		t.Fatal(err)
	}
	v := f.has("commit-1")
	if p := v.Provenance; p.Commit != first.Provenance.Commit || p.Branch != "main" || p.Trigger.Type != "promotion" ||
		!strings.Contains(p.Trigger.Message, "its version 1") {
		t.Errorf("%+v", p)
	}
	// Every later compile is of that commit, whoever asks for it.
	for _, kind := range []string{"console", "schedule", "webhook"} {
		id, _, err := f.RequestCompile(ctx, f.env,
			control.CompileRequest{Update: kind != "schedule", Trigger: intent.Trigger{Type: kind}})
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := f.done(id); !*c.Success || c.Revision.Commit != "commit-1" {
			t.Errorf("%s compiled %+v", kind, c)
		}
	}
	// It follows its branch again.
	if err := f.DeleteSetting(ctx, f.env, "follow"); err != nil {
		t.Fatal(err)
	}
	f.parts.mu.Lock()
	watched = f.parts.watched[f.env]
	f.parts.mu.Unlock()
	if !watched {
		t.Error("its branch is not watched")
	}
	if _, err := f.Promote(ctx, f.env, "commit-1"); !fault.Is(err, fault.Conflict) {
		t.Errorf("promoted to what follows nothing: %v", err)
	}
}

// The server is stopped while a commit soaks, and started when that is over: it
// is promoted. A resource that fails, and a newer commit, let it soak anew.
func TestASoakSurvivesAStart(t *testing.T) {
	tool.Heavy(t, "waits for a soak")
	t.Parallel()
	f := newFollower(t, map[string]any{"follow_soak": 600})
	v := f.deploys("commit-1")
	f.waitsFor("commit-1", "soak until")
	f.clock.forward(5 * time.Minute)
	f.ends(v, intent.NonCompliant)
	f.waitsFor("commit-1", "1 resource is not compliant")
	f.ends(v, intent.Compliant)
	f.waitsFor("commit-1", "failed at")
	f.clock.forward(6 * time.Minute) // eleven minutes after the release, six after the failure
	f.Stop()
	f.restart()
	f.waitsFor("commit-1", "soak until")
	f.Stop()
	f.clock.forward(5 * time.Minute)
	f.restart()
	f.has("commit-1")
	f.deploys("commit-2")
	f.clock.forward(9 * time.Minute)
	f.deploys("commit-3")
	f.waitsFor("commit-3", "soak until")
	f.clock.forward(2 * time.Minute)
	// makes it look again
	if err := f.ApprovePromotion(control.As(t.Context(), "ida", "well"), f.env, "commit-3"); err != nil {
		t.Fatal(err)
	}
	f.waitsFor("commit-3", "soak until")
	if v, err := f.store.ActiveVersion(t.Context(), f.env); err != nil || v.Provenance.Commit != "commit-1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
	f.clock.forward(8 * time.Minute)
	f.wakeUp()
	f.has("commit-3")
}

// wakeUp says that something of what is followed moved.
func (f *follower) wakeUp() {
	f.events.Publish(bus.Event{Environment: f.stage.env, Topic: bus.Resource})
}

// At the moment that the soak ends the commit is promoted, with nothing else happening.
func TestTheEndOfASoakIsNoticed(t *testing.T) {
	t.Parallel()
	f := newFollower(t, map[string]any{"follow_soak": 600})
	f.deploys("commit-1")
	f.waitsFor("commit-1", "soak until")
	f.clock.forward(10*time.Minute - 2*time.Second)
	f.wakeUp() // it looks at its clock: two seconds are left, and without a reason it looks every 30
	began := time.Now()
	f.has("commit-1")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("noticed after %s", took)
	}
}

// What is promoted is verified like any commit: one that rewrites the history of
// production is refused there, until a person accepts it.
func TestAPromotedCommitIsVerified(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.deploys("commit-1")
	f.has("commit-1")
	if err := f.SetSetting(t.Context(), f.stage.env, "git_rewrites", "follow"); err != nil {
		t.Fatal(err)
	}
	f.deploys("rewritten-1")
	g := f.until("the refusal", func(g control.Following) bool {
		return g.Promotions[0].Commit == "rewritten-1" && g.Promotions[0].Success != nil
	})
	if got := promote.Text(g.Promotions[0]); got != "promoted; its compile failed" {
		t.Errorf("it is %q", got)
	}
	state, err := f.store.GitState(t.Context(), f.env)
	if err != nil || state == nil || state.Kind != intent.GitRewritten {
		t.Errorf("%+v, %v", state, err)
	}
	if v, err := f.store.ActiveVersion(t.Context(), f.env); err != nil || v.Provenance.Commit != "commit-1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
	if _, err := f.AcceptCommit(control.As(t.Context(), "ida", "a secret had to go"), f.env,
		"rewritten-1"); err != nil {
		t.Fatal(err)
	}
	f.until("the accepted commit", func(g control.Following) bool { return g.Promotions[0].Made > 0 })
	if v, err := f.store.ActiveVersion(t.Context(), f.env); err != nil || v.Provenance.Commit != "rewritten-1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
}

// While production is halted or paused nothing is promoted; a person promotes
// what is paused, and says why.
func TestHaltedAndPaused(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	ctx := control.As(t.Context(), "ida", "the week of the fair")
	if err := f.Halt(ctx, f.env); err != nil {
		t.Fatal(err)
	}
	f.deploys("commit-1")
	f.waitsFor("commit-1", "the environment is halted")
	if _, err := f.Promote(ctx, f.env, "commit-1"); !fault.Is(err, fault.Conflict) {
		t.Errorf("promoted to a halted environment: %v", err)
	}
	if err := f.PausePromotions(ctx, f.env, true); err != nil {
		t.Fatal(err)
	}
	if err := f.Resume(ctx, f.env); err != nil {
		t.Fatal(err)
	}
	f.until("the pause alone", func(g control.Following) bool {
		p := g.Waiting()
		return p != nil && promote.Waits(*p) == "waits: ida paused promotions: the week of the fair"
	})
	if _, err := f.Promote(ctx, f.env, "commit-1"); err != nil {
		t.Fatal(err)
	}
	if v := f.has("commit-1"); !strings.Contains(
		v.Provenance.Trigger.Message,
		"ida did not wait for its gates: the week of the fair",
	) {
		t.Errorf("%+v", v.Provenance.Trigger)
	}
	f.deploys("commit-2")
	f.waitsFor("commit-2", "ida paused promotions")
	if err := f.PausePromotions(ctx, f.env, false); err != nil {
		t.Fatal(err)
	}
	f.has("commit-2")
}

// A branch that is named like the commit does not take its place.
func TestABranchNamedLikeTheCommit(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.push("commit-1")
	f.done(f.request("api"))
	f.parts.mu.Lock()
	f.parts.pushed = nil // the hash gives something else
	f.parts.mu.Unlock()
	f.ends(f.deployed(), intent.Compliant)
	f.until("the failure",
		func(g control.Following) bool { return len(g.Promotions) > 0 && g.Promotions[0].Success != nil })
	if v, err := f.store.ActiveVersion(t.Context(), f.env); err != nil || v != nil {
		t.Errorf("deployed is %+v, %v", v, err)
	}
}

// The repository is away when a commit is promoted: it is fetched later, by itself.
func TestAPromotedCommitIsFetchedLater(t *testing.T) {
	t.Parallel()
	f := newFollower(t, map[string]any{"follow_approval": true})
	f.deploys("commit-1")
	f.waitsFor("commit-1", "approval")
	away := func(err error) {
		f.parts.mu.Lock()
		defer f.parts.mu.Unlock()
		f.parts.fetchErr = err
	}
	away(fault.New("x", fault.Unavailable, "the forge is down"))
	if err := f.ApprovePromotion(control.As(t.Context(), "ida", "well"), f.env, "commit-1"); err != nil {
		t.Fatal(err)
	}
	f.until("the failure",
		func(g control.Following) bool { return promote.Text(g.Promotions[0]) == "promoted; its compile failed" })
	away(nil)
	f.clock.forward(2 * time.Minute)
	f.wakeUp()
	f.until("the second try", func(g control.Following) bool { return g.Promotions[0].Made > 0 })
	if v, err := f.store.ActiveVersion(t.Context(), f.env); err != nil || v.Provenance.Commit != "commit-1" {
		t.Errorf("deployed is %+v, %v", v, err)
	}
}

// What cannot be followed is refused where it is set, and so is a change of an
// environment that others follow.
func TestWhatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	e, err := s.store.Environment(ctx, s.env)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.CreateProject(ctx, intent.Project{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	make := func(name string, project intent.ProjectID, url string) intent.Environment {
		t.Helper()
		made, err := s.CreateEnvironment(
			ctx,
			control.NewEnvironment{
				Environment: intent.Environment{ProjectID: project, Name: name, Source: intent.Source{URL: url}},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	middle, last := make("middle", e.ProjectID, "/repo"), make("last", e.ProjectID, "/repo")
	make("elsewhere", e.ProjectID, "/other")
	make("stranger", other.ID, "/repo")
	unbound := make("unbound", e.ProjectID, "")
	follow := func(env intent.EnvironmentID, name string) error { return s.SetSetting(ctx, env, "follow", name) }
	if err := follow(middle.ID, "e"); err != nil {
		t.Fatal(err)
	}
	if err := follow(last.ID, "middle"); err != nil {
		t.Fatal(err)
	}
	for _, no := range []struct {
		env       intent.EnvironmentID
		name, why string
	}{
		{e.ID, "e", "cannot follow itself"},
		{e.ID, "last", "a circle: e follows last follows middle follows e"},
		{e.ID, "nobody", "there is no environment nobody"},
		{e.ID, "stranger", "not of the project"},
		{e.ID, "elsewhere", "another repository"},
		{unbound.ID, "e", "not bound to a repository"},
	} {
		if err := follow(no.env, no.name); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), no.why) {
			t.Errorf("following %s: %v", no.name, err)
		}
	}
	if err := s.ProtectSettings(ctx, last.ID, map[string]any{"follow_soak": 0}, intent.ProtectedByProject); !fault.Is(
		err,
		fault.Forbidden,
	) {
		t.Errorf("the repository opens its own gates: %v", err)
	}
	for what, change := range map[string]func(*intent.Environment){
		"another repository": func(e *intent.Environment) { e.Source.URL = "/other" },
		"another project":    func(e *intent.Environment) { e.ProjectID = other.ID },
	} {
		moved := e
		change(&moved)
		if _, err := s.UpdateEnvironment(ctx, moved); !fault.Is(err, fault.Conflict) ||
			!strings.Contains(err.Error(), "middle follows e") {
			t.Errorf("%s: %v", what, err)
		}
	}
	renamed := e
	renamed.Name = "rehearsal"
	if _, err := s.UpdateEnvironment(ctx, renamed); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Following(ctx, middle.ID); err != nil || got.Follows != "rehearsal" || got.Problem != "" ||
		got.Idle == "" ||
		len(got.Followers) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.DeleteEnvironment(ctx, e.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Following(ctx, middle.ID); err != nil ||
		!strings.Contains(got.Problem, "there is no environment rehearsal") {
		t.Errorf("%+v, %v", got, err)
	}
}
