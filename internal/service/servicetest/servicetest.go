// Package servicetest holds a service to the contract of package service.
package servicetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/service"
)

// patience is how long Start and Stop may take on a busy machine.
const patience = time.Minute

// Test starts and stops services that make returns, in every order that the
// contract allows.
func Test(t *testing.T, make func(t *testing.T) service.Service) {
	t.Helper()
	t.Run("stopped before it is started", func(t *testing.T) {
		s := make(t)
		within(t, "Stop", s.Stop)
	})
	t.Run("started and stopped twice", func(t *testing.T) {
		s := make(t)
		start(t, s)
		start(t, s)
		within(t, "Stop", s.Stop)
		within(t, "the second Stop", s.Stop)
	})
	t.Run("stopped by several callers", func(t *testing.T) {
		s := make(t)
		start(t, s)
		within(t, "Stop", func() {
			var all sync.WaitGroup
			for range 5 {
				all.Go(s.Stop)
			}
			all.Wait()
		})
	})
	t.Run("stopped while it starts", func(t *testing.T) {
		s := make(t)
		within(t, "Start and Stop", func() {
			var all sync.WaitGroup
			all.Go(func() { _ = s.Start(t.Context()) }) // it may fail, for it was stopped
			all.Go(s.Stop)
			all.Wait()
		})
		within(t, "Stop", s.Stop)
	})
	t.Run("ended by its context", func(t *testing.T) {
		s := make(t)
		ctx, cancel := context.WithCancel(t.Context())
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		within(t, "Stop", s.Stop)
	})
}

func start(t *testing.T, s service.Service) {
	t.Helper()
	within(t, "Start", func() {
		if err := s.Start(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(what + " does not return")
	}
}
