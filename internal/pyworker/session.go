package pyworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// silence is how long a worker may send nothing at all, not even its
// heartbeat, before it counts as stuck. The heartbeat is every 5 seconds.
const silence = 60 * time.Second

type session struct {
	p    *process
	done chan struct{}

	mu      sync.Mutex
	next    int64
	calls   map[int64]*call
	err     error // why it ended; valid after done
	closing bool
}

// call is a request that waits for its reply. Frames for it queue here so that
// the reader never waits for anybody.
type call struct {
	mu    sync.Mutex
	queue []frame
	ready chan struct{} // holds one token while the queue may be non-empty
}

func (c *call) push(f frame) {
	c.mu.Lock()
	c.queue = append(c.queue, f)
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *call) take() []frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue = nil
	return q
}

// StartSession starts a worker and waits until it is ready. The context is
// for the start only.
func StartSession(ctx context.Context, c Config) (Session, error) {
	p, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, done: make(chan struct{}), calls: map[int64]*call{}}
	go s.read()
	return s, nil
}

// read hands each frame to the call that it belongs to, until the end.
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
			c.push(f)
		case f.ID != 0: // a request of a call that is over
			if packet, err := answered(f.ID, nil, &Failure{Kind: "cancelled", Message: "the task that asks for this is over"}); err == nil {
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
}

// setErr keeps the first reason.
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
func (s *session) Call(ctx context.Context, op string, args, reply any, answer Handler, notice func(op string, args json.RawMessage)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{ready: make(chan struct{}, 1)}
	s.mu.Lock()
	s.next++
	id := s.next
	s.calls[id] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.calls, id)
		s.mu.Unlock()
	}()
	packet, err := packedRequest(request{ID: id, Op: op, Args: args})
	if err != nil {
		return err
	}
	if err := s.p.write(packet); err != nil {
		select {
		case <-s.done:
			return s.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		for _, f := range c.take() {
			switch {
			case f.Re == id && f.Err != nil:
				return f.Err
			case f.Re == id:
				if reply == nil {
					return nil
				}
				if err := json.Unmarshal(f.OK, reply); err != nil {
					return fmt.Errorf("pyworker: reply to %s: %w", op, err)
				}
				return nil
			case f.ID != 0:
				s.answer(f, answer)
			case notice != nil:
				notice(f.Op, f.Args)
			}
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			select {
			case <-c.ready: // what came before the end still counts
				continue
			default:
				return s.Err()
			}
		}
	}
}

func (s *session) answer(f frame, answer Handler) {
	var value any
	var err error
	if answer == nil {
		err = &Failure{Kind: "protocol", Message: "nobody answers " + f.Op + " here"}
	} else {
		value, err = answer(f.Op, f.Args)
	}
	packet, err := answered(f.ID, value, err)
	if err == nil {
		_ = s.p.write(packet) // when this fails the worker is gone, and the call learns it
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
