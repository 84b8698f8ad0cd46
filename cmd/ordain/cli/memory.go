package cli

import (
	"os"
	"runtime/debug"
)

// compileGCPercent is how much the heap of a compile grows between two
// collections, in percent of what is live. Almost everything that a compile
// allocates stays until its end, so frequent collections find little to free.
const compileGCPercent = 400

// collectLess makes the garbage collector of a process that compiles run less
// often. GOGC and GOMEMLIMIT in the environment take precedence.
func collectLess() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(compileGCPercent)
	}
}
