package scheduler

import (
	"fmt"
	"runtime"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// BenchmarkEstate changes ten resources of one environment, while so many environments of a thousand resources each
// are in the process: from the new version to all ten deployed. MB is the live memory of all schedulers.
//
//	go test ./scheduler -run '^$' -bench Estate
func BenchmarkEstate(b *testing.B) {
	for _, environments := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(environments), func(b *testing.B) {
			const size = 1000
			all := make([]*Scheduler, environments)
			for i := range all {
				s, err := New(Snapshot{}, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				out, err := s.NewVersion(1, bigModel(1, size, 0), nil, t0)
				if err != nil {
					b.Fatal(err)
				}
				drainAll(b, s, out)
				all[i] = s
			}
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			versions := make([]int, environments)
			models := map[int][]intent.Resource{}
			for i := 0; b.Loop(); i++ {
				at := i % environments
				versions[at]++
				b.StopTimer()
				model := models[versions[at]]
				if model == nil {
					model = bigModel(versions[at]+1, size, 10)
					models[versions[at]] = model
				}
				b.StartTimer()
				out, err := all[at].NewVersion(versions[at]+1, model, nil, t0)
				if err != nil {
					b.Fatal(err)
				}
				drainAll(b, all[at], out)
			}
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "MB")
			runtime.KeepAlive(all)
		})
	}
}
