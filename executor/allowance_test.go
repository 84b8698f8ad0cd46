package executor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Two environments of a project may have one executor together. An idle one ends when the other environment needs it; a
// busy one ends when it has had its turn. Both environments deploy all they have.
func TestEnvironmentsShareAnAllowance(t *testing.T) {
	shared := NewAllowance()
	shared.Limit(1)
	change := func(c *Config) { c.Turn = 200 * time.Millisecond }
	a, b := newBench(t, change), newBench(t, change)
	a.SetAllowance(shared)
	b.SetAllowance(shared)
	one, two := a.variant(1), b.variant(1)
	first := a.pidOf(one, "h")
	b.pidOf(two, "h") // the executor of a is idle and ends
	if got := a.serving(); len(got) != 0 {
		t.Errorf("the idle executor still serves: %+v", got)
	}
	if a.pidOf(one, "h") == first {
		t.Error("the first executor lives on")
	}
	var all sync.WaitGroup
	for range 10 {
		for bench, blue := range map[*bench]intent.Blueprint{a: one, b: two} {
			all.Go(func() {
				r := bench.Run(t.Context(), task(blue, "h", "x", map[string]any{"what": "cache"}))
				expect(t, r, intent.StatusDeployed)
			})
		}
	}
	all.Wait()
	if n := len(a.Processes()) + len(b.Processes()); n != 1 || shared.taken != 1 {
		t.Errorf("%d executors live, %d are counted", n, shared.taken)
	}
	// Without a limit both have one.
	shared.Limit(-1)
	a.pidOf(one, "h")
	b.pidOf(two, "h")
	if len(a.serving()) != 1 || len(b.serving()) != 1 {
		t.Errorf("executors: %+v, %+v", a.serving(), b.serving())
	}
}

// There is no room for a virtual environment: the resource fails with the reason, and none is made.
func TestNoRoomForAVenv(t *testing.T) {
	var room error
	b := newBench(t, func(c *Config) { c.MayGrow = func(context.Context) error { return room } })
	room = errors.New("the project p has a quota of 1.0 GiB for disk and uses 1.2 GiB")
	blue := b.variant(1)
	r := b.Run(t.Context(), task(blue, "h", "x", map[string]any{"what": "cache"}))
	if r.Status == intent.StatusDeployed || !strings.Contains(lines(r), "quota of 1.0 GiB for disk") {
		t.Errorf("%s: %s", r.Status, lines(r))
	}
}
