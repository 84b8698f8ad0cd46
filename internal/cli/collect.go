package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is how large the heap of a compile grows before the first
// collection of garbage: most compiles are over by then.
const firstCollection = 48 << 20

// minimalHeap is where the runtime's first collection lies at 100 percent.
const minimalHeap = 4 << 20

// collectLate tunes the collector for a process that does one thing and ends:
// the first collection waits, those after it come as usual. GOGC and
// GOMEMLIMIT in the environment have precedence.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection / minimalHeap * 100)
	// The finalizer of something that nobody holds runs after a collection.
	first := &struct{ percent int }{usual}
	runtime.SetFinalizer(first, func(first *struct{ percent int }) { debug.SetGCPercent(first.percent) })
}
