package control

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A webhook that comes alone is acted on at once; those of a burst when it is
// over, or when it has lasted for a second.
func TestABurstIsAnsweredBeforeItIsActedOn(t *testing.T) {
	for name, tt := range map[string]struct {
		webhooks int
		gap      time.Duration
		want     time.Duration
	}{
		"alone":           {1, 0, stormLook},
		"two":             {2, time.Millisecond, stormLook},
		"now and then":    {40, 2 * stormQuiet, stormLook},
		"a burst":         {201, time.Millisecond / 2, 100*time.Millisecond + stormQuiet},
		"without any end": {1 << 20, time.Millisecond / 2, stormMost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s storm
				done := make(chan bool)
				s.arrived()
				go func() {
					for range tt.webhooks - 1 {
						select {
						case <-done:
							return
						case <-time.After(tt.gap):
						}
						s.arrived()
					}
				}()
				began := time.Now()
				s.pass(t.Context())
				if took := time.Since(began); took < tt.want || took > tt.want+time.Millisecond {
					t.Errorf("it waited for %v, want %v", took, tt.want)
				}
				began = time.Now()
				if s.over(t.Context(), began); tt.want < stormMost && time.Since(began) > 0 {
					t.Errorf("a compile waits for %v more", time.Since(began))
				}
				close(done)
			})
		})
	}
}

// slowRecord takes its time for each commit, however many webhooks it is of.
type slowRecord struct {
	Store
	commits []int
}

func (r *slowRecord) RecordDeliveries(
	_ context.Context,
	deliveries []intent.Delivery,
) ([][]intent.EnvironmentID, error) {
	time.Sleep(2 * time.Millisecond)
	r.commits = append(r.commits, len(deliveries))
	return make([][]intent.EnvironmentID, len(deliveries)), nil
}

// Senders that wait for their answers send the next ones at nearly one time, when they
// get them. These are recorded together: none keeps the others waiting for a commit of
// its own. Who sends alone waits for nobody.
func TestWhatAnswersBringIsRecordedTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		senders int
		slowest time.Duration // of what comes after the first ones
		commits int
	}{
		"a crowd": {16, 4 * time.Millisecond, 52},
		"alone":   {1, 2 * time.Millisecond, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				record := &slowRecord{}
				c := &Control{cfg: Config{Store: record}}
				var all sync.WaitGroup
				for i := range tt.senders {
					all.Go(func() {
						for n := range 50 {
							time.Sleep(time.Duration(i) * 100 * time.Microsecond)
							began := time.Now()
							if _, err := c.RecordDelivery(t.Context(), intent.Delivery{}); err != nil {
								t.Error(err)
							}
							if took := time.Since(began); n > 1 && took > tt.slowest {
								t.Errorf("sender %d waited for %v for answer %d", i, took, n)
							}
						}
					})
				}
				all.Wait()
				if len(record.commits) > tt.commits {
					t.Errorf("%d commits: %v", len(record.commits), record.commits)
				}
			})
		})
	}
}

// The first of a crowd waits for those that were read when it was, and no
// longer than a moment for one that does not get there.
func TestTheFirstOfACrowdWaitsForWhatIsNearlyThere(t *testing.T) {
	for name, tt := range map[string]struct {
		after   time.Duration // of the second, which was read with the first
		commits string
		first   time.Duration // until the first has its answer
	}{
		"soon":      {time.Millisecond, "[2]", 3 * time.Millisecond},
		"too late":  {5 * time.Millisecond, "[1 1]", gatherMost + 2*time.Millisecond},
		"refused":   {0, "[1]", 2 * time.Millisecond},
		"one alone": {-1, "[1]", 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				record := &slowRecord{}
				c := &Control{cfg: Config{Store: record}}
				send := func() {
					if _, err := c.RecordDelivery(t.Context(), intent.Delivery{}); err != nil {
						t.Error(err)
					}
				}
				var all sync.WaitGroup
				if tt.after >= 0 {
					over := c.ExpectDelivery()
					all.Go(func() {
						time.Sleep(tt.after)
						over(tt.after > 0)
						if tt.after > 0 {
							send()
						}
					})
				}
				began := time.Now()
				send()
				if took := time.Since(began); took != tt.first {
					t.Errorf("the first was answered after %v, not %v", took, tt.first)
				}
				all.Wait()
				if got := fmt.Sprint(record.commits); got != tt.commits {
					t.Errorf("commits of %s, not %s", got, tt.commits)
				}
			})
		})
	}
}
