package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// BenchmarkEstate records a change of ten resources of one environment, from the new version to all ten deployed,
// while the database has so many environments of a thousand resources each. It takes minutes to fill:
//
//	go test ./server/store -run '^$' -bench Estate -benchtime 30x -timeout 1h
func BenchmarkEstate(b *testing.B) {
	for _, environments := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(environments), func(b *testing.B) {
			s, ctx := storetest.Open(b), b.Context()
			const size = 1000
			rs := resources(size)
			envs := make([]intent.EnvironmentID, environments)
			for i := range envs {
				envs[i] = newEnvironment(b, s)
				release(b, s, envs[i], rs)
			}
			var stored, released, recorded []time.Duration
			for i := 0; b.Loop(); i++ {
				env, next := envs[(i*37)%environments], slices.Clone(rs)
				for j := range 10 {
					next = changed(next, (i+j*97)%size, uuid.NewString())
				}
				began := time.Now()
				number := get(s.StoreVersion(ctx, version(env, next), epoch))(b)
				stored = append(stored, time.Since(began))
				began = time.Now()
				must(b, s.ReleaseVersion(ctx, env, number, epoch))
				released = append(released, time.Since(began))
				known := states(b, s, env)
				var begun []intent.Action
				var done []intent.FinishedAction
				for j := range 10 {
					d := deployed(known[rs[(i+j*97)%size].ID], number, 5)
					done, begun = append(done, d), append(begun, d.Action)
				}
				began = time.Now()
				must(b, s.StartActions(ctx, env, begun))
				must(b, s.FinishActions(ctx, env, done))
				recorded = append(recorded, time.Since(began))
			}
			for what, took := range map[string][]time.Duration{
				"store-ms": stored, "release-ms": released, "record-ms": recorded,
			} {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, what)
			}
		})
	}
}
