package shared_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ordain.dev/ordain/internal/shared"
)

// Requests that come while a load runs share the next load, and none gets what was loaded before it came.
func TestRequestsShareTheNextLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var truth, loads atomic.Int64
		s := shared.Loads[string, int64]{AtOnce: 1}
		load := func(context.Context, string) (int64, error) {
			loads.Add(1)
			seen := truth.Load()
			time.Sleep(time.Second)
			return seen, nil
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				came := truth.Load()
				if got, err := s.Get(t.Context(), "one", load); err != nil || got < came {
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
func TestLoadsOutliveTheirFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shared.Loads[string, string]
		load := func(ctx context.Context, _ string) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Second):
				return "loaded", nil
			}
		}
		impatient, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Get(impatient, "one", load); !errors.Is(err, context.Canceled) {
				t.Errorf("the request that went away gets %v", err)
			}
		})
		all.Go(func() {
			if got, err := s.Get(t.Context(), "one", load); got != "loaded" || err != nil {
				t.Errorf("the other gets %q, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
	})
}

// When all requests have gone away, so does their load, whether it has begun or not, and the next request is served.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared.Loads[string, string]{AtOnce: 1}
		var began []string
		for i, key := range []string{"begun", "begun", "waits"} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(time.Duration(3-i)*time.Second, cancel) // the last one first, so that its turn never comes
			go func() {
				_, _ = s.Get(ctx, key, func(ctx context.Context, key string) (string, error) {
					began = append(began, key)
					<-ctx.Done()
					return "", ctx.Err()
				})
			}()
			synctest.Wait()
		}
		time.Sleep(4 * time.Second)
		got, err := s.Get(t.Context(), "waits", func(context.Context, string) (string, error) { return "loaded", nil })
		if got != "loaded" || err != nil || strings.Join(began, " ") != "begun" {
			t.Errorf("got %q, %v; %q began, want the one that was not cancelled before its turn", got, err, began)
		}
	})
}

// Different keys do not share, and no more of their loads run at once than may.
func TestLoadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared.Loads[int, int]{AtOnce: 3}
		var running, most atomic.Int64
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				got, err := s.Get(t.Context(), i, func(_ context.Context, key int) (int, error) {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					time.Sleep(time.Second)
					return key, nil
				})
				if got != i || err != nil {
					t.Errorf("%d gets %d, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if n := most.Load(); n != 3 {
			t.Errorf("%d loads ran at once, want 3", n)
		}
	})
}

// A load that panics does so in the requests, and takes nothing else with it.
func TestALoadPanics(t *testing.T) {
	var s shared.Loads[string, string]
	func() {
		defer func() {
			if r, _ := recover().(string); !strings.HasPrefix(r, "broken\n") {
				t.Errorf("the request sees %q", r)
			}
		}()
		_, _ = s.Get(t.Context(), "one", func(context.Context, string) (string, error) { panic("broken") })
	}()
	got, err := s.Get(t.Context(), "one", func(context.Context, string) (string, error) { return "loaded", nil })
	if got != "loaded" || err != nil {
		t.Errorf("the next request gets %q, %v", got, err)
	}
}
