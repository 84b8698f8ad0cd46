package control

import (
	"testing"
	"testing/synctest"
	"time"
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
				close(done)
			})
		})
	}
}
