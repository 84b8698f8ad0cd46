package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/server/metrics"
	"ordain.dev/ordain/server/store/storetest"
)

// diary notes what a recorder asks of its store, and when.
type diary struct {
	mu      sync.Mutex
	samples []time.Time
	least   time.Duration
	rolled  []time.Time // before when minutes become hours
	away    bool        // the database does not answer
}

var errAway = errors.New("the database is away")

func (d *diary) RecordMetrics(_ context.Context, now time.Time, least time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return false, errAway
	}
	d.samples, d.least = append(d.samples, now), least
	return true, nil
}

func (d *diary) RollMetrics(_ context.Context, before time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rolled = append(d.rolled, before)
	return nil
}

func (d *diary) DeleteMetricsBefore(context.Context, map[intent.EnvironmentID]time.Time) error {
	return nil
}
func (d *diary) Environments(context.Context) ([]intent.Environment, error) { return nil, nil }

func (d *diary) set(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *diary) taken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.samples)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newRecorder(t *testing.T, cfg metrics.Config) *metrics.Recorder {
	t.Helper()
	r, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A recorder takes a sample each minute, and once an hour puts those together that are older than a day. It asks for a
// little less than a minute between two samples, so that a timer that is early does not lose its turn. After Stop there
// are no more.
func TestASampleIsTakenEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, begin := &diary{}, time.Now()
		r := newRecorder(t, metrics.Config{Store: d, Logger: quiet()})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Hour + time.Second)
		synctest.Wait()
		if d.taken() != 120 || d.least >= time.Minute || d.least < 50*time.Second {
			t.Errorf("%d samples in two hours, %s apart at least", d.taken(), d.least)
		}
		for i, at := range d.samples {
			if want := begin.Add(time.Duration(i+1) * time.Minute); !at.Equal(want) {
				t.Fatalf("sample %d is of %s, not of %s", i, at, want)
			}
		}
		if len(d.rolled) != 2 || !d.rolled[0].Equal(begin.Add(time.Hour-intent.MetricMinutes)) {
			t.Errorf("minutes became hours before %v", d.rolled)
		}
		r.Stop()
		time.Sleep(time.Hour)
		if d.taken() != 120 {
			t.Errorf("%d samples after Stop", d.taken()-120)
		}
	})
}

// While the database is away, one warning says so, not one each minute; a later outage is told again. The recorder goes
// on when the database is back.
func TestAnOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := &diary{}
		r := newRecorder(t, metrics.Config{Store: d, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for outage := 1; outage <= 2; outage++ {
			d.set(true)
			time.Sleep(10*time.Minute + time.Second)
			synctest.Wait()
			if n := strings.Count(log.String(), "metrics cannot be recorded now"); n != outage {
				t.Errorf("%d warnings after %d outages:\n%s", n, outage, log.String())
			}
			d.set(false)
			before := d.taken()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if d.taken() != before+10 {
				t.Errorf("%d samples in the ten minutes after an outage", d.taken()-before)
			}
		}
		r.Stop()
		if !strings.Contains(log.String(), errAway.Error()) {
			t.Errorf("the warning does not say why: %s", log.String())
		}
	})
}

// Each environment keeps its samples for as long as it says: for ever, if that is 0 hours or while it is halted.
func TestSamplesAreKeptAsLongAsTheirEnvironmentSays(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	project := uuid.New()
	must(s.CreateProject(ctx, intent.Project{ID: project, Name: "shop"}))
	environment := func(name string, hours int, halted bool) intent.EnvironmentID {
		id := uuid.New()
		must(s.CreateEnvironment(ctx, intent.Environment{
			ID: id, ProjectID: project, Name: name, Halted: halted,
			Settings: map[string]any{"environment_metrics_retention": hours},
		}, nil))
		return id
	}
	short, long := environment("short", 2, false), environment("long", 72, false)
	forever, halted := environment("forever", 0, false), environment("halted", 2, true)
	now := time.Now().UTC().Truncate(time.Hour)
	ages := []time.Duration{50 * time.Hour, 3 * time.Hour, 3*time.Hour - time.Minute, 90 * time.Minute, time.Minute}
	for _, age := range ages {
		if taken, err := s.RecordMetrics(ctx, now.Add(-age), -100*365*24*time.Hour); err != nil || !taken {
			t.Fatal(taken, err)
		}
	}
	r := newRecorder(t, metrics.Config{Store: s, Logger: quiet(), Now: func() time.Time { return now }})
	for range 2 { // what is done already stays done
		must(r.Tidy(ctx))
	}
	kept := func(env intent.EnvironmentID) (minutes []time.Duration) {
		t.Helper()
		const span = 60 * time.Hour
		found, err := s.Metrics(ctx, env, now.Add(-span), now, int(span/time.Minute))
		must(err)
		for _, i := range found {
			minutes = append(minutes, span-time.Duration(i.Place)*time.Minute)
		}
		return minutes
	}
	for env, want := range map[intent.EnvironmentID]int{short: 2, long: 5, forever: 5, halted: 5} {
		if got := kept(env); len(got) != want {
			t.Errorf("%d samples are kept, not %d: %v", len(got), want, got)
		}
	}
	for _, age := range kept(short) {
		if age > 2*time.Hour {
			t.Errorf("a sample of %s ago is kept for two hours", age)
		}
	}
}

// A recorder without a store or a logger is refused at once; others start and stop in any order.
func TestRecordersStartAndStop(t *testing.T) {
	for what, cfg := range map[string]metrics.Config{
		"no store": {Logger: quiet()}, "no logger": {Store: &diary{}},
	} {
		if _, err := metrics.New(cfg); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	servicetest.Test(t, func(t *testing.T) service.Service {
		return newRecorder(t, metrics.Config{Store: &diary{}, Logger: quiet()})
	})
}
