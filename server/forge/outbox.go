package forge

import (
	"context"
	"errors"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/store"
)

const (
	// Senders bounds how many forges a server speaks to at a time. An environment's
	// messages are sent one after the other.
	Senders = 4
	// sendLease keeps servers of older versions away from a message that is being sent.
	sendLease = 3 * time.Minute
	// sendTime is how long the process of an environment sends before others get
	// a turn, and attemptTime bounds that with the last message.
	sendTime    = 2 * time.Minute
	attemptTime = 5 * time.Minute
	// sendAttempts is how often one is tried before it is dead: over a day, as pauses grow.
	sendAttempts = 30
	// shortestPause and longestPause bound the pauses between two attempts.
	shortestPause = 2 * time.Second
	longestPause  = time.Hour
	// outboxInterval is how often the record is read for messages without a process.
	outboxInterval = 15 * time.Second
)

// OutboxRetention is how long work that was done is kept.
const OutboxRetention = 14 * 24 * time.Hour

// Retry tries a piece of work again that was given up (dead); Conflict when it is not dead.
func (s *Service) Retry(ctx context.Context, env intent.EnvironmentID, id int64) error {
	if err := s.cfg.Store.RetryOutbox(ctx, env, id, s.cfg.Now()); err != nil {
		return err
	}
	s.publish(env, bus.Pull, "")
	return nil
}

// Process declares the process that sends what waits for the forge of an
// environment. Each message has its own attempts, in the outbox: one that fails
// keeps none of the others waiting, and newer work on its topic replaces it. The
// process begins when a message is added, and waits for the next attempt at one.
func (s *Service) Process() process.Definition {
	return process.Definition{
		Name: store.ForgeSend, Resource: store.ForgeResource, Queue: store.ForgeQueue, Single: true,
		Attempts: store.ForgeAttempts, Attempt: attemptTime, Deadline: -1,
		Main: []process.Handler{{Name: "send", Do: s.sendOutbox}},
	}
}

// sendOutbox sends what waits for the forge of an environment, one message after the other.
func (s *Service) sendOutbox(ctx context.Context, run *process.Run) error {
	env, records := run.Process().Environment, run.Holding(s.cfg.Store)
	for end := time.Now().Add(sendTime); time.Now().Before(end); {
		now := s.cfg.Now()
		work, next, err := records.TakeOutbox(ctx, env, now, now.Add(sendLease))
		switch {
		case err != nil:
			return err
		case work != nil:
			if err := s.send(ctx, records, *work); err != nil {
				return err
			}
		case next.IsZero():
			return nil
		default:
			return process.Again(time.Now().Add(next.Sub(now)))
		}
	}
	return process.Again(time.Now())
}

// send does one piece of work and records how it went. It fails when that cannot be recorded.
func (s *Service) send(ctx context.Context, records *store.Store, w intent.Outbox) error {
	err := s.work(ctx, w)
	if ctx.Err() != nil {
		return ctx.Err() // it is done again
	}
	log := s.cfg.Logger.With("environment", w.Environment, "work", w.Topic)
	now := s.cfg.Now()
	var limited *client.LimitedError
	switch {
	case err == nil, errors.Is(err, ErrNoForge), fault.Is(err, fault.NotFound) && w.Kind == intent.OutboxPull:
		err = records.OutboxSent(ctx, w, now)
	case errors.As(err, &limited):
		log.Warn("a forge wants to be left alone", "until", limited.Until)
		err = errors.Join(
			records.OutboxFailed(ctx, w, err.Error(), limited.Until, w.Attempts+1 >= sendAttempts, now),
			records.DelayOutbox(ctx, w.Environment, limited.Until),
		)
	default:
		dead := w.Attempts+1 >= sendAttempts || !mayPass(err)
		log.Warn("a forge was not told", "attempt", w.Attempts+1, "dead", dead, "error", err)
		err = records.OutboxFailed(ctx, w, err.Error(), now.Add(backoff(w.Attempts)), dead, now)
	}
	s.publish(w.Environment, bus.Pull, "")
	return err
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
