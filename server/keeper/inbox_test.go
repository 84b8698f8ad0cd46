package control_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// commits is a store that counts the commits that record webhooks, and holds
// the first until it may begin.
type commits struct {
	*store.Store
	began, begin chan struct{}
	fail         error

	mu    sync.Mutex
	sizes []int
}

func (c *commits) RecordDeliveries(ctx context.Context, ds []intent.Delivery) ([][]intent.EnvironmentID, error) {
	c.mu.Lock()
	c.sizes = append(c.sizes, len(ds))
	first := len(c.sizes) == 1
	c.mu.Unlock()
	if first {
		close(c.began)
		<-c.begin
	}
	if c.fail != nil {
		return nil, c.fail
	}
	return c.Store.RecordDeliveries(ctx, ds)
}

// burst records n webhooks, change made to each, that all arrive while the
// commit of one before them is under way. It gives their ids and errors.
func (s *stage) burst(c *commits, n int, change func(i int, d *intent.Delivery)) ([]uuid.UUID, []error) {
	s.t.Helper()
	c.Store, c.began, c.begin = s.store, make(chan struct{}), make(chan struct{})
	s.records = c
	s.Stop() // it records all the same, and acts on nothing
	s.Control = s.control()
	ids, errs := make([]uuid.UUID, n+1), make([]error, n+1)
	var wg sync.WaitGroup
	for i := range n + 1 {
		d := intent.Delivery{
			ID: uuid.New(), Forge: "github", Key: fmt.Sprint("k", i), Received: time.Now(), Size: 7, Verified: true, Event: pushed("refs/heads/main", commit("a")),
			Outcomes: []intent.DeliveryOutcome{{Environment: s.env, State: intent.OutcomeWaiting}},
		}
		change(i, &d)
		ids[i] = d.ID
		wg.Go(func() { _, errs[i] = s.RecordDelivery(s.t.Context(), d) })
		if i == 0 {
			<-c.began
		}
	}
	<-s.Arrived(n)
	close(c.begin)
	wg.Wait()
	return ids, errs
}

// What arrives while a commit is under way is recorded by the next one,
// together, and nobody is answered before.
func TestABurstIsFewCommits(t *testing.T) {
	t.Parallel()
	s, c := newStage(t), &commits{}
	ids, errs := s.burst(c, 200, func(int, *intent.Delivery) {})
	for i, id := range ids {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if _, err := s.Delivery(t.Context(), s.env, id); err != nil {
			t.Errorf("the %d. is not there: %v", i, err)
		}
	}
	if fmt.Sprint(c.sizes) != "[1 200]" {
		t.Errorf("201 webhooks were recorded by commits of %v", c.sizes)
	}
}

// One webhook that the database refuses takes none of those down that came with
// it; who sent it is told, and there is no record of it.
func TestAWebhookThatCannotBeRecordedFailsAlone(t *testing.T) {
	t.Parallel()
	s, c := newStage(t), &commits{}
	const bad = 7
	ids, errs := s.burst(c, 20, func(i int, d *intent.Delivery) {
		if i == bad {
			d.Outcomes[0].State = "no such state"
		}
	})
	for i, id := range ids {
		_, err := s.Delivery(t.Context(), s.env, id)
		switch {
		case i == bad && (errs[i] == nil || !fault.Is(err, fault.NotFound)):
			t.Errorf("the one that cannot be recorded was answered with %v, its record with %v", errs[i], err)
		case i != bad && (errs[i] != nil || err != nil):
			t.Errorf("the %d. was answered with %v, its record with %v", i, errs[i], err)
		}
	}
}

// When the commit fails, all that were in it are told, and none is tried alone:
// the database is away.
func TestACommitThatFailsAnswersNobodyWell(t *testing.T) {
	t.Parallel()
	s, c := newStage(t), &commits{fail: fault.New("test", fault.Unavailable, "away")}
	ids, errs := s.burst(c, 20, func(int, *intent.Delivery) {})
	for i, id := range ids {
		if !fault.Is(errs[i], fault.Unavailable) {
			t.Errorf("the %d. was answered with %v", i, errs[i])
		}
		_, err := s.Delivery(t.Context(), s.env, id)
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("the %d. is there: %v", i, err)
		}
	}
	if fmt.Sprint(c.sizes) != "[1 20]" {
		t.Errorf("commits of %v were tried", c.sizes)
	}
}

// While a burst of webhooks goes on no compile begins, whatever asked for it;
// but one that never ends holds it back for a while only.
func TestACompileWaitsForTheEndOfABurst(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Storm()
	asked := time.Now()
	c, _ := s.done(s.request("api"))
	if c.Started == nil || c.Started.Sub(asked) < control.StormMost {
		t.Errorf("asked for at %v it began at %v", asked, c.Started)
	}
}

// So does the next stage of one that runs already.
func TestACompileStopsForABurst(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.parts.venv = s.Storm
	asked := time.Now()
	id := s.request("api")
	s.done(id)
	_, stages, err := s.store.Compile(t.Context(), id)
	if err != nil || len(stages) < 3 {
		t.Fatal(stages, err)
	}
	for i, stage := range stages[1:] {
		if wait := stage.Started.Sub(asked); stages[i].Name == intent.StageVenv && wait < control.StormMost {
			t.Errorf("the stage %s began %v after the request", stage.Name, wait)
		}
	}
}
