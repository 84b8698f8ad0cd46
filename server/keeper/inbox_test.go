package keeper

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// What arrives while a transaction is under way is recorded by the next one,
// together, and nobody is answered before.
func TestABurstIsFewTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		failed := errors.New("away")
		r := &Registry{}
		r.inbox.record = func(_ context.Context, batch []*arrival) {
			sizes = append(sizes, len(batch))
			time.Sleep(time.Second)
			for _, a := range batch {
				if len(sizes) > 1 {
					a.err = failed
				}
				close(a.done)
			}
		}
		began := time.Now()
		answers := make(chan error, 2*recordBatch)
		send := func() {
			_, err := r.RecordDelivery(t.Context(), intent.Delivery{})
			answers <- err
		}
		go send()
		synctest.Wait() // the first is being recorded
		for range recordBatch + 1 {
			go send()
		}
		if err := <-answers; err != nil || time.Since(began) != time.Second {
			t.Errorf("the first was answered with %v after %v", err, time.Since(began))
		}
		for i := range recordBatch + 1 {
			if err := <-answers; !errors.Is(err, failed) || time.Since(began) < 2*time.Second {
				t.Fatalf("the %d. of the others was answered with %v after %v", i, err, time.Since(began))
			}
		}
		if want := fmt.Sprint([]int{1, recordBatch, 1}); fmt.Sprint(sizes) != want {
			t.Errorf("transactions of %v, want %s", sizes, want)
		}
	})
}

// A sender that goes away does not take the record of its webhook with it.
func TestASenderThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := 0
		r := &Registry{}
		r.inbox.record = func(ctx context.Context, batch []*arrival) {
			time.Sleep(time.Second)
			if ctx.Err() == nil {
				recorded += len(batch)
			}
			for _, a := range batch {
				close(a.done)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := r.RecordDelivery(ctx, intent.Delivery{}); err == nil {
			t.Error("it was answered before it was recorded")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if recorded != 1 {
			t.Errorf("%d webhooks were recorded", recorded)
		}
	})
}

// After webhooks were acted on, those that follow wait until the burst is over, or
// has lasted for long.
func TestABurstIsWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		webhooks int
		gap      time.Duration
		want     time.Duration
	}{
		"none":            {0, 0, burstQuiet},
		"now and then":    {40, 2 * burstQuiet, burstQuiet},
		"a burst":         {200, time.Millisecond, 200*time.Millisecond + burstQuiet},
		"without any end": {1 << 20, burstQuiet / 2, burstMost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{deliveryWakes: make(chan struct{}, 1)}
				done := make(chan bool)
				go func() {
					for range tt.webhooks {
						select {
						case <-done:
							return
						case <-time.After(tt.gap):
						}
						wake(k.deliveryWakes)
					}
				}()
				began := time.Now()
				k.awaitQuiet(t.Context())
				if took := time.Since(began); took != tt.want {
					t.Errorf("it waited for %v, want %v", took, tt.want)
				}
				close(done)
			})
		})
	}
}
