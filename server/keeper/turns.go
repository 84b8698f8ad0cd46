package keeper

import (
	"context"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// turns bounds how many compiles run at a time and is fair between environments. An
// environment waits once, no matter how many requests it has, and the next turn goes to
// the waiting environment whose last turn is the longest ago.
//
//	many requests of one environment:   A A A A A A A …          A B A C A …
//	                                    ────────────────▶ turns ─────────────▶
//	one request of each of two others:        B  C
//
// The requests themselves wait in the database, so that one turn answers all requests
// that arrived before it.
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

// take waits for a turn, or returns the error of ctx if that ends first.
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

// handOut assigns free places to waiting environments; t.mu is held.
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

// forget drops a deleted environment.
func (t *turns) forget(env intent.EnvironmentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, env)
}

// turn is one place among the running compiles.
type turn struct {
	turns *turns
	env   intent.EnvironmentID
	mu    sync.Mutex
	held  bool
}

// release returns the place; a second call does nothing.
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

// fetchGrace is how long a fetch keeps its place, so that a first clone or a repository
// that does not answer does not keep other environments from compiling.
const fetchGrace = 5 * time.Second

// during calls do, which may wait for a remote. If do takes longer than fetchGrace,
// during releases the place and waits for one again afterwards. A nil turn has no place
// to release.
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
