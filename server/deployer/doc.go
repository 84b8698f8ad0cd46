// Package deployer drives the deployments of one environment: it feeds events
// to the scheduler, carries out its commands, and makes every step durable
// before it is acted on.
//
//	verbs, timers ─▶ ┌──────┐ commands ┌────────┐ committed ┌──────────┐
//	                 │ loop │ ───────▶ │ record │ ────────▶ │ executor │
//	      outcomes ─▶└──────┘          └────────┘           └──────────┘
//	          ▲                                                   │
//	          └───────────────────────────────────────────────────┘
//
// The loop is one goroutine; it alone touches the scheduler and never waits
// for a database or a handler. Commands gather in a batch while the batch
// before is being committed, so the busier an environment is, the more one
// transaction carries. A batch holds the beginnings and the ends of
// deployments; nothing of it runs before all of it is durable. When the
// database is away the batch is repeated until it is back, and meanwhile
// nothing new runs. Where handlers are quicker than commits, the begin of what
// comes next is recorded ahead: see ahead.go; and some of that is sent before its
// turn: see queue.go.
//
// A server that is killed leaves deployments marked as running, or ahead. Start takes
// note of them, closes their entries in the log as cancelled, and runs them again.
package deployer
