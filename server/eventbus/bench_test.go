package eventbus_test

import (
	"bytes"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/server/store/storetest"
)

// An event goes from the replica that runs the server to another one, over TLS. rss is the memory that the server and
// the first connection add to a process, freed memory returned.
func BenchmarkEmbedded(b *testing.B) {
	url, key := storetest.URL(b), newKey(b)
	before := resident(b)
	here := start(b, url, key, nil)
	serving(b, here)
	after := resident(b)
	there := start(b, url, key, nil)
	serving(b, here, there)
	far := there.bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request })
	e := bus.Event{Environment: uuid.New(), Topic: bus.Request}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		here.bus.Publish(e)
		bustest.Next(b, far)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(after-before)/(1<<20), "rss-MiB")
}

// resident returns the resident memory of this process in bytes.
func resident(b *testing.B) int {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("memory is measured on Linux only")
	}
	pages, err := strconv.Atoi(string(bytes.Fields(text)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
