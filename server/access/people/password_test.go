package people

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"ordain.dev/ordain/internal/fault"
)

// A flood of logins computes a few hashes at a time, lets some wait, and turns the others away, so that it cannot take
// all memory. Who gives up waiting makes room.
func TestAFloodOfLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher()
		finish := make(chan struct{})
		var running, most, refused, done atomic.Int32
		var wg sync.WaitGroup
		login := func(ctx context.Context) {
			err := h.do(ctx, func() error {
				most.Store(max(most.Load(), running.Add(1)))
				<-finish
				running.Add(-1)
				done.Add(1)
				return nil
			})
			if fault.Is(err, fault.Exhausted) {
				refused.Add(1)
			}
		}
		impatient, giveUp := context.WithCancel(t.Context())
		for range cap(h.slots) {
			wg.Go(func() { login(t.Context()) })
		}
		synctest.Wait()
		for range 10 {
			wg.Go(func() { login(impatient) })
		}
		synctest.Wait()
		for range 2 * queued {
			wg.Go(func() { login(t.Context()) })
		}
		synctest.Wait()
		if got := refused.Load(); int(got) != 2*queued-(queued-10-cap(h.slots)) {
			t.Errorf("%d are turned away", got)
		}
		giveUp()
		synctest.Wait()
		refused.Store(0)
		for range 10 {
			wg.Go(func() { login(t.Context()) })
		}
		synctest.Wait()
		if refused.Load() != 0 {
			t.Errorf("%d are turned away although ten gave up", refused.Load())
		}
		close(finish)
		wg.Wait()
		if int(most.Load()) > cap(h.slots) || int(done.Load()) != queued {
			t.Errorf("%d at a time, %d in the end", most.Load(), done.Load())
		}
	})
}
