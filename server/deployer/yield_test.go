package deployer

import (
	"slices"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// While a push is compiled what timers wish for waits, and what a person asks
// for does not; what the compile changed comes first, then the rest.
func TestTimersWaitForACompile(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		s.release("x/a 1", "x/b 1", "x/c 1")
		s.wait()
		s.exec.taken()
		s.d.Compiling(true)
		s.timer() // nothing of it can start
		s.ran()
		s.d.Deploy(true, nil, []intent.ResourceID{rid("x/b")})
		s.wait()
		s.ran("x/b")
		s.release("x/a 1", "x/b 1", "x/c 2")
		s.wait()
		s.ran("x/c")
		s.d.Compiling(false)
		s.wait()
		s.ran("x/a")
	})
}

// A compile that takes longer than timers can wait, or compiles without end, do not hold them for good.
func TestTimersWaitOnlySoLong(t *testing.T) {
	s := inMemory(t)
	s.start()
	s.release("x/a 1")
	s.wait()
	d, answers := s.d, make(chan []bool)
	d.post(func() {
		var yields []bool
		at := now()
		look := func(compiling bool, after time.Duration) {
			at = at.Add(after)
			d.yield.compiling = compiling
			d.giveWay(at)
			yields = append(yields, d.yield.on)
		}
		look(true, 0)
		look(true, mostYield-time.Second)
		look(true, time.Second)               // they waited long enough
		look(true, time.Second)               // and have time for themselves
		look(true, mostYield/2)               // as long as they wait now
		look(true, mostYield/2+2*time.Second) // and again it is enough
		look(false, time.Second)              // the compile is over
		look(true, time.Second)               // the next one comes too soon
		look(false, mostYield)                // all is forgotten
		look(true, time.Second)               // a short one
		look(false, 10*time.Second)           // is over
		look(true, time.Second)               // 9 s are spent
		look(true, mostYield-9*time.Second)
		answers <- yields
	})
	want := []bool{true, true, false, false, true, false, false, false, false, true, false, true, false}
	if got := <-answers; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}
