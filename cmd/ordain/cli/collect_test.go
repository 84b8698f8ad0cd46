package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Garbage of evaluating is collected before an export where a Python worker
// takes memory too, and only there.
func TestAnExportBesidePythonBeginsWithoutGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	collections := func() uint32 {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return now.NumGC
	}
	large := make([]byte, betweenFrom)
	for _, c := range []struct {
		stage          string
		export, worker bool
		collected      uint32
	}{
		{"parse", true, true, 0}, {"evaluate", false, true, 0}, {"evaluate", true, false, 0}, {"evaluate", true, true, 1}, {"export", true, true, 0},
	} {
		before := collections()
		(&memory{export: c.export}).stageOver(c.stage, c.worker)
		if got := collections() - before; got != c.collected {
			t.Errorf("%+v: %d collections", c, got)
		}
	}
	runtime.KeepAlive(large)
}
