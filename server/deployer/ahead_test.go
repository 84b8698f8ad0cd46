package deployer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
)

// quick makes a deployer believe that handlers are quicker than commits, and send nothing before its turn.
func (s *stage) quick() {
	s.d.post(func() {
		s.d.taskTime, s.d.commitTime, s.d.queues.most = average(time.Millisecond), average(10*time.Millisecond), 0
	})
}

// While a runs, b, c and d are recorded ahead. Each runs once, in order, under
// the entry that was made for it.
func TestPreparedRun(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := make(chan struct{})
		s.exec.misbehave("x/a", until(gate))
		s.start()
		s.wait()
		s.quick()
		s.release("x/a 1", "x/b 1", "x/c 1 x/b", "x/d 1")
		s.exec.awaits("x/a")
		s.status("x/b", intent.StatusDeploying)
		s.status("x/c", intent.StatusAvailable) // it needs b, and then goes before d
		s.status("x/d", intent.StatusDeploying)
		close(gate)
		s.wait()
		s.ran("x/a", "x/b", "x/c", "x/d")
		for _, name := range []string{"x/a", "x/b", "x/c", "x/d"} {
			if list := s.actions(name); len(list) != 1 || list[0].Status != intent.StatusDeployed ||
				list[0].Finished == nil {
				t.Errorf("%s: %+v", name, list)
			}
			s.status(name, intent.StatusDeployed)
		}
	})
}

// When all that was recorded ahead has ended, and nothing else is to come, nothing
// is recorded ahead any more.
func TestNothingStaysAhead(t *testing.T) {
	s := inMemory(t)
	m := s.rec.(*memory)
	gate := make(chan struct{})
	s.exec.misbehave("x/a", until(gate))
	s.start()
	s.wait()
	s.quick()
	s.release("x/a 1", "x/b 1", "x/d 1")
	s.exec.awaits("x/a")
	if got := m.listed(); got != 2 {
		t.Errorf("%d are ahead", got)
	}
	close(gate)
	s.wait()
	s.ran("x/a", "x/b", "x/d")
	if got := m.listed(); got != 0 {
		t.Errorf("%d are ahead still", got)
	}
}

// firstOfTwo releases x/a and x/b; x/a runs until the channel is closed, x/b is
// recorded ahead.
func (s *stage) firstOfTwo() chan<- struct{} {
	s.t.Helper()
	gate := make(chan struct{})
	s.exec.misbehave("x/a", until(gate))
	s.start()
	s.wait()
	s.quick()
	s.release("x/a 1", "x/b 1")
	s.exec.awaits("x/a")
	return gate
}

// A task that was recorded ahead and does not come to run shows that: after a pause its resource is no longer
// deploying, and the log has no entry of it.
func TestPreparedAndPaused(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := s.firstOfTwo()
		s.d.SetPaused("x", true)
		close(gate)
		s.wait()
		s.ran("x/a")
		s.status("x/b", intent.StatusAvailable)
		if list := s.actions("x/b"); len(list) != 0 {
			t.Fatalf("%+v", list)
		}
		s.d.SetPaused("x", false)
		s.wait()
		s.ran("x/b")
		s.status("x/b", intent.StatusDeployed)
	})
}

// A prepared task that is dropped is no longer recorded ahead, while what is running goes on.
func TestDroppedWhileAnotherRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.ahead = make(chan int, 100)
		gate := s.firstOfTwo()
		s.status("x/b", intent.StatusDeploying)
		for len(s.ahead) > 0 {
			<-s.ahead
		}
		s.d.SetPaused("x", true)
		select {
		case n := <-s.ahead:
			if n != 0 {
				t.Errorf("%d are ahead still", n)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("it is not taken back while x/a runs")
		}
		if st := s.state("x/b"); st.IsDeploying {
			t.Errorf("%+v", st)
		}
		close(gate)
		s.wait()
		s.ran("x/a")
	})
}

