package webhooks

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// In a flood of requests that prove nothing, the database gets one row for each environment every few seconds, and
// these rows have the newest request and the number of all. The flood on one environment hides nothing of another.
func TestAFloodOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rows, requests, newest := map[uuid.UUID]int{}, map[uuid.UUID]int{}, map[uuid.UUID]time.Time{}
		r := newRefusals(func(_ context.Context, d intent.Delivery, more int) {
			mu.Lock()
			defer mu.Unlock()
			env := d.Outcomes[0].Environment
			rows[env]++
			requests[env] += 1 + more
			newest[env] = d.Received
		})
		loud, quiet := uuid.New(), uuid.New()
		refuse := func(env uuid.UUID) {
			r.add(intent.Delivery{Received: time.Now(), Outcomes: []intent.DeliveryOutcome{{Environment: env}}})
		}
		began := time.Now()
		refuse(loud)
		synctest.Wait()
		if rows[loud] != 1 || time.Since(began) != 0 {
			t.Error("the first one is not shown at once")
		}
		var last time.Time
		for range 10_000 {
			last = time.Now()
			refuse(loud)
			time.Sleep(time.Millisecond)
		}
		refuse(quiet)
		time.Sleep(refusalsEvery)
		synctest.Wait()
		if rows[loud] > 5 || requests[loud] != 10_001 || !newest[loud].Equal(last) {
			t.Errorf("%d rows for %d requests, the last one at %s", rows[loud], requests[loud], newest[loud].Sub(began))
		}
		if rows[quiet] != 1 || requests[quiet] != 1 {
			t.Errorf("the other environment has %d rows for %d requests", rows[quiet], requests[quiet])
		}
		for range refusalsMax + 10 {
			refuse(uuid.New())
		}
		r.mu.Lock()
		if len(r.waiting) > refusalsMax {
			t.Errorf("%d wait", len(r.waiting))
		}
		r.mu.Unlock()
		time.Sleep(refusalsEvery)
	})
}

// A refused request is recorded with its reason, and without what its sender wrote about files.
func TestRefusedRequestsAreShown(t *testing.T) {
	b := &board{noted: make(chan struct{}, 10)}
	b.add("site", "https://git.example.org/ops/site", "main", secret)
	d := open(t, b)
	for range 2 {
		if status, _ := d.post("generic", own, senders("", "")["generic"](own, "wrong")); status != 401 {
			t.Fatal(status)
		}
	}
	<-b.noted
	b.mu.Lock()
	first := b.recorded[0]
	b.mu.Unlock()
	if o := first.Outcomes[0]; first.Verified || o.State != intent.OutcomeRefused || len(first.Outcomes) != 1 ||
		o.Reason != badSignature || first.Event.Paths != nil {
		t.Errorf("%+v", first)
	}
	<-b.noted // after a while, the second
	if got := andMore(badSignature, 41); !strings.Contains(got, "41 others") {
		t.Error(got)
	}
}
