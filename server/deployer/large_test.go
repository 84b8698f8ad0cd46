package deployer

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// BenchmarkLarge: an environment of 100,000 resources on 40 agents, all
// deployed. What is measured: a released version with ten changes until these
// ten are recorded as deployed, reading it and deciding included; and a start
// from nothing, in which ten resources wait, until the first of them runs.
//
//	go test ./server/deployer -run '^$' -bench Large -benchtime 1x -timeout 30m
func BenchmarkLarge(b *testing.B) {
	const n, agents = 100_000, 40
	server, _ := ownDatabase(b)
	db := open(b, server)
	env := newEnvironment(b, db)
	first := &firsts{}
	start := func() *Deployer {
		d, err := New(Config{Environment: env, Store: db, Executor: first, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		return d
	}
	version := 0
	release := func(changed int) int {
		version++
		v := intent.NewVersion{Environment: env.ID}
		for i := range n {
			value := 1
			if i%(n/10) == 0 && changed > 0 {
				value = version
			}
			v.Resources = append(v.Resources, resource(fmt.Sprintf("a%02d/r%06d %d", i%agents, i, value)))
		}
		began := time.Now()
		number, err := db.StoreVersion(b.Context(), v, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		stored := time.Since(began)
		if err := db.ReleaseVersion(b.Context(), env.ID, number, time.Now()); err != nil {
			b.Fatal(err)
		}
		b.Logf("version %d: stored in %s, released in %s", number, stored, time.Since(began)-stored)
		return number
	}
	d := start()
	d.VersionReleased(release(0))
	if err := d.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	counted(b, db, env.ID, n)
	var news, starts, newsCPU, startsCPU []time.Duration
	var most uint64
	for b.Loop() {
		number := release(10)
		var peak atomic.Uint64
		stop := watchHeap(&peak)
		began, used := time.Now(), ownCPU(b)
		d.VersionReleased(number)
		if err := d.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		news, newsCPU = append(news, time.Since(began)), append(newsCPU, ownCPU(b)-used)
		stop()
		most = max(most, peak.Load())
		counted(b, db, env.ID, n)
		d.Stop()

		release(10)
		runtime.GC()
		first.at.Store(0)
		began, used = time.Now(), ownCPU(b)
		d = start()
		if err := d.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		starts = append(starts, time.Unix(0, first.at.Load()).Sub(began))
		startsCPU = append(startsCPU, ownCPU(b)-used)
	}
	d.Stop()
	b.ReportMetric(middle(news), "s/version")
	b.ReportMetric(middle(starts), "s/start")
	b.ReportMetric(middle(newsCPU), "cpu-s/version")
	b.ReportMetric(middle(startsCPU), "cpu-s/start")
	b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
}

// ownCPU is the processor time of this process, without the database's.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func middle(took []time.Duration) float64 {
	slices.Sort(took)
	return took[len(took)/2].Seconds()
}

func counted(b *testing.B, db *store.Store, env intent.EnvironmentID, n int) {
	b.Helper()
	counts, err := db.ResourceCounts(b.Context(), env)
	if err != nil || counts[intent.StatusDeployed] != n {
		b.Fatalf("%v, %v", counts, err)
	}
}

// watchHeap samples what the heap and the stacks take until the function that it gives is called.
func watchHeap(peak *atomic.Uint64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse+m.StackInuse))
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// firsts is an executor that notes when it first ran.
type firsts struct {
	idle
	at atomic.Int64
}

func (f *firsts) Run(ctx context.Context, t executor.Task) executor.Result {
	f.at.CompareAndSwap(0, time.Now().UnixNano())
	return f.idle.Run(ctx, t)
}

func (f *firsts) Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result)) {
	f.at.CompareAndSwap(0, time.Now().UnixNano())
	f.idle.Begin(ctx, tasks, done)
}
