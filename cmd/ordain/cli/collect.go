package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"ordain.dev/ordain/internal/lean"
)

const (
	// firstCollection is how large the heap of a compile grows before the
	// first collection of garbage: most compiles are over by then.
	firstCollection = 72 << 20
	// laterPercent is how much the heap grows from one collection to the next:
	// a model is mostly what stays, so waiting longer saves little.
	laterPercent = 60
	// betweenFrom is how large the heap has to be to be collected before an export.
	betweenFrom = 16 << 20
	// smallHeap is what a compile has at the start. No model that is not much
	// larger makes the process as large as its start did.
	smallHeap = 4 << 20
	// minimalHeap is where the runtime's first collection lies at 100 percent.
	minimalHeap = 4 << 20
)

// memory tunes a process that does one thing and ends.
type memory struct {
	export   bool // evaluating is not all
	handing  *handing
	paced    bool            // when to collect is not said in the environment
	first    runtime.Cleanup // what follows the first collection
	prepared bool
}

// unprofiled has nobody note where memory is taken.
var unprofiled = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// tuned has the first collection come late, and pages before they are needed.
// GOGC and GOMEMLIMIT in the environment have precedence.
func tuned(export bool) *memory {
	unprofiled()
	m := &memory{export: export, handing: newHanding()}
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return m
	}
	m.paced = true
	debug.SetGCPercent(-1) // until the project is open
	return m
}

// prepare makes the heap what it will be. That takes milliseconds, in which the
// Python worker starts.
func (m *memory) prepare() {
	if !m.paced || m.prepared {
		return
	}
	m.prepared = true
	largePages()
	debug.SetGCPercent(firstCollection / minimalHeap * 100)
	// The cleanup of something that nobody holds runs after a collection.
	m.first = runtime.AddCleanup(new(*int), func(percent int) { debug.SetGCPercent(percent) }, laterPercent)
	if runtime.GOMAXPROCS(0) > 1 {
		go m.handing.run()
	}
}

// stageOver gives back what a stage leaves where Python takes memory too: pages
// of the program, and garbage between evaluating and exporting. What evaluating
// used is enough for most exports then, and the process stays a fifth smaller,
// for a tenth of its time. A large heap was collected as it grew.
func (m *memory) stageOver(stage string, worker bool) {
	if stage == "open" {
		m.prepare()
		return
	}
	if !worker {
		return
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if now.HeapAlloc < smallHeap {
		return
	}
	lean.Forget()
	if m.export && stage == "evaluate" && now.HeapAlloc >= betweenFrom && now.HeapAlloc < firstCollection {
		m.collect(now.HeapAlloc)
	}
}

// collect collects a heap of so many bytes. The process is as large as it is:
// the next collection waits until the heap is so again.
func (m *memory) collect(before uint64) {
	m.first.Stop()
	runtime.GC()
	if m.paced {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		debug.SetGCPercent(max(laterPercent, int(before*100/now.HeapAlloc)-100))
	}
}
