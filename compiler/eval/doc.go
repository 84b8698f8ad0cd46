// Package eval compiles models: it has the files of a model resolved into a
// program (internal/program) and runs that.
//
//	files ──define──▶ program (names resolved) ──run──▶ instances, variables
//
// Variables are futures. A statement says which variables it needs and what it
// does once they have values; together that is a unit of work, and units wait.
//
//	a = b.c        frame: [c of b] ── no value yet ──▶ the unit is among its waiters
//	                                 ── value ───────▶ the unit is in the ready queue
//	its turn       sets a, and wakes the waiters of a
//
// Units that are ready run first come, first served. Some variables are lists
// that take elements until they are frozen. When no unit is ready any more, the run
// freezes one list, which lets the units that read it go on; in which order lists
// are frozen decides which models compile at all, so it is exactly that of the
// reference compiler (run.go).
//
// Where to read on:
//
//	compile.go, result.go   what callers use
//	run.go, queue.go        units, queues, freezing; cycle.go: promises in circles
//	variable.go             how values are set and read, and the ends of relations
//	dispatch.go             from the kinds of nodes to the functions that evaluate them
//	statements.go, implement.go, construct.go, lookup.go, logic.go, …  these functions
//	call.go, bind.go, batch.go, heap.go  plug-ins
//	salvage.go, explain.go, chain.go, datatrace.go  more about errors
//
// The same input gives the same result in the same order, always.
package eval
