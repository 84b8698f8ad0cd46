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
	s      *session
	id     int64
	op     string
	answer Handler
	notice func(op string, args json.RawMessage)

	mu    sync.Mutex
	queue []frame
	size  int           // of the notices in it
	ready chan struct{} // holds one token while somebody has to look at the queue

	answering sync.Mutex // held while a request of the worker is answered
}

// Notices alone are not worth waking whoever waits for the reply, until they are this many.
const (
	manyNotices = 64
	muchNoticed = 64 << 10
)

func (c *call) push(f frame) {
	c.mu.Lock()
	c.queue = append(c.queue, f)
	c.size += len(f.Args)
	wake := f.Re != 0 || f.ID != 0 || len(c.queue) >= manyNotices || c.size >= muchNoticed
	c.mu.Unlock()
	if wake {
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

func (c *call) take() []frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue, c.size = nil, 0
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
	r, err := s.Send(op, args, answer, notice)
	if err != nil {
		return err
	}
	defer r.Drop()
	raw, err := r.Wait(ctx, nil)
	if err != nil || reply == nil {
		return err
	}
	if err := json.Unmarshal(raw, reply); err != nil {
		return fmt.Errorf("pyworker: reply to %s: %w", op, err)
	}
	return nil
}

// Send implements Session.
func (s *session) Send(op string, args any, answer Handler, notice func(op string, args json.RawMessage)) (Request, error) {
	c := &call{s: s, op: op, answer: answer, notice: notice, ready: make(chan struct{}, 1)}
	s.mu.Lock()
	s.next++
	c.id = s.next
	s.calls[c.id] = c
	s.mu.Unlock()
	packet, err := packedRequest(request{ID: c.id, Op: op, Args: args})
	if err != nil {
		c.Drop()
		return nil, err
	}
	_ = s.p.write(packet) // when this fails the worker is gone or about to be, and Wait learns how
	return c, nil
}

// Drop implements Request.
func (c *call) Drop() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.calls, c.id)
}

// Wait implements Request.
func (c *call) Wait(ctx context.Context, late <-chan time.Time) (json.RawMessage, error) {
	for {
		if raw, err, is := c.read(); is {
			return raw, err
		}
		var why error
		select {
		case <-c.ready:
			continue
		case <-ctx.Done():
			why = ctx.Err()
		case <-late:
			why = ErrLate
		case <-c.s.done:
			why = c.s.Err()
		}
		if raw, err, is := c.read(); is { // what came before still counts
			return raw, err
		}
		return nil, why
	}
}

// read takes what came: notices, requests, and the reply if it is there.
func (c *call) read() (raw json.RawMessage, err error, is bool) {
	for _, f := range c.take() {
		switch {
		case f.Re == c.id && f.Err != nil:
			return nil, f.Err, true
		case f.Re == c.id:
			return f.OK, nil, true
		case f.ID != 0:
			go func() {
				c.answering.Lock()
				defer c.answering.Unlock()
				c.reply(f)
			}()
		case c.notice != nil:
			c.notice(f.Op, f.Args)
		}
	}
	return nil, nil, false
}

// reply answers a request of the worker.
func (c *call) reply(f frame) {
	var value any
	var err error
	if c.answer == nil {
		err = &Failure{Kind: "protocol", Message: "nobody answers " + f.Op + " here"}
	} else {
		value, err = c.answer(f.Op, f.Args)
	}
	packet, err := answered(f.ID, value, err)
	if err == nil {
		_ = c.s.p.write(packet) // when this fails the worker is gone, and the call learns it
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
