package compiler

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	"ordain.dev/ordain/compiler/eval"
)

// watchMemory is how often a compile with a limit is looked at.
const watchMemory = 50 * time.Millisecond

// watched compiles and gives up when the process uses more memory than it may:
// ok is false then. The evaluator asks for itself, at its own limit; this is for
// what comes before it, such as a file whose tree alone is too large. What was
// given up cannot be stopped: the process is expected to end.
func (r *run) watched(ctx context.Context) (result *eval.Result, ok bool) {
	limit := r.o.MemoryMax
	if limit == 0 {
		return r.guarded(ctx), true
	}
	done := make(chan *eval.Result, 1)
	go func() { done <- r.guarded(ctx) }()
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
			runtime.GC() // what is dead does not count
			if heap() >= limit+limit/8 {
				return nil, false
			}
		}
	}
}

// heap is how many bytes the objects of this process take.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
