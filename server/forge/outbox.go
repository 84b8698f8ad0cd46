package forge

import (
	"context"
	"errors"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/client"
)

const (
	// senderCount bounds how many forges are spoken to at a time. The store hands
	// out only one piece of work of an environment at a time.
	senderCount = 4
	// sendLease is how long one piece of work is left to its sender.
	sendLease = 3 * time.Minute
	// sendAttempts is how often one is tried before it is dead: over a day, as pauses grow.
	sendAttempts = 30
	// shortestPause and longestPause bound the pauses between two attempts.
	shortestPause = 2 * time.Second
	longestPause  = time.Hour
	// outboxInterval is how often the record is read for work that nobody announced.
	outboxInterval = 15 * time.Second
	// outboxCalm is the shortest time between two looks that found nothing.
	outboxCalm = 100 * time.Millisecond
)

// OutboxRetention is how long work that was done is kept.
const OutboxRetention = 14 * 24 * time.Hour

// Retry tries a piece of work again that was given up (dead); Conflict when it is not dead.
func (s *Service) Retry(ctx context.Context, env intent.EnvironmentID, id int64) error {
	if err := s.cfg.Store.RetryOutbox(ctx, env, id, s.cfg.Now()); err != nil {
		return err
	}
	s.wake()
	s.publish(env, bus.Pull, "")
	return nil
}

// sendOutbox does the work that waits, one piece after the other, until ctx ends.
func (s *Service) sendOutbox(ctx context.Context) {
	for ctx.Err() == nil {
		now := s.cfg.Now()
		work, next, err := s.cfg.Store.TakeOutbox(ctx, now, now.Add(sendLease))
		if work != nil {
			s.wake() // another sender may find more
			s.send(ctx, *work)
			continue
		}
		wait := outboxInterval
		if err != nil {
			if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
				s.cfg.Logger.Error("cannot read what forges are to be told", "error", err)
			}
		} else if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
		s.awaitWork(ctx, wait)
	}
}

// awaitWork waits until there may be work.
func (s *Service) awaitWork(ctx context.Context, most time.Duration) {
	calm := time.NewTimer(outboxCalm)
	defer calm.Stop()
	select {
	case <-ctx.Done():
	case <-calm.C:
	}
	due := time.NewTimer(most)
	defer due.Stop()
	select {
	case <-ctx.Done():
	case <-s.wakes:
	case <-due.C:
	}
}

// send does one piece of work and records how it went.
func (s *Service) send(ctx context.Context, w intent.Outbox) {
	err := s.work(ctx, w)
	if ctx.Err() != nil {
		return // the next server does it again
	}
	log := s.cfg.Logger.With("environment", w.Environment, "work", w.Topic)
	now := s.cfg.Now()
	var limited *client.LimitedError
	switch {
	case err == nil, errors.Is(err, ErrNoForge), fault.Is(err, fault.NotFound) && w.Kind == intent.OutboxPull:
		err = s.cfg.Store.OutboxSent(ctx, w, now)
	case errors.As(err, &limited):
		log.Warn("a forge wants to be left alone", "until", limited.Until)
		err = errors.Join(
			s.cfg.Store.OutboxFailed(ctx, w, err.Error(), limited.Until, w.Attempts+1 >= sendAttempts, now),
			s.cfg.Store.DelayOutbox(ctx, w.Environment, limited.Until),
		)
	default:
		dead := w.Attempts+1 >= sendAttempts || !mayPass(err)
		log.Warn("a forge was not told", "attempt", w.Attempts+1, "dead", dead, "error", err)
		err = s.cfg.Store.OutboxFailed(ctx, w, err.Error(), now.Add(backoff(w.Attempts)), dead, now)
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("cannot record how a forge was told; it is told again", "error", err)
	}
	s.publish(w.Environment, bus.Pull, "")
}

// mayPass reports whether another attempt may succeed by itself.
func mayPass(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Unauthorized, fault.Forbidden, fault.NotFound:
		return false
	}
	return true
}

func backoff(attempts int) time.Duration {
	return min(shortestPause<<min(attempts, 20), longestPause)
}

// work does one piece of work.
func (s *Service) work(ctx context.Context, w intent.Outbox) error {
	e, err := s.cfg.Store.Environment(ctx, w.Environment)
	if err != nil {
		return err
	}
	f, err := s.cfg.Forges.Open(ctx, e)
	if err != nil {
		return err
	}
	switch w.Kind {
	case intent.OutboxStatus:
		p := w.Payload
		return f.SetStatus(ctx, client.Status{
			Commit: p.Commit, Context: p.Context, State: p.State, Description: p.Description, URL: s.page(p.Path),
		})
	case intent.OutboxPull:
		return s.lookAtPull(ctx, e, f, w.Payload.Number)
	case intent.OutboxPulls:
		return s.lookAtPulls(ctx, e, f)
	case intent.OutboxComment:
		return s.comment(ctx, e, f, w.Payload.Number)
	}
	return fault.New("forge.send", fault.Invalid, "there is no work of the kind "+string(w.Kind))
}