// An end is recorded beside the list of what is ahead, not before it: the list keeps the task, so that it does not
// look as if it never began, and loses it afterwards.
func TestTheListKeepsEndsUntilTheyAreDurable(t *testing.T) {
	d := &Deployer{unsaved: make(map[intent.ResourceID]int), ahead: make(map[intent.ActionID]intent.ResourceID)}
	ended, next := newID(), newID()
	d.ahead[ended], d.ahead[next] = rid("x/a"), rid("x/b")
	d.queueEnd(intent.FinishedAction{Action: intent.Action{ID: ended}, State: intent.ResourceState{ID: rid("x/a")}})
	b := d.pending
	d.pending = batch{}
	b.rewriteAhead = true
	if w := d.writes(&b); len(w.ahead) != 2 {
		t.Errorf("beside the end: %v", w.ahead)
	}
	d.committed(b, refusals{}, nil, 0)
	if w := d.writes(&b); len(w.ahead) != 1 || w.ahead[0] != (intent.Ahead{Resource: rid("x/b"), Action: next}) {
		t.Errorf("afterwards: %v", w.ahead)
	}
}

// A newer version overtakes what was recorded ahead: b runs once, as the newer version has it.
func TestPreparedAndOvertaken(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := make(chan struct{})
		s.exec.misbehave("x/a", until(gate))
		s.start()
		s.wait()
		s.quick()
		s.release("x/a 1", "x/b 1", "x/c 1")
		s.exec.awaits("x/a")
		s.release("x/a 1", "x/b 2")
		close(gate)
		s.wait()
		s.ran("x/a", "x/b")
		list := s.actions("x/b")
		if len(list) != 1 || list[0].Version != 2 || list[0].Status != intent.StatusDeployed {
			t.Fatalf("%+v", list)
		}
		s.status("x/c", intent.StatusOrphaned)
		if st := s.state("x/c"); st.IsDeploying {
			t.Fatalf("%+v", st)
		}
	})
}

// Nothing is recorded ahead of slow handlers.
func TestNothingPreparedForSlow(t *testing.T) {
	s := inMemory(t)
	gate := make(chan struct{})
	s.exec.misbehave("x/a", until(gate))
	s.start()
	s.wait()
	s.d.post(func() { s.d.taskTime, s.d.commitTime = average(20*time.Millisecond), average(10*time.Millisecond) })
	s.release("x/a 1", "x/b 1")
	s.exec.awaits("x/a")
	s.status("x/b", intent.StatusAvailable)
	close(gate)
	s.wait()
	s.ran("x/a", "x/b")
}

// A prepared task that runs for long gets its entry while it runs.
func TestPreparedAndSlow(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		first, second := make(chan struct{}), make(chan struct{})
		s.exec.misbehave("x/a", until(first))
		s.exec.misbehave("x/b", until(second))
		s.start()
		s.wait()
		s.quick()
		s.release("x/a 1", "x/b 1")
		s.exec.awaits("x/a")
		close(first)
		s.exec.awaits("x/b")
		for list := s.actions("x/b"); len(list) == 0; list = s.actions("x/b") {
			<-s.evts // comes when the entry is made, if not before
		}
		if list := s.actions("x/b"); list[0].Finished != nil || list[0].Status != intent.StatusDeploying {
			t.Fatalf("%+v", list)
		}
		close(second)
		s.wait()
		if list := s.actions("x/b"); len(list) != 1 || list[0].Finished == nil ||
			list[0].Status != intent.StatusDeployed {
			t.Fatalf("%+v", list)
		}
		s.status("x/b", intent.StatusDeployed)
	})
}

