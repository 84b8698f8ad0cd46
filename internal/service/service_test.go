package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
)

// ticker is a service that does nothing.
type ticker struct {
	runner  service.Runner
	fail    error
	running atomic.Int32
}

func (s *ticker) Start(ctx context.Context) error {
	return s.runner.Start(ctx, func(context.Context) (func(context.Context), error) {
		return func(ctx context.Context) {
			s.running.Add(1)
			<-ctx.Done()
			s.running.Add(-1)
		}, s.fail
	})
}

func (s *ticker) Stop() { s.runner.Stop() }

func TestRunner(t *testing.T) {
	t.Parallel()
	servicetest.Test(t, func(*testing.T) service.Service { return &ticker{} })
}

// A service whose start failed can be started again, and Stop waits for what runs.
func TestRunnerStartsAgain(t *testing.T) {
	t.Parallel()
	s := &ticker{fail: errors.New("no")}
	if err := s.Start(t.Context()); !errors.Is(err, s.fail) {
		t.Fatalf("the start gave %v", err)
	}
	s.fail = nil
	for range 2 {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Stop()
		if n := s.running.Load(); n != 0 {
			t.Fatalf("%d run after Stop", n)
		}
	}
}
