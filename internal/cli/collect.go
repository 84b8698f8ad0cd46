package cli

import (
	"os"
	"runtime"
	"runtime/debug"
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
	// minimalHeap is where the runtime's first collection lies at 100 percent.
	minimalHeap = 4 << 20
)

// collectLate tunes the collector for a process that does one thing and ends.
// GOGC and GOMEMLIMIT in the environment have precedence.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	largePages()
	debug.SetGCPercent(firstCollection / minimalHeap * 100)
	// The cleanup of something that nobody holds runs after a collection.
	runtime.AddCleanup(new(*int), func(percent int) { debug.SetGCPercent(percent) }, laterPercent)
}

// collectBetween collects garbage between evaluating and exporting: what
// evaluating used is enough for most exports, and the process stays a tenth
// smaller. A large heap was collected as it grew.
func collectBetween() {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if now.HeapAlloc >= betweenFrom && now.HeapAlloc < firstCollection {
		runtime.GC()
	}
}
