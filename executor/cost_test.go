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

// BenchmarkTasks runs tasks that do nothing on four agents, each with one task at a time or with
// four more behind it. It reports the processor time per task in this process and in the
// executor, and how often this process waits in the kernel:
//
//	go test ./executor -run '^$' -bench Tasks -benchtime 5000x
func BenchmarkTasks(b *testing.B) {
	b.Run("one", func(b *testing.B) { benchmarkTasks(b, 0) })
	b.Run("four behind", func(b *testing.B) { benchmarkTasks(b, 4) })
}

func benchmarkTasks(b *testing.B, behind int) {
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
				ended := make(chan Result, behind+1)
				for i, under, hold := agent, 0, false; i < n || under > 0; {
					for hold = hold && under > 0; i < n && under <= behind && !hold; i += 4 {
						t := tasks[i]
						t.Behind = under > 0
						bench.Begin(b.Context(), []Task{t}, func(r Result) { ended <- r })
						under++
					}
					r := <-ended
					under--
					if r.Withdrawn { // the one before had just ended
						i -= 4
						hold = true
					} else if r.Status != intent.StatusDeployed {
						b.Errorf("%s: %s", r.Status, lines(r))
					}
				}
			})
		}
		all.Wait()
	}
	run(200) // its process is there, and warm
	pid := bench.serving()[0].PID
	here, there, waits := spent(b), spentBy(b, pid), waited(b)
	b.ResetTimer()
	run(b.N)
	b.StopTimer()
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(per(spent(b)-here), "µs/op-here")
	b.ReportMetric(float64(waited(b)-waits)/float64(b.N), "waits/op-here")
	b.ReportMetric(per(spentBy(b, pid)-there), "µs/op-executor")
}

// spent returns the processor time of this process.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// waited returns how often a thread of this process gave up its processor to wait.
func waited(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Nvcsw
}

// spentBy returns the processor time of another process, in steps of 10 ms.
func spentBy(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("needs Linux: ", err)
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
