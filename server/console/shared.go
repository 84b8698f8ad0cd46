package console

import (
	"context"
	"sync"
	"time"
)

// shared lets requests that come at the same time share one load. A request never gets a load that began before the
// request came, so it sees all that was done before:
//
//	load 1 ├──────────┤├─ load 2 ─────┤
//	requests  ▲  ▲  ▲ ─▶ wait for load 2
type shared[T any] struct {
	load func(context.Context) (T, error)

	mu      sync.Mutex
	running bool
	next    *sharedLoad[T] // which the requests that wait will get; nil when none waits
}

type sharedLoad[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// loadTimeout ends a load that nobody may be waiting for any more.
const loadTimeout = time.Minute

// get returns what the next load returns. The value belongs to several requests, so nobody may change it.
func (s *shared[T]) get(ctx context.Context) (T, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &sharedLoad[T]{done: make(chan struct{})}
	}
	mine := s.next
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.value, mine.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// run loads until no request waits. The load gets nothing of the requests: neither their ends nor who sent them.
func (s *shared[T]) run() {
	for {
		s.mu.Lock()
		current := s.next
		s.next = nil
		s.running = current != nil
		s.mu.Unlock()
		if current == nil {
			return
		}
		timed, cancel := context.WithTimeout(context.Background(), loadTimeout)
		current.value, current.err = s.load(timed)
		cancel()
		close(current.done)
	}
}

// sharedBy shares the loads of several things, by what they are of.
type sharedBy[K comparable, T any] struct {
	load func(context.Context, K) (T, error)

	mu  sync.Mutex
	all map[K]*shared[T]
}

// maxShared is how many things are remembered; they are small, and made again at the next request.
const maxShared = 1000

func (s *sharedBy[K, T]) get(ctx context.Context, key K) (T, error) {
	s.mu.Lock()
	one := s.all[key]
	if one == nil {
		if s.all == nil || len(s.all) >= maxShared {
			s.all = map[K]*shared[T]{}
		}
		one = &shared[T]{load: func(ctx context.Context) (T, error) { return s.load(ctx, key) }}
		s.all[key] = one
	}
	s.mu.Unlock()
	return one.get(ctx)
}
