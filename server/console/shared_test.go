package console

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that come while a load runs share the next load, and none gets what was loaded before it came.
func TestSharedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var truth, loads atomic.Int64
		s := shared[int64]{load: func(context.Context) (int64, error) {
			loads.Add(1)
			seen := truth.Load()
			time.Sleep(time.Second)
			return seen, nil
		}}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				came := truth.Load()
				if got, err := s.get(t.Context()); err != nil || got < came {
					t.Errorf("got %d (%v), and %d was true before", got, err, came)
				}
			})
			time.Sleep(20 * time.Millisecond)
			truth.Add(1)
		}
		all.Wait()
		if n := loads.Load(); n > 5 {
			t.Errorf("%d loads for 100 requests within two seconds", n)
		}
	})
}

// A request that goes away does not take the load away from the others.
func TestSharedLoadsOutliveTheirFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared[string]{load: func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Second):
				return "loaded", nil
			}
		}}
		impatient, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.get(impatient); !errors.Is(err, context.Canceled) {
				t.Errorf("the request that went away gets %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if got, err := s.get(t.Context()); got != "loaded" || err != nil {
				t.Errorf("the other gets %q, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
	})
}
