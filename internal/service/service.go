// Package service is the contract of whatever runs in the background of the
// server: keepers, the forge's outbox, deployers, the server itself.
//
//	New ──▶ Start ──▶ runs ──▶ Stop ──▶ (Start again, where the service allows it)
//
// Start returns when the service runs, or with the reason why it does not; the
// service stops when the context of Start ends. Stop may be called at any time,
// in any order and any number of times, also before Start and while Start is
// running; it returns when nothing of the service runs any more.
//
// A service keeps a Runner and calls it from its own Start and Stop. Package
// servicetest holds a service to the contract.
package service

import (
	"context"
	"sync"
)

// Service is started and stopped.
type Service interface {
	Start(ctx context.Context) error
	Stop()
}

// Runner implements the contract around a function that starts and a function
// that runs. The zero value is ready.
type Runner struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil while nothing runs
	done   chan struct{}      // closed when what cancel ends has ended
}

// Start calls prepare, and runs what it returns until it returns by itself or
// its context ends. While the service runs, Start does nothing.
func (r *Runner) Start(
	ctx context.Context,
	prepare func(ctx context.Context) (run func(ctx context.Context), err error),
) error {
	r.mu.Lock()
	if r.cancel != nil {
		r.mu.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.cancel, r.done = cancel, done
	r.mu.Unlock()
	ended := func() {
		cancel()
		r.mu.Lock()
		r.cancel = nil
		r.mu.Unlock()
		close(done)
	}
	run, err := prepare(ctx)
	if err != nil {
		ended()
		return err
	}
	go func() {
		defer ended()
		run(ctx)
	}()
	return nil
}

// Stop ends the context of what runs, and waits for its end.
func (r *Runner) Stop() {
	r.mu.Lock()
	cancel, done := r.cancel, r.done
	r.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if done != nil {
		<-done
	}
}
