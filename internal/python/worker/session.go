package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// silence is how long a worker may send nothing before it counts as stuck and is
// killed. Its heartbeat comes every 5 seconds.
const silence = 60 * time.Second

type session struct {
	p    *process
	done chan struct{}

	mu      sync.Mutex
	next    int64
	calls   map[int64]*call
	err     error // why the worker ended; set before done is closed
	ended   bool  // nothing is read any more
	closing bool
	posted  [][]byte      // frames to write, in their order
	wake    chan struct{} // buffered; wakes writePosted
}

// call is a request that has not got its reply yet.
type call struct {
	Errand
	s         *session
	id        int64
	answering sync.Mutex // held while a request of the worker is answered
}

// StartSession starts a worker and waits until it is ready. The context applies
// only to the start.
func StartSession(ctx context.Context, c Config) (Session, error) {
	p, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, done: make(chan struct{}), calls: map[int64]*call{}, wake: make(chan struct{}, 1)}
	go s.read()
	go s.writePosted()
	return s, nil
}

// read passes each frame to its call, until the worker ends.
func (s *session) read() {
	stuck := time.AfterFunc(silence, func() {
		s.setErr(fmt.Errorf("the Python worker sent no heartbeat for %s and was ended", silence))
		s.p.kill()
	})
	for {
		f, err := readFrame(s.p.frames)
		if err != nil {
			if errors.Is(err, ErrFrame) {
				s.setErr(err)
			}
			break
		}
		stuck.Reset(silence)
		id := f.For
		if f.Re != 0 {
			id = f.Re
		}
		s.mu.Lock()
		c := s.calls[id]
		s.mu.Unlock()
		switch {
		case c != nil:
			c.take(f)
		case f.ID != 0: // a request of a call that has ended
			over := &Failure{Kind: "cancelled", Message: "the task that asks for this is over"}
			if packet, err := answered(f.ID, nil, over); err == nil {
				go func() { _ = s.p.write(packet) }()
			}
		}
	}
	stuck.Stop()
	s.p.kill()
	<-s.p.ended
	s.setErr(s.p.endErr)
	closeAll(s.p.in, s.p.out)
	close(s.done)
	s.mu.Lock()
	s.ended = true
	left := slices.SortedFunc(maps.Values(s.calls), func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	clear(s.calls)
	err := s.err
	s.mu.Unlock()
	for _, c := range left { // in the order in which they were sent
		c.Done(nil, err)
	}
}

// writePosted writes what Post adds, so that Post never waits for a worker that does not read.
func (s *session) writePosted() {
	for {
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
		s.mu.Lock()
		frames := s.posted
		s.posted = nil
		s.mu.Unlock()
		_ = s.p.write(bytes.Join(frames, nil)) // if this fails, the worker has ended, and read ends every call
	}
}

// take processes a frame of a call.
func (c *call) take(f frame) {
	switch {
	case f.Re != 0:
		c.s.Forget(c.id)
		if f.Err != nil {
			c.Done(nil, f.Err)
		} else {
			c.Done(f.OK, nil)
		}
	case f.ID != 0:
		go func() {
			c.answering.Lock()
			defer c.answering.Unlock()
			c.reply(f)
		}()
	case c.Notice != nil:
		c.Notice(f.Op, f.Args)
	}
}

// setErr keeps the first error.
func (s *session) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		if s.closing {
			err = errors.New("the Python worker was closed")
		}
		s.err = err
	}
}

// Call implements Session.
func (s *session) Call(
	ctx context.Context,
	op string,
	args, reply any,
	answer Handler,
	notice func(op string, args json.RawMessage),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	type outcome struct {
		raw json.RawMessage
		err error
	}
	ended := make(chan outcome, 1)
	id, err := s.Post(
		Errand{
			Op:     op,
			Args:   args,
			Answer: answer,
			Notice: notice,
			Done:   func(raw json.RawMessage, err error) { ended <- outcome{raw, err} },
		},
	)
	if err != nil {
		return err
	}
	select {
	case e := <-ended:
		if e.err != nil || reply == nil {
			return e.err
		}
		if err := json.Unmarshal(e.raw, reply); err != nil {
			return fmt.Errorf("read the Python worker's reply to %s: %w", op, err)
		}
		return nil
	case <-ctx.Done():
		s.Forget(id)
		return ctx.Err()
	}
}

// Post implements Session.
func (s *session) Post(e Errand) (int64, error) {
	s.mu.Lock()
	if s.ended {
		defer s.mu.Unlock()
		return 0, s.err
	}
	s.next++
	id := s.next
	s.calls[id] = &call{Errand: e, s: s, id: id}
	s.mu.Unlock()
	// The lock is free meanwhile, because read needs it for every frame.
	packet, err := packed(request{ID: id, Op: e.Op, Args: e.Args, Behind: e.Behind})
	if err != nil {
		s.Forget(id)
		return 0, err
	}
	s.mu.Lock()
	s.posted = append(s.posted, packet)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // writePosted is about to look
	}
	return id, nil
}

// Forget implements Session.
func (s *session) Forget(request int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, request)
}

// reply answers a request of the worker.
func (c *call) reply(f frame) {
	var value any
	var err error
	if c.Answer == nil {
		err = &Failure{Kind: "protocol", Message: "no request " + f.Op + " is answered here"}
	} else {
		value, err = c.Answer(f.Op, f.Args)
	}
	packet, err := answered(f.ID, value, err)
	if err == nil {
		_ = c.s.p.write(packet) // if this fails, the worker has ended, and so will the call
	}
}

// Done implements Session.
func (s *session) Done() <-chan struct{} { return s.done }

// Err implements Session.
func (s *session) Err() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// PID implements Session.
func (s *session) PID() int { return s.p.pid }

// RSS implements Session.
func (s *session) RSS() int64 { return s.p.rss() }

// Close implements Session.
func (s *session) Close(grace time.Duration) error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.p.close(grace)
	<-s.done
	return nil
}

// Kill implements Session.
func (s *session) Kill() {
	s.p.kill()
	<-s.done
}

// LastWords implements Session.
func (s *session) LastWords() string { return s.p.words.String() }
