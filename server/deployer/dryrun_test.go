package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
)

// looks returns a play for dry runs that finds these changes.
func looks(changes map[string]intent.AttributeChange) play {
	return func(_ context.Context, task executor.Task) executor.Result {
		if task.Action != executor.DryRun {
			return executor.Result{
				Status:   intent.StatusFailed,
				Messages: []intent.LogLine{{Level: "ERROR", Message: "told to " + string(task.Action)}},
			}
		}
		return executor.Result{Status: intent.StatusDry, Changes: changes}
	}
}

// candidate stores a version without releasing it.
func (s *stage) candidate(lines ...string) int {
	s.t.Helper()
	v := intent.NewVersion{Environment: s.env.ID, Code: []intent.ResourceCode{{Type: "t::R"}}}
	for _, line := range lines {
		v.Resources = append(v.Resources, resource(line))
	}
	n, err := s.rec.StoreVersion(s.t.Context(), v, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) dryRun(version, total int, f intent.DryRunFilter) intent.ActionID {
	s.t.Helper()
	run := intent.DryRun{
		ID:          uuid.New(),
		Environment: s.env.ID,
		Version:     version,
		Date:        time.Now(),
		Total:       total,
		Todo:        total,
		Filter:      f,
	}
	if err := s.rec.CreateDryRun(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
	s.d.DryRun(run.ID)
	return run.ID
}

// found returns the end of a dry run, and its results as "name kind".
func (s *stage) found(id intent.ActionID) (intent.DryRun, map[string]intent.ResourceDiff, []string) {
	s.t.Helper()
	run, diffs, err := s.rec.DryRun(s.t.Context(), s.env.ID, id)
	if err != nil {
		s.t.Fatal(err)
	}
	by := map[string]intent.ResourceDiff{}
	var kinds []string
	for _, d := range diffs {
		by[short(d.ID)] = d
		kinds = append(kinds, short(d.ID)+" "+string(d.Kind))
	}
	slices.Sort(kinds)
	return run, by, kinds
}

// A dry run of a version that is not released finds what would be new, changed and gone; what a handler cannot look
// at is not "no change". Nothing is deployed.
func TestDryRun(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.exec.misbehave("x/new", looks(map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}}))
		s.exec.misbehave("x/gone", looks(map[string]intent.AttributeChange{"purged": {Current: false, Desired: true}}))
		s.exec.misbehave("x/changed", looks(map[string]intent.AttributeChange{"hash": {Current: "1", Desired: "2"}}))
		s.exec.misbehave("x/same", looks(nil))
		s.exec.misbehave("y/broken", fails)
		s.exec.misbehave("y/inside", fails)
		s.exec.misbehave("z/away", func(context.Context, executor.Task) executor.Result {
			return executor.Result{
				Status:   intent.StatusUnavailable,
				Messages: []intent.LogLine{{Level: "ERROR", Message: "no route to z"}},
			}
		})
		s.start()
		s.release("p/paused 0")
		s.wait()
		s.ran("p/paused")
		if err := s.rec.SetAgentPaused(t.Context(), s.env.ID, "p", true,
			intent.Actor{By: "test", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		s.d.SetPaused("p", true)
		n := s.candidate("x/new 1", "x/gone 1", "x/changed 1", "x/same 1", "y/broken 1", "z/away 1", "p/paused 1",
			"x/unknown 1 - u", "x/behind 1 x/unknown", "y/between 1 x/new", "y/inside 1 y/between")
		s.exec.misbehave("y/between", looks(nil))
		id := s.dryRun(n, 11, intent.DryRunFilter{})
		s.wait()
		run, by, kinds := s.found(id)
		want := []string{
			"p/paused agent_down",
			"x/behind skipped_for_undefined",
			"x/changed modified",
			"x/gone deleted",
			"x/new added",
			"x/same unmodified",
			"x/unknown undefined",
			"y/between unmodified",
			"y/broken unknown",
			"y/inside unknown",
			"z/away agent_down",
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%q", kinds)
		}
		if run.Todo != 0 || run.Ending != intent.DryRunDone || run.Complete() && s.isPostgres() {
			t.Errorf("%+v", run)
		}
		for name, why := range map[string]string{"y/broken": "no such host", "z/away": "no route to z",
			"p/paused": "paused"} {
			if d := by[name]; !strings.Contains(d.Reason, why) || d.Behind != (intent.ResourceID{}) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if d := by["y/inside"]; d.Behind != rid("x/new") {
			t.Errorf("%+v", d)
		}
		s.ran()
	})
}

func (s *stage) isPostgres() bool { _, memory := s.rec.(*memory); return !memory }

// A filter chooses what is looked at, whatever the rest is like.
func TestDryRunOfSome(t *testing.T) {
	s := inMemory(t)
	s.start()
	n := s.candidate("x/a 1", "x/b 1", "y/a 1 - u", "z/c 1")
	for _, name := range []string{"x/a", "x/b", "z/c"} {
		s.exec.misbehave(name, looks(nil))
	}
	id := s.dryRun(n, 2,
		intent.DryRunFilter{Agents: []string{"x*", "y"}, Resources: []intent.ResourceID{rid("x/b"), rid("y/a")}})
	s.wait()
	if run, _, kinds := s.found(id); !slices.Equal(kinds, []string{"x/b unmodified", "y/a undefined"}) ||
		run.Ending != intent.DryRunDone {
		t.Fatalf("%q %+v", kinds, run)
	}
}

// The server is stopped in the middle of a dry run. The next one looks at what has no result, at nothing twice, and
// knows what was found before.
func TestDryRunGoesOnAfterARestart(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		lines := []string{"x/0 1"}
		s.exec.misbehave("x/0", looks(map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}}))
		for i := 1; i < 20; i++ {
			lines = append(lines, fmt.Sprintf("x/%d 1 x/0", i))
			s.exec.misbehave(fmt.Sprintf("x/%d", i), looks(nil))
		}
		s.exec.misbehave("x/7", func(ctx context.Context, _ executor.Task) executor.Result {
			<-ctx.Done()
			return executor.Result{Status: intent.StatusFailed}
		})
		n := s.candidate(lines...)
		id := s.dryRun(n, len(lines), intent.DryRunFilter{})
		s.exec.awaits("x/7")
		s.d.Stop()
		run, _, before := s.found(id)
		if run.Ended != nil || len(before) == 0 || run.Todo != len(lines)-len(before) {
			t.Fatalf("%+v %q", run, before)
		}
		s.exec.misbehave("x/7", fails)
		first := len(s.exec.tasks)
		s.start()
		s.wait()
		run, by, _ := s.found(id)
		if run.Ending != intent.DryRunDone || run.Todo != 0 || len(by) != len(lines) {
			t.Fatalf("%+v %v", run, by)
		}
		if again := len(s.exec.tasks) - first; again != len(lines)-len(before) {
			t.Errorf("%d were looked at again, %d had a result", again, len(before))
		}
		if by["x/7"].Behind != rid("x/0") { // found before the restart
			t.Errorf("%+v", by["x/7"])
		}
	})
}

