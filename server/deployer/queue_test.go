package deployer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// line lets x/a run until the channel is closed, with x/b, x/c and x/d behind it; x/e needs x/b.
func (s *stage) line() chan<- struct{} {
	s.t.Helper()
	gate := make(chan struct{})
	s.exec.misbehave("x/a", until(gate))
	s.start()
	s.wait()
	s.quick()
	s.d.post(func() {
		s.d.queues.of["x"] = &agentQueue{time: average(time.Millisecond / 2)}
		s.d.queues.slow, s.d.queues.most = time.Hour, mostBehind
	})
	s.release("x/a 1", "x/b 1", "x/c 1", "x/d 1", "x/e 1 x/b")
	s.exec.awaits("x/a")
	for s.exec.sentBehind() < 3 {
		s.d.Snapshot()
	}
	return gate
}

func (a *actor) sentBehind() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.behind
}

func (a *actor) givenBack() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.back)
}

// Where tasks are quick the next ones are sent before their turn. They run once each, in order, and what needs one of
// them is not among them. They show as deploying before, and the log says when each began.
func TestSentBehind(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := s.line()
		for _, name := range []string{"x/b", "x/c", "x/d"} {
			s.status(name, intent.StatusDeploying)
		}
		if n := s.exec.sentBehind(); n != 3 {
			t.Errorf("%d are behind x/a", n)
		}
		if strings.Contains(s.log.String(), "name=b]") {
			t.Errorf("the log has what did not begin: %s", s.log.String())
		}
		ends := time.Now()
		close(gate)
		s.wait()
		s.ran("x/a", "x/b", "x/c", "x/d", "x/e")
		for _, name := range []string{"x/a", "x/b", "x/c", "x/d", "x/e"} {
			list := s.actions(name)
			if len(list) != 1 || list[0].Status != intent.StatusDeployed || list[0].Finished == nil {
				t.Fatalf("%s: %+v", name, list)
			}
			if name != "x/a" && list[0].Started.Before(ends.Truncate(time.Millisecond)) && name != "x/e" {
				t.Errorf("%s began at %s, before %s", name, list[0].Started, ends)
			}
			s.status(name, intent.StatusDeployed)
		}
		if got := s.exec.givenBack(); got != nil {
			t.Errorf("given back: %v", got)
		}
		if n := strings.Count(s.log.String(), "Deployment starts: "); n != 5 {
			t.Errorf("the log has %d beginnings:\n%s", n, s.log.String())
		}
	})
}

// What has not begun comes back for a pause, a halt, a newer version and a person's wish, leaves no trace, and runs
// once when it may.
func TestWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		event, undo func(s *stage)
		then        []string
	}{
		"pause": {
			func(s *stage) { s.d.SetPaused("x", true) }, func(s *stage) { s.d.SetPaused("x", false) },
			[]string{"x/b", "x/c", "x/d", "x/e"},
		},
		"halt": {
			func(s *stage) { e := s.env; e.Halted = true; s.d.Changed(e) }, func(s *stage) { s.d.Changed(s.env) },
			[]string{"x/b", "x/c", "x/d", "x/e"},
		},
		"a window": {
			func(s *stage) {
				e := s.env
				freeze := map[string]any{"kind": "freeze", "cron": "0 0 * * *", "duration": 23.9 * 3600}
				e.Settings = map[string]any{"maintenance_windows": map[string]any{"never": freeze}}
				s.d.Changed(e)
			}, func(s *stage) { s.d.Changed(s.env) },
			[]string{"x/b", "x/c", "x/d", "x/e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *stage) {
				gate := s.line()
				c.event(s)
				for len(s.exec.givenBack()) < 3 {
					s.d.Snapshot()
				}
				close(gate)
				s.wait()
				s.ran("x/a")
				for _, name := range []string{"x/b", "x/c", "x/d"} {
					s.status(name, intent.StatusAvailable)
					if list := s.actions(name); len(list) != 0 {
						t.Fatalf("%s: %+v", name, list)
					}
				}
				if strings.Contains(s.log.String(), "name=b]") {
					t.Errorf("the log has what did not run:\n%s", s.log.String())
				}
				c.undo(s)
				s.wait()
				s.ran(c.then...)
				for _, name := range c.then {
					if list := s.actions(name); len(list) != 1 {
						t.Errorf("%s: %+v", name, list)
					}
				}
			})
		})
	}
}

// A person's wish goes before what a version wished for: it waits for the one task that runs.
func TestOvertaken(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := s.line()
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Resources: []intent.ResourceID{rid("x/d")}})
		for len(s.exec.givenBack()) < 3 {
			s.d.Snapshot()
		}
		close(gate)
		s.wait()
		s.ran("x/a", "x/d", "x/b", "x/c", "x/e")
	})
}

// A newer version takes back what has not begun; what it left out does not run.
func TestBehindAndANewerVersion(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := s.line()
		s.release("x/a 1", "x/b 2", "x/d 1")
		for len(s.exec.givenBack()) < 3 {
			s.d.Snapshot()
		}
		close(gate)
		s.wait()
		if got := s.exec.taken(); len(got) != 3 || slices.Contains(got, "x/c") || slices.Contains(got, "x/e") {
			t.Errorf("ran %v", got)
		}
		if list := s.actions("x/b"); len(list) != 1 || list[0].Version != 2 {
			t.Errorf("%+v", list)
		}
		s.status("x/c", intent.StatusOrphaned)
	})
}

// A task that is not quick after all has what is behind it recalled, so that a pause is as exact as ever. Nothing is
// sent behind it again.
func TestSlowHead(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := s.line()
		s.d.post(func() { s.d.queues.slow = slowHead })
		for len(s.exec.givenBack()) < 3 {
			s.d.Snapshot()
		}
		if n := s.exec.sentBehind(); n != 3 {
			t.Errorf("%d were sent behind", n)
		}
		close(gate)
		s.wait()
		s.ran("x/a", "x/b", "x/c", "x/d", "x/e")
	})
}

// Nothing is sent behind slow tasks.
func TestNothingBehindSlow(t *testing.T) {
	for took, want := range map[time.Duration]int{time.Microsecond: mostBehind, time.Millisecond: 4,
		2 * time.Millisecond: 2, 5 * time.Millisecond: 0, 0: 0} {
		q := &agentQueue{runs: []*deployment{{}}, time: average(took)}
		if got := q.depth(mostBehind); got != want {
			t.Errorf("%s: %d", took, got)
		}
	}
	if got := (&agentQueue{time: 1}).depth(mostBehind); got != 0 {
		t.Errorf("nothing runs: %d", got)
	}
	if got := (&agentQueue{runs: []*deployment{{}}, time: 1, holdBack: true}).depth(mostBehind); got != 0 {
		t.Errorf("after some came back: %d", got)
	}
}

// The server ends while tasks are behind another. None of them ran; the next server runs each once.
func TestStoppedWithBehind(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.line()
		s.d.Stop()
		s.ran("x/a")
		s.exec.misbehave("x/a", deploys)
		s.start()
		s.wait()
		got := s.exec.taken()
		slices.Sort(got)
		if !slices.Equal(got, []string{"x/a", "x/b", "x/c", "x/d", "x/e"}) {
			t.Errorf("ran %v", got)
		}
		for _, name := range got {
			s.status(name, intent.StatusDeployed)
		}
	})
}
