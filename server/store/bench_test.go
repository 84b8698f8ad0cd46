package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// The bulk paths, at the sizes that the design speaks of:
//
//	go test ./server/store -run '^$' -bench . -benchtime 10x

var sizes = []int{1_000, 10_000}

func eachSize(b *testing.B, f func(b *testing.B, s *store.Store, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, storetest.Open(b), n) })
	}
}

// reportMedian reports the median of what a round took without its preparation.
func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}

func BenchmarkStoreFirstVersion(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		rs := resources(n)
		var took []time.Duration
		for b.Loop() {
			v := version(newEnvironment(b, s), rs)
			begin := time.Now()
			if _, err := s.StoreVersion(b.Context(), v, epoch); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		reportMedian(b, took)
	})
}

func BenchmarkStoreVersionWithOneChange(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env, rs := newEnvironment(b, s), resources(n)
		release(b, s, env, rs)
		for i := 0; b.Loop(); i++ {
			if _, err := s.StoreVersion(b.Context(), version(env, changed(rs, i%n, uuid.NewString())),
				epoch); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReleaseWithOneChange(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env, rs := newEnvironment(b, s), resources(n)
		release(b, s, env, rs)
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			number := get(s.StoreVersion(b.Context(), version(env, changed(rs, i%n, uuid.NewString())), epoch))(b)
			begin := time.Now()
			if err := s.ReleaseVersion(b.Context(), env, number, epoch); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		reportMedian(b, took)
	})
}

func BenchmarkReadStates(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env := newEnvironment(b, s)
		release(b, s, env, resources(n))
		for b.Loop() {
			if all, err := s.States(b.Context(), env); err != nil || len(all) != n {
				b.Fatal(len(all), err)
			}
		}
	})
}

func BenchmarkReadVersionResources(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env := newEnvironment(b, s)
		number := release(b, s, env, resources(n))
		for b.Loop() {
			if all, err := s.VersionResources(b.Context(), env, number); err != nil || len(all) != n {
				b.Fatal(len(all), err)
			}
		}
	})
}

func BenchmarkResourcePage(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env := newEnvironment(b, s)
		release(b, s, env, resources(n))
		for b.Loop() {
			if page, err := s.Resources(b.Context(), env, intent.ListQuery{Limit: 20}); err != nil || page.Total != n {
				b.Fatal(page.Total, err)
			}
		}
	})
}

// BenchmarkDeployHundred starts and finishes batches of a hundred actions.
func BenchmarkDeployHundred(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env := newEnvironment(b, s)
		release(b, s, env, resources(n))
		known := get(s.States(b.Context(), env))(b)
		for i := 0; b.Loop(); i++ {
			var begun []intent.Action
			var done []intent.FinishedAction
			for j := range 100 {
				d := deployed(known[(i*100+j)%n], 1, 5)
				done = append(done, d)
				begun = append(begun, d.Action)
			}
			if err := s.StartActions(b.Context(), env, begun); err != nil {
				b.Fatal(err)
			}
			if err := s.FinishActions(b.Context(), env, done); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkResourceDetail(b *testing.B) {
	eachSize(b, func(b *testing.B, s *store.Store, n int) {
		env, rs := newEnvironment(b, s), resources(n)
		release(b, s, env, rs)
		for i := 0; b.Loop(); i++ {
			if _, err := s.Resource(b.Context(), env, rs[i%n].ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Webhooks that arrive together are recorded in one round trip.
func BenchmarkRecordDeliveries(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := storetest.Open(b)
			env := newEnvironment(b, s)
			for i := 0; b.Loop(); i++ {
				batch := make([]intent.Delivery, n)
				for j := range batch {
					batch[j] = delivery(fmt.Sprintf("%d-%d", i, j), epoch, env)
				}
				if _, err := s.RecordDeliveries(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