// A person cancels: what is running ends, nothing more is looked at, and what the running look finds is not recorded.
func TestDryRunIsCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		gate := make(chan struct{})
		for _, name := range []string{"x/a", "x/b"} {
			s.exec.misbehave(name, func(context.Context, executor.Task) executor.Result {
				<-gate
				return executor.Result{Status: intent.StatusDry}
			})
		}
		id := s.dryRun(s.candidate("x/a 1", "x/b 1"), 2, intent.DryRunFilter{})
		s.exec.awaits("x/a")
		if err := s.rec.EndDryRun(t.Context(), s.env.ID, id, intent.DryRunCancelled, "", nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		s.d.CancelDryRun(id)
		s.d.Snapshot() // it was told
		close(gate)
		s.wait()
		if run, by, _ := s.found(id); run.Ending != intent.DryRunCancelled || len(by) != 0 || run.Todo != 2 ||
			len(s.exec.tasks) != 1 {
			t.Fatalf("%+v %v, %d looks", run, by, len(s.exec.tasks))
		}
	})
}

// A dry run is under way on the agent of a resource that a push changes: the
// push waits for one look, and what is looked at and deployed never run together.
func TestAPushOvertakesADryRun(t *testing.T) {
	s := inMemory(t)
	s.start()
	gate := make(chan struct{})
	look := func(_ context.Context, task executor.Task) executor.Result {
		if task.Action != executor.DryRun {
			return executor.Result{Status: intent.StatusDeployed}
		}
		<-gate
		return executor.Result{Status: intent.StatusDry}
	}
	names := []string{"x/a", "x/b", "x/c", "x/d"}
	var lines []string
	for _, name := range names {
		s.exec.misbehave(name, look)
		lines = append(lines, name+" 1")
	}
	id := s.dryRun(s.candidate(lines...), 4, intent.DryRunFilter{})
	s.exec.awaits("x/a")
	n := s.release("x/p 1", "x/q 1")
	for s.d.Snapshot().Version != n {
		<-s.evts // a version that is taken over is told
	}
	close(gate)
	s.wait()
	var order []string
	for _, task := range s.exec.tasks {
		order = append(order, string(task.Action)+" "+task.Resource.ID.Value)
	}
	if want := []string{"dryrun a", "deploy p", "deploy q", "dryrun b", "dryrun c", "dryrun d"}; !slices.Equal(
		order,
		want,
	) {
		t.Fatalf("%q", order)
	}
	if run, _, _ := s.found(id); run.Ending != intent.DryRunDone {
		t.Fatalf("%+v", run)
	}
}
