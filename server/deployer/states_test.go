package deployer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
	"ordain.dev/ordain/server/store"
)

// lost is a handler that cannot reach its target.
func lost(context.Context, executor.Task) executor.Result {
	return executor.Result{Status: intent.StatusUnavailable, Unreachable: true}
}

// drifts is a handler that finds other values than the model has, and puts them right.
func drifts(_ context.Context, t executor.Task) executor.Result {
	r := executor.Result{
		Status: intent.StatusDeployed,
		Change: intent.Updated,
		Changes: map[string]intent.AttributeChange{
			"hash": {
				Current: "other",
				Desired: "1",
			}, "returncode": {Current: nil, Desired: 0}, // which the model does not have
		},
	}
	if t.Action == executor.DryRun {
		r.Status, r.Change = intent.StatusDry, intent.NoChange
	}
	return r
}

// noticeboard is a record that keeps notices.
type noticeboard interface {
	Notifications(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Notification], error)
}

// notice waits for a notice, which is on record by then.
func (s *stage) notice(part string) {
	s.t.Helper()
	select {
	case n := <-s.told:
		if !strings.Contains(n.Title, part) || n.Severity == "" || n.Message == "" || n.URI == "" {
			s.t.Fatalf("%+v, want %q", n, part)
		}
		if db, ok := s.rec.(noticeboard); ok {
			page, err := db.Notifications(s.t.Context(), s.env.ID,
				intent.ListQuery{Filters: map[string][]string{"title": {n.Title}}})
			if err != nil || len(page.Items) != 1 || page.Items[0].Message != n.Message {
				s.t.Fatalf("recorded are %+v, %v", page.Items, err)
			}
		}
	case <-time.After(30 * time.Second):
		s.t.Fatalf("nobody was told of %q", part)
	}
}

// repair verifies everything as the timer would.
func (s *stage) repair() {
	s.t.Helper()
	s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true})
	s.wait()
}

// drift returns the records of drift where the record keeps them: "attribute found ending".
func (s *stage) drift() string {
	s.t.Helper()
	db, ok := s.rec.(interface {
		Drift(context.Context, intent.EnvironmentID, intent.ListQuery) (intent.Page[intent.Drift], error)
	})
	if !ok {
		s.t.Fatal("this record keeps none")
	}
	page, err := db.Drift(s.t.Context(), s.env.ID, intent.ListQuery{Sort: "since"})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, d := range page.Items {
		out = append(out, strings.TrimSpace(d.Attribute+" "+string(d.Found)+" "+string(d.Ending)))
	}
	return strings.Join(out, ", ")
}

// A resource that fails too often is parked in the record and people are notified; it stays parked after the server
// was killed, until somebody unparks it.
func TestParkedInTheRecord(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.env.Settings["max_attempts"] = 2
		s.exec.misbehave("x/a", fails)
		s.start()
		s.release("x/a 1", "x/b 1")
		s.wait()
		s.d.Deploy(intent.Request{}, intent.DeployRequest{})
		s.wait()
		s.notice("t::R[x,name=a] is parked")
		if st := s.state("x/a"); st.Parked != intent.ParkedAttempts || st.ParkedAt == nil || st.Attempts != 2 {
			t.Fatalf("%+v", st)
		}
		s.d.kill()
		s.start()
		s.release("x/a 1", "x/b 2")
		s.wait()
		s.exec.taken()
		s.exec.misbehave("x/a", nil)
		s.d.Unpark([]intent.ResourceID{rid("x/a")})
		s.wait()
		s.ran("x/a")
		s.status("x/a", intent.StatusDeployed)
		if st := s.state("x/a"); st.Parked != intent.NotParked || st.Attempts != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// That a person freed a resource is durable before its deployment ends: a server that is killed while it runs takes
// it up again, and does not find it parked.
func TestFreedAndKilled(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.env.Settings["max_attempts"] = 1
		s.exec.misbehave("x/a", fails)
		s.start()
		s.release("x/a 1")
		s.wait()
		s.notice("parked")
		begun := make(chan struct{})
		s.exec.misbehave("x/a", func(ctx context.Context, t executor.Task) executor.Result {
			close(begun)
			return hangs(ctx, t)
		})
		s.d.Deploy(intent.Request{}, intent.DeployRequest{})
		<-begun
		s.d.kill()
		if st := s.state("x/a"); st.Parked != intent.NotParked {
			t.Fatalf("%+v", st)
		}
		s.exec.misbehave("x/a", nil)
		s.start()
		s.wait()
		s.status("x/a", intent.StatusDeployed)
	})
}

