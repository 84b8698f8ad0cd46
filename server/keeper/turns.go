package keeper

import (
	"context"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// turns bounds how many compiles run at a time and is fair between environments:
// an environment waits once, however many requests it has, and of those that wait
// the one goes first that had no turn for the longest time.
//
//	many requests of one environment:   A A A A A A A …          A B A C A …
//	                                    ────────────────▶ turns ─────────────▶
//	one request of each of two others:        B  C
//
// Requests wait in the database and not here, so that a turn takes along all
// requests that came while it was waited for.
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

// take waits for a turn, or returns the error of ctx when that ends before.
func (t *turns) take(ctx context.Context, env intent.EnvironmentID) (*turn, error) {
	w := &waiter{env: env, turn: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.handOut()
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
	t.free++ // the turn came at the same moment
	t.handOut()
	return nil, ctx.Err()
}

// handOut hands the free places to those that wait; t.mu is held.
func (t *turns) handOut() {
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

// forget drops what is known of an environment that is gone.
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

// release gives the place back; a second call does nothing.
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
	t.turns.handOut()
}

// fetchGrace is how long a fetch keeps its place: a repository that does not
// answer, or a first clone, must not keep other environments from compiling.
const fetchGrace = 5 * time.Second

// during calls do, which may wait for a remote. When that takes longer than
// fetchGrace, the place is given away meanwhile and waited for again. A nil turn
// has no place to give away.
func (t *turn) during(ctx context.Context, do func()) {
	if t == nil {
		do()
		return
	}
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
	if retaken, err := t.turns.take(ctx, t.env); err == nil {
		t.mu.Lock()
		t.held, retaken.held = true, false
		t.mu.Unlock()
	}
}
