package control_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// The parts of the stage as a cluster service: one cluster, and no cluster files.

func (p *parts) Concerned(context.Context, intent.Environment, fs.FS) (bool, error) {
	return false, nil
}

func (p *parts) Read(context.Context, intent.Environment, fs.FS, func(string)) (json.RawMessage, error) {
	return nil, nil
}

func (p *parts) View(context.Context, intent.EnvironmentID) (map[string]json.RawMessage, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return map[string]json.RawMessage{"web": json.RawMessage(`"` + p.view + `"`)}, p.view, nil
}

func (p *parts) Busy(context.Context, intent.EnvironmentID) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy, nil
}

// set changes the parts.
func (p *parts) set(change func(*parts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// compileList lists the compiles of the environment, newest first.
func (s *stage) compileList() []intent.Compile {
	s.t.Helper()
	page, err := s.store.Compiles(s.t.Context(), s.env, intent.ListQuery{Sort: "requested", Desc: true, Limit: 20})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Items
}

// awaitCompile waits until there are n compiles, and the newest has ended, and returns it.
func (s *stage) awaitCompile(n int) intent.Compile {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if all := s.compileList(); len(all) == n && all[0].Completed != nil {
			return all[0]
		} else if len(all) > n || time.Now().After(deadline) {
			s.t.Fatalf("there are %d compiles, want %d: %+v", len(all), n, all)
		}
	}
}

// A model that uses the environment's clusters is compiled again when they changed, once, also if that happened during
// a compile or while no process ran. A model that does not use them is left alone.
func TestAModelIsCompiledAgainWhenItsClustersChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.parts.set(func(p *parts) { p.view = "one" })
	s.done(s.request("api"))
	s.parts.set(func(p *parts) { p.view = "two" })
	s.keepers.CompileForClusters(t.Context(), s.env, "job 1 ended")
	if all := s.compileList(); len(all) != 1 {
		t.Fatalf("%d compiles of a model that does not use clusters", len(all))
	}

	s.parts.set(func(p *parts) { p.modules = map[string]string{"ordain": "1.0.0"} })
	c, _ := s.done(s.request("api"))
	v, err := s.store.Version(t.Context(), s.env, *c.Version)
	if err != nil || v.Provenance.Clusters != "two" {
		t.Fatalf("the version saw %q, %v", v.Provenance.Clusters, err)
	}
	s.parts.set(func(p *parts) {
		if want := []string{`web "one"`, `web "two"`}; !slices.Equal(p.saw, want) {
			t.Errorf("compiles saw %q, want %q", p.saw, want)
		}
	})
	s.keepers.CompileForClusters(t.Context(), s.env, "job 2 ended")
	if all := s.compileList(); len(all) != 2 {
		t.Fatalf("%d compiles, and nothing changed", len(all))
	}
	s.parts.set(func(p *parts) { p.view = "three" })
	s.keepers.ClustersChanged(s.env, "job 3 ended")
	c = s.awaitCompile(3)
	if c.Trigger.Type != intent.TriggerCluster || !strings.HasSuffix(c.Trigger.Message, ": job 3 ended") {
		t.Errorf("the trigger is %+v", c.Trigger)
	}

	// A job ends while a compile runs, whose version cannot be compared yet.
	hold, holding := make(chan struct{}), make(chan struct{})
	s.parts.set(func(p *parts) { p.hold, p.holding = hold, holding })
	s.request("api")
	<-holding
	s.parts.set(func(p *parts) { p.view, p.hold = "four", nil })
	close(hold)
	if c = s.awaitCompile(5); c.Trigger.Type != intent.TriggerCluster {
		t.Errorf("the trigger is %+v", c.Trigger)
	}

	// While a job runs, nothing is compiled because of what it has done so far.
	hold = make(chan struct{})
	s.parts.set(func(p *parts) { p.hold, p.busy = hold, true })
	id := s.request("api")
	<-holding
	s.parts.set(func(p *parts) { p.view, p.hold = "five", nil })
	close(hold)
	s.done(id)
	s.Stop()
	if all := s.compileList(); len(all) != 6 {
		t.Fatalf("%d compiles while a job runs", len(all))
	}

	// The process that was told of the job's end did not get to it.
	s.parts.set(func(p *parts) { p.busy = false })
	s.restart()
	if c = s.awaitCompile(7); c.Trigger.Type != intent.TriggerCluster {
		t.Errorf("the trigger is %+v", c.Trigger)
	}
}