// A repair that changes what nobody changed in the model heals drift, which is recorded with what was found. When
// timers find it again and again, it is contested in the end.
func TestDriftIsRecordedAndContested(t *testing.T) {
	t.Parallel()
	s := inPostgres(t)
	s.env.Settings["heal_limit"] = 2
	s.start()
	s.release("x/a 1", "x/b 1")
	s.wait()
	s.exec.misbehave("x/a", drifts)
	s.exec.misbehave("x/b", func(context.Context, executor.Task) executor.Result {
		return executor.Result{Status: intent.StatusDeployed}
	})
	s.repair()
	if got := s.drift(); got != `hash "other" healed` {
		t.Fatal(got)
	}
	for range 2 { // a person's repairs do not count, those of the timer do
		s.timer()
	}
	s.notice("Somebody else changes t::R[x,name=a]")
	s.exec.taken()
	s.timer()
	s.ran("x/b") // from now on "other" is out there, and stays there
	s.contested(1)
	if got := s.drift(); got != `hash "other" healed, hash "other" healed, hash "other"` {
		t.Fatal(got)
	}
	s.d.kill()
	s.start()
	s.repair()
	s.contested(1) // neither a restart nor a repair of everything makes it compliant
	s.exec.misbehave("x/a", nil)
	s.d.Unpark([]intent.ResourceID{rid("x/a")})
	s.wait()
	s.contested(0)
	if got := s.drift(); got != `hash "other" healed, hash "other" healed, hash "old" healed` {
		t.Fatal(got)
	}
}

// contested checks that all who count or judge resources agree on how many are contested: the state, the counts, and
// the gates of promotions. There are two resources.
func (s *stage) contested(n int) {
	s.t.Helper()
	db := s.rec.(*store.Store)
	counts, err := db.ResourceCounts(s.t.Context(), s.env.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if counts[intent.StatusDeployed] != 2-n || counts[intent.StatusNonCompliant] != n {
		s.t.Errorf("counted: %v", counts)
	}
	if parked := s.state("x/a").Parked; (parked == intent.ParkedContested) != (n == 1) {
		s.t.Errorf("parked: %q", parked)
	}
	leader, err := db.Followed(s.t.Context(), s.env.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if leader.Differ != n || leader.Drifted != n {
		s.t.Errorf("the gates see %d that differ and %d that drifted", leader.Differ, leader.Drifted)
	}
}

// timer is the repair timer, now.
func (s *stage) timer() {
	s.t.Helper()
	s.d.whenLoaded(func() { s.d.carryOut(s.d.sched.Trigger(scheduler.RepairTimer, scheduler.Filter{}, now())) })
	s.wait()
}

// Where drift is only reported the repair looks with a dry run, and records what it found; the log of the resource
// says that nothing was done.
func TestDriftIsReported(t *testing.T) {
	t.Parallel()
	s := inPostgres(t)
	s.env.Settings["drift_policy"] = "report"
	s.start()
	s.release("x/a 1")
	s.wait()
	s.exec.misbehave("x/a", drifts)
	s.timer()
	if got := s.drift(); got != `hash "other"` {
		t.Fatal(got)
	}
	s.status("x/a", intent.StatusNonCompliant)
	looks, err := s.rec.Actions(t.Context(), s.env.ID, rid("x/a"), intent.ActionDryRun, 10)
	if err != nil || len(looks) != 1 || looks[0].Status != intent.StatusDry ||
		!strings.Contains(looks[0].Messages[0].Message, "only reported") {
		t.Fatalf("%v, %+v", err, looks)
	}
	s.exec.misbehave("x/a",
		func(context.Context, executor.Task) executor.Result { return executor.Result{Status: intent.StatusDry} })
	s.timer()
	if got := s.drift(); got != `hash "other" gone` {
		t.Fatal(got)
	}
	s.status("x/a", intent.StatusDeployed)
}

// An unreachable target holds back the rest of its agent, in the record too: after the server was killed nothing
// starts there by itself. A person's deployment finds that it is back, and everything goes on.
func TestBreakerInTheRecord(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.env.Settings["breaker_failures"] = 2
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.exec.misbehave(name, lost)
		}
		s.start()
		s.release("x/a 1", "x/b 1", "x/c 1", "y/d 1")
		s.wait()
		s.notice("Agent x cannot reach its target")
		s.exec.taken()
		s.status("x/c", intent.StatusAvailable)
		if w := s.d.Snapshot().Wishes; len(w) != 1 || w[0].Unreachable == nil {
			t.Fatalf("%+v", w)
		}
		s.d.kill()
		s.start()
		s.wait()
		s.ran()
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.exec.misbehave(name, nil)
		}
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Agents: []string{"x"}})
		s.wait()
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.status(name, intent.StatusDeployed)
		}
		s.d.kill()
		s.start()
		s.wait()
		if s.d.sched.Breaker("x").Open() {
			t.Fatal("the record says that it is open")
		}
	})
}

// With time alone: a target that is unreachable for an hour is tried five times, and found to be back within its last
// pause.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t)
		s.env.Settings["breaker_failures"] = 2
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.exec.misbehave(name, lost)
		}
		s.start()
		s.release("x/a 1", "x/b 1", "x/c 1")
		s.wait()
		s.exec.taken()
		time.Sleep(time.Hour) // fake time
		synctest.Wait()
		if ran := s.exec.taken(); len(ran) != 5 { // after 1, 3, 7, 15, 31 minutes
			t.Fatalf("%d probes: %v", len(ran), ran)
		}
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.exec.misbehave(name, nil)
		}
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		for _, name := range []string{"x/a", "x/b", "x/c"} {
			s.status(name, intent.StatusDeployed)
		}
		s.d.Stop()
	})
}
