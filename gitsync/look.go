package gitsync

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// watch watches one source until ctx ends.
func (w *Watcher) watch(ctx context.Context, s *watched, files *notifier, path string) {
	timer := time.NewTimer(0) // the first look finds what moved while nobody watched
	defer timer.Stop()
	for {
		why := poke{kind: KindPoll}
		select {
		case <-ctx.Done():
			return
		case why = <-s.pokes:
		case <-timer.C:
		}
		if why.kind == KindWatch {
			var ok bool
			if why, ok = w.settle(ctx, s, why); !ok {
				return
			}
		}
		if files != nil {
			files.arm(s, path) // before the look, so that no change is missed between the two
		}
		next := w.look(ctx, s, why)
		if ctx.Err() != nil {
			return
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// settle waits until a local repository has not changed for a while, but not
// forever: a repository may be pushed to all the time. It returns false when ctx
// ends first.
func (w *Watcher) settle(ctx context.Context, s *watched, why poke) (poke, bool) {
	quiet, enough := time.NewTimer(w.cfg.Debounce), time.NewTimer(10*w.cfg.Debounce)
	defer quiet.Stop()
	defer enough.Stop()
	for {
		select {
		case <-ctx.Done():
			return why, false
		case <-quiet.C:
			return why, true
		case <-enough.C:
			return why, true
		case p := <-s.pokes:
			if p.kind == KindWebhook {
				return p, true
			}
			quiet.Reset(w.cfg.Debounce)
		}
	}
}

// look asks for the tip of a source and reports a move. It returns the time until
// the next look; zero for none.
func (w *Watcher) look(ctx context.Context, s *watched, why poke) time.Duration {
	select {
	case w.looks <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	tip, err := w.cfg.Tips.Tip(ctx, s.source)
	read := err
	<-w.looks
	if ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	seen := s.status.Seen
	lost := err == nil && why.kind == KindPoll && tip != seen && s.proof.found(tip)
	s.mu.Unlock()
	if lost {
		w.cfg.Logger.Warn("a poll found a commit that no webhook reported; it is polled at its usual interval again",
			"environment", s.env, "commit", short(tip), "hint", "look at the deliveries of the webhook at the forge")
	}
	if err == nil && tip != seen {
		err = w.cfg.OnMove(ctx, Move{
			Environment: s.env, Source: s.source, Commit: tip,
			Kind: why.kind, Message: why.describe(s.source, seen, tip),
		})
		if err == nil {
			seen = tip
		}
		if ctx.Err() != nil {
			return 0
		}
	}
	s.mu.Lock()
	before := s.status
	s.status = WatchStatus{Checked: time.Now(), Seen: seen, Err: err}
	if err != nil {
		s.status.Failures = before.Failures + 1
	}
	s.mu.Unlock()
	if w.cfg.OnLook != nil {
		failures := 0
		if read != nil {
			failures = before.Failures + 1
		}
		w.cfg.OnLook(ctx, s.env, failures, read)
	}
	if err == nil {
		if before.Failures > 0 {
			w.cfg.Logger.Info("a source can be read again", "environment", s.env, "failures", before.Failures)
		}
		s.mu.Lock()
		every := s.proof.interval(s.interval, time.Now())
		s.mu.Unlock()
		return jitter(every)
	}
	wait := w.backoff(s.interval, before.Failures+1)
	if errorText(before.Err) != errorText(err) {
		w.cfg.Logger.Warn("a source cannot be read",
			"environment", s.env, "error", err, "next", wait.Round(time.Second))
	}
	return wait
}

// errorText returns the text of an error; empty for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// backoff returns the time until the next look after a number of failures in a row.
func (w *Watcher) backoff(interval time.Duration, failures int) time.Duration {
	wait := 10 * time.Second
	if interval > 0 {
		wait = min(interval, wait)
	}
	for range failures - 1 {
		if wait *= 2; wait >= w.cfg.MaxBackoff {
			break
		}
	}
	return jitter(min(wait, w.cfg.MaxBackoff))
}

// jitter changes a duration by up to a tenth, so that many environments are not looked at all at once.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - d/10 + rand.N(d/5+1)
}

// describe returns the message of a Move.
func (p poke) describe(src Source, from, to string) string {
	if p.message != "" {
		return p.message
	}
	branch := src.Branch
	if branch == "" {
		branch = "the default branch"
	}
	if from == "" {
		return fmt.Sprintf("%s is at %s", branch, short(to))
	}
	return fmt.Sprintf("%s moved from %s to %s", branch, short(from), short(to))
}
