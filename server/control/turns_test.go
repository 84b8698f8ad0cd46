package control_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// another makes one more environment of the stage's repository.
func (s *stage) another(name string) intent.EnvironmentID {
	s.t.Helper()
	e, err := s.store.Environment(s.t.Context(), s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := s.CreateEnvironment(s.t.Context(),
		control.NewEnvironment{Environment: intent.Environment{ProjectID: e.ProjectID, Name: name, Source: e.Source}})
	if err != nil {
		s.t.Fatal(err)
	}
	return made.ID
}

// holdCompiles lets compiles wait from now on; each that does sends to holding.
func (s *stage) holdCompiles() (hold, holding chan struct{}) {
	hold, holding = make(chan struct{}), make(chan struct{}, 100)
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	s.parts.hold, s.parts.holding = hold, holding
	return hold, holding
}

// limited is a stage where so many compiles run at a time.
func limited(t *testing.T, n int) *stage {
	t.Helper()
	s := newStage(t)
	s.Stop()
	s.parts.compiles = n
	s.restart()
	return s
}

// One environment has twenty requests that cannot be answered together, two others
// one each, which come last. They do not wait for the twenty.
func TestAStormStarvesNobody(t *testing.T) {
	t.Parallel()
	s := limited(t, 1)
	b, c := s.another("b"), s.another("c")
	if err := s.SetSetting(t.Context(), s.env, "recompile_backoff", 0.0); err != nil {
		t.Fatal(err)
	}
	hold, holding := s.holdCompiles()
	request := func(env intent.EnvironmentID, i int) intent.CompileID {
		t.Helper()
		id, _, err := s.RequestCompile(t.Context(), env, control.CompileRequest{
			Update: true, Trigger: intent.Trigger{Type: "api"}, Variables: map[string]string{"N": fmt.Sprint(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	var last intent.CompileID
	for i := range 20 {
		last = request(s.env, i)
	}
	<-holding // the first of the storm runs
	ofB, ofC := request(b, 0), request(c, 0)
	close(hold)
	s.done(ofB)
	s.done(ofC)
	s.done(last)
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	if at := max(slices.Index(s.parts.order, "b"), slices.Index(s.parts.order, "c")); at < 0 || at > 5 {
		t.Errorf("they compiled in this order: %q", s.parts.order)
	}
	if s.parts.most != 1 || len(s.parts.order) != 22 {
		t.Errorf("%d compiles, %d at a time", len(s.parts.order), s.parts.most)
	}
}

// Fifty environments of one repository, forty pushes while two compile: what is
// left is one compile of the newest commit for each environment, two at a time.
func TestWhatRemainsAfterAStorm(t *testing.T) {
	tool.Heavy(t, "pushes 2,000 times")
	t.Parallel()
	const environments, pushes, width = 50, 40, 2
	s := limited(t, width)
	envs := []intent.EnvironmentID{s.env}
	for i := range environments - 1 {
		envs = append(envs, s.another(fmt.Sprint("e", i)))
	}
	hold, holding := s.holdCompiles()
	var pushed sync.WaitGroup
	for i := range pushes {
		commit := fmt.Sprintf("commit-%02d", i)
		s.push(commit)
		for _, env := range envs {
			pushed.Go(func() {
				if err := s.SourceMoved(t.Context(), env, commit, "webhook", "a push of "+commit); err != nil {
					t.Error(err)
				}
			})
		}
		if i == 0 {
			for range width {
				<-holding // so that some compile the first commit
			}
		}
		pushed.Wait()
	}
	close(hold)
	compiled := 0
	for _, env := range envs {
		s.env = env
		s.idle()
		if v := s.deployed(); v.Provenance.Commit != fmt.Sprintf("commit-%02d", pushes-1) {
			t.Errorf("deployed is %s", v.Provenance.Commit)
		}
		page, err := s.store.Compiles(t.Context(), env, intent.ListQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Items {
			if c.Substitute == nil {
				compiled++
			}
		}
	}
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	if most := environments + width; compiled > most || s.parts.most > width {
		t.Errorf("%d compiles for %d pushes to %d environments, want %d at most; %d at a time", compiled, pushes,
			environments, most, s.parts.most)
	}
}

// A preview does not wait for a compile of its environment, nor the compile for it,
// even where one of each may run at a time.
func TestPreviewsAndCompilesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := limited(t, 1)
	s.done(s.request("api"))
	hold, holding := s.holdCompiles()
	running := s.request("api")
	<-holding
	s.parts.mu.Lock()
	s.parts.hold = nil // the next one runs through
	s.parts.mu.Unlock()
	run, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "feature"})
	if err != nil {
		t.Fatal(err)
	}
	s.versionOfDryRun(run)
	if c, _, err := s.store.Compile(t.Context(), running); err != nil || c.Completed != nil {
		t.Errorf("the compile ended before the preview: %+v, %v", c, err)
	}
	close(hold)
	s.done(running)
	hold, holding = s.holdCompiles()
	second, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "feature"})
	if err != nil {
		t.Fatal(err)
	}
	<-holding
	s.parts.mu.Lock()
	s.parts.hold = nil
	s.parts.mu.Unlock()
	s.done(s.request("api"))
	if d, _, err := s.store.DryRun(t.Context(), s.env, second); err != nil || d.Version != 0 {
		t.Errorf("the preview ended before the compile: %+v, %v", d, err)
	}
	close(hold)
	s.versionOfDryRun(second)
}

// versionOfDryRun waits until the commit of a dry run is compiled.
func (s *stage) versionOfDryRun(id intent.ActionID) int {
	s.t.Helper()
	moves := s.events.Subscribe(nil)
	defer moves.Close()
	for {
		d, _, err := s.store.DryRun(s.t.Context(), s.env, id)
		if err != nil {
			s.t.Fatal(err)
		}
		if d.Version > 0 {
			return d.Version
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			s.t.Fatal("the preview does not end")
		}
	}
}

// With compile_cancel_older a push ends the compile of an older commit: it is
// recorded as such, what it made is not stored, and nobody is alarmed.
func TestANewerCommitCancelsAnOlderCompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	if err := s.SetSetting(t.Context(), s.env, "compile_cancel_older", true); err != nil {
		t.Fatal(err)
	}
	hold, holding := s.holdCompiles()
	move := func(commit string) intent.CompileID {
		t.Helper()
		s.push(commit)
		if err := s.SourceMoved(t.Context(), s.env, commit, "webhook", "ida pushed "+commit); err != nil {
			t.Fatal(err)
		}
		open, err := s.store.OpenCompiles(t.Context(), s.env)
		if err != nil || len(open) == 0 {
			t.Fatal(open, err)
		}
		return open[len(open)-1].ID
	}
	first := move("commit-1")
	<-holding
	second := move("commit-2")
	c, names := s.done(first)
	if *c.Success || c.Version != nil || c.SupersededBy == nil || *c.SupersededBy != second ||
		c.Revision.Commit != "commit-1" {
		t.Errorf("the older compile is %+v", c)
	}
	if names[len(names)-1] != intent.StageCompile {
		t.Errorf("it went through %q", names)
	}
	_, stages, err := s.store.Compile(t.Context(), first)
	if last := stages[len(stages)-1]; err != nil || last.Completed == nil || *last.ReturnCode != 1 ||
		!strings.Contains(last.ErrOutput, "a newer commit is there: ida pushed commit-2") {
		t.Errorf("its last stage is %+v, %v", last, err)
	}
	if n, err := s.store.Notifications(t.Context(), s.env, intent.ListQuery{}); err != nil || len(n.Items) > 0 {
		t.Errorf("people were told %+v, %v", n.Items, err)
	}
	<-holding
	// A request of a person cancels nothing, and theirs is not cancelled.
	asked := s.request("api")
	close(hold)
	if c, _ := s.done(second); !*c.Success || c.Revision.Commit != "commit-2" || c.SupersededBy != nil {
		t.Errorf("the newer compile is %+v", c)
	}
	s.done(asked)
	_, holding = s.holdCompiles()
	asked = s.request("api")
	<-holding
	s.parts.mu.Lock()
	hold = s.parts.hold
	s.parts.mu.Unlock()
	third := move("commit-3")
	close(hold)
	if c, _ := s.done(asked); !*c.Success || c.SupersededBy != nil {
		t.Errorf("what a person asked for is %+v", c)
	}
	s.done(third)
	commits, err := s.store.GitCommits(t.Context(), s.env, 100)
	if err != nil || !slices.ContainsFunc(commits, func(c intent.GitCommit) bool {
		return c.Revision.Commit == "commit-1" && c.Superseded && c.Version == 0
	}) {
		t.Errorf("%+v, %v", commits, err)
	}
	if v := s.deployed(); v.Provenance.Commit != "commit-3" {
		t.Errorf("deployed is %+v", v)
	}
}

// Commits that come faster than one compiles do not keep everything from being
// deployed: the fourth compile runs to its end. Without the setting, the first does.
func TestSomethingIsDeployedHoweverOftenCommitsCome(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		s := newStage(t)
		if err := s.SetSetting(t.Context(), s.env, "compile_cancel_older", on); err != nil {
			t.Fatal(err)
		}
		hold, holding := s.holdCompiles()
		cancelled := 0
		for i := range 5 {
			commit := fmt.Sprint("commit-", i)
			s.push(commit)
			before, err := s.store.OpenCompiles(t.Context(), s.env)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SourceMoved(t.Context(), s.env, commit, "webhook", ""); err != nil {
				t.Fatal(err)
			}
			if on && i > 0 && i <= 3 {
				if c, _ := s.done(before[0].ID); c.SupersededBy != nil {
					cancelled++
				}
			}
			if i == 0 || on && i <= 3 {
				<-holding
			}
		}
		close(hold)
		s.idle()
		page, err := s.store.Compiles(t.Context(), s.env, intent.ListQuery{Sort: "requested"})
		if err != nil {
			t.Fatal(err)
		}
		versions := []string{}
		for _, c := range page.Items {
			if c.Version != nil && c.Substitute == nil {
				versions = append(versions, c.Revision.Commit)
			}
		}
		want, most := []string{"commit-0", "commit-4"}, 0
		if on {
			want, most = []string{"commit-3", "commit-4"}, 3
		}
		if !slices.Equal(versions, want) || cancelled != most {
			t.Errorf("on %v: versions of %q, want %q; %d cancelled, want %d", on, versions, want, cancelled, most)
		}
	}
}

// A compile that waits for its turn while its environment is halted does not begin.
func TestHaltedWhileItWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s := limited(t, 1)
	b := s.another("b")
	hold, holding := s.holdCompiles()
	first := s.request("api")
	<-holding
	waits, _, err := s.RequestCompile(t.Context(), b,
		control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Halt(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	close(hold)
	s.done(first)
	s.done(s.request("api")) // b had its turn before this
	if c, _, err := s.store.Compile(t.Context(), waits); err != nil || c.Started != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.Resume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.done(waits)
	if _, _, err := s.store.Compile(t.Context(), waits); fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}
