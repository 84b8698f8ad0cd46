package compiler

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	"ordain.dev/ordain/compiler/eval"
)

// watchMemory is the interval at which the memory of a compile with a limit is checked.
const watchMemory = 50 * time.Millisecond

// watched compiles, and gives up when the process uses more memory than it may: then ok is false. The
// evaluator checks its own limit; this is for what comes before it, such as a file whose tree alone is
// too large. The goroutine that was given up cannot be stopped: the process is expected to end.
func (c *compilation) watched(ctx context.Context) (result *eval.Result, ok bool) {
	limit := c.options.MemoryMax
	if limit == 0 {
		return c.guarded(ctx), true
	}
	done := make(chan *eval.Result, 1)
	go func() { done <- c.guarded(ctx) }()
	tick := time.NewTicker(watchMemory)
	defer tick.Stop()
	for {
		select {
		case result = <-done:
			return result, true
		case <-tick.C:
			if heap() < limit+limit/8 {
				continue
			}
			runtime.GC() // garbage does not count
			if heap() >= limit+limit/8 {
				return nil, false
			}
		}
	}
}

// heap is the size of the objects of this process in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
