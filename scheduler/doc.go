// Package scheduler decides what is deployed next in one environment.
//
// It is a pure state machine: events go in, commands come out. It has no database, no clock, no goroutine and no
// randomness of its own, so that the same history always leads to the same commands, and a whole day of deployments
// is tested in a millisecond.
//
//	 NewVersion ─┐                                    ┌─▶ Start(resource, why)
//	   TaskDone ─┤        ┌───────────────────┐       │
//	    Trigger ─┼──────▶ │ graph  states     │ ──────┤
//	Pause, Halt ─┤        │ wishes by agent   │       └─▶ SetState(state that follows)
//	       Tick ─┘        └───────────────────┘
//
// A resource that should run is a *wish* with a priority. It moves like this:
//
//	           enqueue            nothing holds it         agent free, room
//	(at rest) ────────▶ waiting ──────────────────▶ ready ─────────────────▶ running ──▶ (at rest)
//	                       ▲          held again      │
//	                       └──────────────────────────┘
//	                                                  └─▶ skipped, when something it needs is bad
//
// A wish is held by anything it requires, directly or through others, that is running, that is wished for at least as
// urgently, or that is wished for and not as intended. In the last case the urgency is passed on, so that a push
// never waits for a place in a periodic run. A resource that is as intended and only waits for its periodic check
// holds no push back.
//
// The rules about order are in graph.go (resources to be purged go in reverse), those about versions in version.go,
// those about outcomes in done.go.
package scheduler
