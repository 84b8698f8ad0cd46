package scheduler

import (
	"fmt"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

func bigModel(version, size, changed int) []intent.Resource {
	out := make([]intent.Resource, size)
	for i := range out {
		out[i] = intent.Resource{ID: rid(fmt.Sprintf("agent%02d/%06d", i%50, i)), Version: version, AttributeHash: "1"}
		if i > 0 {
			out[i].Requires = append(out[i].Requires, out[i/2].ID)
		}
		if i > 100 {
			out[i].Requires = append(out[i].Requires, out[i-100].ID)
		}
	}
	for i := range changed {
		out[size-1-i*(size/max(changed, 1))].AttributeHash = fmt.Sprint(version)
	}
	return out
}

func drainAll(b *testing.B, s *Scheduler, out []Command) int {
	done := 0
	var running []Start
	for {
		for _, c := range out {
			if st, ok := c.(Start); ok {
				running = append(running, st)
			}
		}
		if len(running) == 0 {
			return done
		}
		c := running[0]
		running = running[1:]
		out = s.TaskDone(Outcome{ID: c.Resource.ID, Version: c.Resource.Version, Status: intent.StatusDeployed}, t0)
		done++
	}
}

// BenchmarkNewVersion: 100,000 resources of which ten changed, until they are deployed.
func BenchmarkNewVersion(b *testing.B) {
	s, _ := New(Snapshot{}, Limits{})
	out, _ := s.NewVersion(1, bigModel(1, 100_000, 0), nil, t0)
	drainAll(b, s, out)
	v := 1
	for b.Loop() {
		v++
		b.StopTimer()
		model := bigModel(v, 100_000, 10)
		b.StartTimer()
		out, err := s.NewVersion(v, model, nil, t0)
		if err != nil {
			b.Fatal(err)
		}
		if n := drainAll(b, s, out); n < 10 || n > 20 {
			b.Fatalf("%d ran", n)
		}
	}
}

// BenchmarkTasks: bookkeeping of a full deployment, per task.
func BenchmarkTasks(b *testing.B) {
	model := bigModel(1, 100_000, 0)
	for b.Loop() {
		b.StopTimer()
		s, _ := New(Snapshot{}, Limits{})
		out, _ := s.NewVersion(1, model, nil, t0)
		b.StartTimer()
		start := time.Now()
		n := drainAll(b, s, out)
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "tasks/s")
	}
}

// BenchmarkRepair: the same when everything was deployed before.
func BenchmarkRepair(b *testing.B) {
	s, _ := New(Snapshot{}, Limits{})
	out, _ := s.NewVersion(1, bigModel(1, 100_000, 0), nil, t0)
	drainAll(b, s, out)
	for b.Loop() {
		start := time.Now()
		n := drainAll(b, s, s.Trigger(UserRepair, Filter{}, t0))
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "tasks/s")
	}
}