// Ends that come fast wait for each other for a moment and no longer; and not at all where something waits for them,
// or nothing else is to come.
func TestEndsGather(t *testing.T) {
	fresh := func() *Deployer {
		return &Deployer{
			taskTime: average(
				time.Millisecond,
			), commitTime: average(time.Millisecond), endGap: average(time.Millisecond / 5),
			pending: batch{finishes: make([]intent.FinishedAction, 3)},
			running: map[intent.ActionID]*deployment{newID(): {}},
		}
	}
	for name, c := range map[string]struct {
		change func(d *Deployer)
		want   bool
	}{
		"fast":               {func(*Deployer) {}, true},
		"something begins":   {func(d *Deployer) { d.pending.starts = []*deployment{{}} }, false},
		"something is freed": {func(d *Deployer) { d.pending.freed = []intent.ResourceID{rid("x/a")} }, false},
		"nothing else runs":  {func(d *Deployer) { clear(d.running) }, false},
		"they waited":        {func(d *Deployer) { d.gatherSince = time.Now().Add(-gatherTime) }, false},
		"many": {func(d *Deployer) {
			d.pending.finishes = make([]intent.FinishedAction,
				mostGathered)
		}, false},
		"one by one":            {func(d *Deployer) { d.endGap = average(quickSuccession) }, false},
		"slow handlers":         {func(d *Deployer) { d.taskTime = average(slowTask) }, false},
		"the deployer is ended": {func(d *Deployer) { d.stopping = true }, false},
	} {
		d := fresh()
		c.change(d)
		if got := d.shouldGather(); got != c.want || got == d.gatherUntil.IsZero() {
			t.Errorf("%s: %v, until %v", name, got, d.gatherUntil)
		}
	}
}

// Gathered ends are recorded: however they follow each other, all are in the record at the end, each once, in far
// fewer commits than without a pause.
func TestManyEndsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t)
		s.rec.(*memory).takes = 100 * time.Microsecond
		s.start()
		s.wait()
		var lines, names []string
		for i := range 120 {
			name := fmt.Sprintf("%c/%03d", 'p'+i%3, i)
			names = append(names, name)
			s.exec.misbehave(name, func(ctx context.Context, task executor.Task) executor.Result {
				time.Sleep(200 * time.Microsecond)
				return deploys(ctx, task)
			})
			if i >= 60 { // the second half needs the first
				name += " 1 " + names[i-60]
			} else {
				name += " 1"
			}
			lines = append(lines, name)
		}
		s.d.post(func() {
			s.d.taskTime, s.d.commitTime, s.d.endGap = average(time.Millisecond/4), average(time.Millisecond), average(
				time.Millisecond/10,
			)
		})
		s.release(lines...)
		s.wait()
		for _, name := range names {
			if list := s.actions(name); len(list) != 1 || list[0].Status != intent.StatusDeployed ||
				list[0].Finished == nil {
				t.Errorf("%s: %+v", name, list)
			}
			s.status(name, intent.StatusDeployed)
		}
		if n := s.rec.(*memory).ended(); n > 10 {
			t.Errorf("%d commits", n)
		}
	})
}

// Gathered ends do not wait for something else to happen: they are recorded while the task that they waited for is
// still running, and nothing is to begin.
func TestGatheredEndsWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t)
		gate := make(chan struct{})
		s.exec.misbehave("y/b", until(gate))
		s.start()
		s.wait()
		s.release("x/a 1", "y/b 1")
		s.exec.awaits("y/b")
		synctest.Wait()
		s.d.post(func() { s.d.taskTime, s.d.commitTime, s.d.endGap = 1, 1, 1 })
		ends := func() int { synctest.Wait(); return s.rec.(*memory).ended() }
		before := ends()
		s.release("x/a 2", "y/b 1")
		time.Sleep(gatherTime - 1)
		if n := ends() - before; n != 0 {
			t.Errorf("%d commits, before it had gathered", n)
		}
		time.Sleep(time.Nanosecond)
		if n := ends() - before; n != 1 {
			t.Errorf("%d commits, after it had gathered", n)
		}
		s.status("x/a", intent.StatusDeployed)
		close(gate)
		s.wait()
	})
}
