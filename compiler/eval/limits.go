package eval

import (
	"runtime"
	"runtime/metrics"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// limits stop a model that does not end by itself. The language has two ways to
// write one: an implementation that makes an instance which is implemented the same
// way, and a list that feeds itself. The first shows in its depth; the second may
// stay flat and shows only in its memory.
type limits struct {
	iterations int
	memoryMax  uint64
	sample     []metrics.Sample
}

func newLimits(in Input) limits {
	if in.MaxIterations <= 0 {
		in.MaxIterations = 100_000
	}
	return limits{
		iterations: in.MaxIterations, memoryMax: in.MemoryMax,
		sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}},
	}
}

// checkMemory is called now and then while the model runs.
func (l *limits) checkMemory() *Error {
	if l.memoryMax == 0 || l.used() < l.memoryMax {
		return nil
	}
	runtime.GC() // garbage does not count
	if l.used() < l.memoryMax {
		return nil
	}
	e := program.NewError("CompilerException", "The model needs more than %d MiB of memory and was stopped",
		l.memoryMax>>20)
	e.Bare, e.Final = true, true
	e.Hint = "look for a list that feeds itself, such as a loop over x.items that adds to x.items; raise the " +
		"limit with --memory-max if the model is that large"
	return e
}

func (l *limits) used() uint64 {
	metrics.Read(l.sample)
	return l.sample[0].Value.Uint64()
}

// tooDeep is the error for an instance with too many implementations above it.
func (l *limits) tooDeep(e *types.Entity) *Error {
	err := program.NewError("CompilerException",
		"Could not complete model: %d implementations stand above this instance of %s", l.iterations, e.Name)
	err.Final = true
	err.Hint = "an implementation that makes an instance which is implemented the same way never ends: make it " +
		"conditional with `when`; raise the limit with INMANTA_MAX_ITERATIONS if the model is that deep"
	return err
}
