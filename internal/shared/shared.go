// Package shared lets requests that come at the same time share one load. A request never gets a load that began before
// the request came, so it sees all that was done before:
//
//	load 1 ├──────────┤├─ load 2 ─────┤
//	requests  ▲  ▲  ▲ ─▶ wait for load 2
//
// This is what golang.org/x/sync/singleflight does not give: there, a request joins the load that runs, and a client
// that changed something may get what was loaded before its change.
package shared

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Loads shares the loads of each key. The loads of one key follow one another. The zero value is ready to use.
type Loads[K comparable, T any] struct {
	// AtOnce is how many loads run at the same time, of whatever keys; the others wait for their turn. 0: any number.
	AtOnce int

	mu    sync.Mutex
	turns chan struct{}
	keys  map[K]*line[K, T] // of those that load or wait
}

// line is what happens with one key.
type line[K comparable, T any] struct {
	next *load[K, T] // the load that the requests that come now will get; nil when none waits
}

// load is one load and the requests that wait for it.
type load[K comparable, T any] struct {
	do      func(context.Context, K) (T, error)
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int // requests

	done     chan struct{}
	value    T
	err      error
	panicked string
}

// timeout ends a load that takes too long for any request.
const timeout = time.Minute

// Get returns what the next load of a key returns, which is that of the first request that waits for it. The load gets
// nothing else of the requests, not even who sent them, and is cancelled only when all of them have gone away. The
// value belongs to several requests, so nobody may change it.
func (s *Loads[K, T]) Get(ctx context.Context, key K, do func(context.Context, K) (T, error)) (T, error) {
	s.mu.Lock()
	l := s.keys[key]
	begin := l == nil
	if begin {
		if s.keys == nil {
			s.keys = map[K]*line[K, T]{}
			if s.AtOnce > 0 {
				s.turns = make(chan struct{}, s.AtOnce)
			}
		}
		l = &line[K, T]{}
		s.keys[key] = l
	}
	if l.next == nil {
		l.next = &load[K, T]{do: do, done: make(chan struct{})}
		l.next.ctx, l.next.cancel = context.WithCancel(context.Background())
	}
	mine := l.next
	mine.waiting++
	s.mu.Unlock()
	if begin {
		go s.run(key, l)
	}
	select {
	case <-mine.done:
		if mine.panicked != "" {
			panic(mine.panicked)
		}
		return mine.value, mine.err
	case <-ctx.Done():
		s.leave(l, mine)
		var none T
		return none, ctx.Err()
	}
}

// leave takes a request away that waits no longer.
func (s *Loads[K, T]) leave(l *line[K, T], mine *load[K, T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine.waiting--; mine.waiting > 0 {
		return
	}
	mine.cancel()
	if l.next == mine { // it has not begun
		l.next = nil
	}
}

// run loads until no request waits for the key.
func (s *Loads[K, T]) run(key K, l *line[K, T]) {
	for s.waits(key, l) {
		if s.turns != nil {
			s.turns <- struct{}{}
		}
		s.mu.Lock()
		current := l.next // only now, so that it has begun after all of its requests came
		l.next = nil
		s.mu.Unlock()
		if current != nil {
			current.run(key)
		}
		if s.turns != nil {
			<-s.turns
		}
	}
}

// waits reports whether a request waits for the key, and forgets the key otherwise.
func (s *Loads[K, T]) waits(key K, l *line[K, T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.next == nil {
		delete(s.keys, key)
	}
	return l.next != nil
}

// run loads. A panic is that of the requests, whose server knows what to do with it.
func (l *load[K, T]) run(key K) {
	defer close(l.done)
	defer l.cancel()
	defer func() {
		if r := recover(); r != nil {
			l.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	l.value, l.err = l.do(ctx, key)
}
