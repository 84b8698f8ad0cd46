package deployer

import (
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// quick makes a deployer believe that handlers are quicker than commits.
func (s *stage) quick() {
	s.d.post(func() { s.d.taskTime, s.d.commitTime = average(time.Millisecond), average(10*time.Millisecond) })
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
			if list := s.actions(name); len(list) != 1 || list[0].Status != intent.StatusDeployed || list[0].Finished == nil {
				t.Errorf("%s: %+v", name, list)
			}
			s.status(name, intent.StatusDeployed)
		}
	})
}

// What was recorded ahead and does not come to run says so: after a pause it
// is no longer deploying, and the log has nothing of it.
func TestPreparedAndPaused(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := make(chan struct{})
		s.exec.misbehave("x/a", until(gate))
		s.start()
		s.wait()
		s.quick()
		s.release("x/a 1", "x/b 1")
		s.exec.awaits("x/a")
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

// A newer version overtakes what was recorded ahead: b runs once, as the newer has it.
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

// A prepared task that takes its time gets its entry while it runs.
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
		if list := s.actions("x/b"); len(list) != 1 || list[0].Finished == nil || list[0].Status != intent.StatusDeployed {
			t.Fatalf("%+v", list)
		}
		s.status("x/b", intent.StatusDeployed)
	})
}
