package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// turns lets only so many compiles run at a time and is fair between
// environments: an environment waits once, however many requests it has, and of
// those that wait the one goes first that had no turn for the longest time.
//
//	a storm in one environment:   A A A A A A A …          A B A C A …
//	                              ────────────────▶ turns ─────────────▶
//	one request in others:              B  C
//
// Requests wait in the place of record and not here, so that a turn takes along
// all that came while it was waited for.
type turns struct {
	mu      sync.Mutex
	free    int
	count   uint64
	last    map[intent.EnvironmentID]uint64 // when each had its last turn, counted in turns
	waiting []*waiter
}

type waiter struct {
	env  intent.EnvironmentID
	turn chan struct{} // closed when it is its turn
}

func newTurns(n int) *turns {
	return &turns{free: n, last: map[intent.EnvironmentID]uint64{}}
}

// take waits for a turn; an error says that ctx ended before.
func (t *turns) take(ctx context.Context, env intent.EnvironmentID) (*turn, error) {
	w := &waiter{env: env, turn: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.next()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return &turn{turns: t, env: env, held: true}, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return nil, ctx.Err()
	}
	t.free++ // it came at the same moment
	t.next()
	return nil, ctx.Err()
}

// next gives what is free to those that wait; t.mu is held.
func (t *turns) next() {
	for t.free > 0 && len(t.waiting) > 0 {
		first := 0
		for i, w := range t.waiting {
			if t.last[w.env] < t.last[t.waiting[first].env] {
				first = i
			}
		}
		w := t.waiting[first]
		t.waiting = slices.Delete(t.waiting, first, first+1)
		t.count++
		t.last[w.env] = t.count
		t.free--
		close(w.turn)
	}
}

// forget drops what is known of an environment that is no more.
func (t *turns) forget(env intent.EnvironmentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, env)
}

// turn is one place among the compiles that run.
type turn struct {
	turns *turns
	env   intent.EnvironmentID
	mu    sync.Mutex
	held  bool
}

// release gives the place back; again does nothing.
func (t *turn) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.held {
		return
	}
	t.held = false
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.turns.free++
	t.turns.next()
}

// fetchGrace is how long a fetch keeps its place: a repository that does not
// answer, or a first clone, shall not keep other environments from compiling.
const fetchGrace = 5 * time.Second

// during does something that may wait for others; where that takes long the
// place is given away meanwhile, and waited for again.
func (t *turn) during(ctx context.Context, do func()) {
	lent := make(chan struct{})
	lend := time.AfterFunc(fetchGrace, func() {
		defer close(lent)
		t.release()
	})
	do()
	if lend.Stop() {
		return
	}
	<-lent
	if again, err := t.turns.take(ctx, t.env); err == nil {
		t.mu.Lock()
		t.held, again.held = true, false
		t.mu.Unlock()
	}
}
