package gitsync

import "context"

type flightKey struct {
	mirror      string
	credentials Credentials // a remote must see the credentials of every caller
	trust       Trust
	beside      string // the branch that is fetched in addition to Source.Only
}

// flight is a fetch that callers wait for. After the one that is running, at most
// one more waits to run, and all callers that come in the meantime join that one.
type flight struct {
	running bool
	done    chan struct{}
	next    *flight
	waiting int
	cancel  context.CancelFunc
	result  fetched
	err     error
}

// share runs a fetch, or joins one that has not begun yet.
func (s *Syncer) share(ctx context.Context, p place) (fetched, error) {
	key := flightKey{s.mirrorDir(p), p.credentials, p.trust, p.beside()}
	s.mu.Lock()
	f := s.flights[key]
	switch {
	case f == nil:
		f = &flight{done: make(chan struct{})}
		s.flights[key] = f
		s.begin(key, f, p)
	case f.next == nil:
		f.next = &flight{done: make(chan struct{})}
		f = f.next
	default:
		f = f.next
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		s.mu.Lock()
		if f.waiting--; f.waiting == 0 && f.cancel != nil {
			f.cancel() // nobody waits for it any more
		}
		s.mu.Unlock()
		return fetched{report: Report{Command: s.command(p, s.mirrored(p))}}, p.remoteFault(opFetch, ctx.Err())
	}
}

// begin starts a flight; s.mu is held. The flight does not end with the context of
// its first caller, because others wait for it too.
func (s *Syncer) begin(key flightKey, f *flight, p place) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.FetchTimeout)
	f.running, f.cancel = true, cancel
	go func() {
		defer cancel()
		f.result, f.err = s.fetch(ctx, p, key.mirror)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch next := f.next; {
		case next == nil || next.waiting == 0:
			delete(s.flights, key)
		default:
			s.flights[key] = next
			s.begin(key, next, p)
		}
		close(f.done)
	}()
}
