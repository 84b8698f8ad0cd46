package executor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

const idle = `
from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource

@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("agent", "name", "what")

@provider("lab::Thing", name="nothing")
class Nothing(CRUDHandler[Thing]):
    def read_resource(self, ctx, resource): pass
`

// BenchmarkTasks: tasks that do nothing, on four agents. It tells what
// processor time a task takes in this process and in the executor's:
//
//	go test ./executor -run '^$' -bench Tasks -benchtime 5000x
func BenchmarkTasks(b *testing.B) {
	bench := newBenchOf(b, func(c *Config) { c.MemoryMax = 4 << 30 })
	blue := bench.module("lab", idle).Sealed()
	tasks := make([]Task, max(b.N, 200))
	for i := range tasks {
		tasks[i] = task(blue, fmt.Sprint("a", i%4), fmt.Sprint("item", i), nil)
	}
	run := func(n int) {
		var all sync.WaitGroup
		for agent := range 4 {
			all.Go(func() {
				for i := agent; i < n; i += 4 {
					r := bench.Run(b.Context(), tasks[i])
					if r.Status != intent.StatusDeployed {
						b.Errorf("%s: %s", r.Status, lines(r))
					}
				}
			})
		}
		all.Wait()
	}
	run(200) // its process is there, and warm
	pid := bench.serving()[0].PID
	here, there := spent(b), spentBy(b, pid)
	b.ResetTimer()
	run(b.N)
	b.StopTimer()
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(per(spent(b)-here), "µs/op-here")
	b.ReportMetric(per(spentBy(b, pid)-there), "µs/op-executor")
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// spentBy is that of another, in the kernel's hundredths of a second.
func spentBy(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
