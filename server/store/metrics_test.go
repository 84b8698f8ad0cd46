package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// Two processes ask for a sample of the same minute; it is taken once, for all environments. What happened in the
// minute is counted in it, and in no other one. A day later the minutes become an hour with the same averages and
// sums; then they are too old.
func TestMetricsAreSampledRolledUpAndForgotten(t *testing.T) {
	s := storetest.Open(t)
	env, other := newEnvironment(t, s), newEnvironment(t, s)
	v := release(t, s, env, resources(4))
	begin := time.Now().UTC().Truncate(time.Hour).Add(48 * time.Hour)
	minute := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	record := func(at time.Time) (taken int) {
		var both sync.WaitGroup
		var mu sync.Mutex
		for range 2 {
			both.Go(func() {
				did, err := s.RecordMetrics(t.Context(), at, 55*time.Second)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if did {
					taken++
				}
			})
		}
		both.Wait()
		return taken
	}
	if n := record(minute(1)); n != 1 {
		t.Fatalf("%d processes took the sample", n)
	}
	took := 0
	for _, st := range states(t, s, env) {
		if took++; took > 2 {
			break
		}
		f := deployed(st, v, 1)
		end := minute(1).Add(10 * time.Second)
		f.Action.Started, f.Action.Finished = end.Add(-time.Duration(took)*time.Second), &end
		must(t, s.FinishActions(t.Context(), env, []intent.FinishedAction{f}))
	}
	id := uuid.New()
	must(t, s.EnqueueCompile(t.Context(), intent.Compile{ID: id, Environment: env, Requested: minute(1), Export: true}))
	get(s.StartCompile(t.Context(), env, minute(1).Add(6*time.Second)))(t)
	must(t, s.FinishCompile(t.Context(), id, intent.CompileEnd{At: minute(1).Add(16 * time.Second), Success: true}))
	must(t, s.EnqueueCompile(t.Context(), intent.Compile{
		ID: uuid.New(), Environment: env, Requested: minute(1).Add(20 * time.Second), Export: true,
	}))
	if n := record(minute(1).Add(30 * time.Second)); n != 0 {
		t.Error("a sample was taken half a minute after the last one")
	}
	record(minute(2))
	record(minute(3))

	found := get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 60))(t)
	if len(found) != 3 || found[0].Place != 1 || found[1].Place != 2 || found[2].Place != 3 {
		t.Fatalf("%+v", found)
	}
	if found[0].Resources[intent.StatusAvailable] != 4 || found[1].Resources[intent.StatusDeployed] != 2 {
		t.Errorf("resources: %v, then %v", found[0].Resources, found[1].Resources)
	}
	if got, want := found[1].Deploys, (intent.MetricTimes{Count: 2, Seconds: 3}); got != want {
		t.Errorf("deployments %v, want %v", got, want)
	}
	if got, want := found[1].Compiles, (intent.MetricTimes{Count: 1, Seconds: 10}); got != want {
		t.Errorf("compiles %v, want %v", got, want)
	}
	if got, want := found[1].Waits, (intent.MetricTimes{Count: 1, Seconds: 6}); got != want {
		t.Errorf("waits %v, want %v", got, want)
	}
	if found[1].CompilesWaiting != 1 || found[2].Deploys.Count+found[2].Compiles.Count+found[2].Waits.Count != 0 {
		t.Errorf("%+v\n%+v", found[1], found[2])
	}
	if agents := found[1].Agents; agents.Up == 0 || agents.Down+agents.Paused != 0 {
		t.Errorf("agents %+v", agents)
	}
	if got := get(s.Metrics(t.Context(), other, begin, begin.Add(time.Hour), 1))(t); len(got) != 1 ||
		got[0].Resources[intent.StatusDeployed] != 0 {
		t.Errorf("the other environment: %+v", got)
	}

	before := get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 1))(t)
	must(t, s.RollMetrics(t.Context(), begin.Add(59*time.Minute)))
	if n := len(get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 60))(t)); n != 3 {
		t.Error("an hour that had not ended was put together")
	}
	must(t, s.RollMetrics(t.Context(), begin.Add(61*time.Minute)))
	if n := len(get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 60))(t)); n != 1 {
		t.Errorf("the hour has %d samples", n)
	}
	after := get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 1))(t)
	close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
	if diff := cmp.Diff(before, after, close); diff != "" {
		t.Error(diff)
	}

	must(t, s.DeleteMetricsBefore(t.Context(), map[intent.EnvironmentID]time.Time{env: begin.Add(time.Hour)}))
	if got := get(s.Metrics(t.Context(), env, begin, begin.Add(time.Hour), 1))(t); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := get(s.Metrics(t.Context(), other, begin, begin.Add(time.Hour), 1))(t); len(got) != 1 {
		t.Error("the samples of another environment are gone, too")
	}
}
