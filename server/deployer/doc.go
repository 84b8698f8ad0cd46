// Package deployer drives the deployments of one environment: it feeds events to the scheduler, carries out its
// commands, and makes every step durable before acting on it.
//
//	verbs, timers ─▶ ┌──────┐ commands ┌────────┐ committed ┌──────────┐
//	                 │ loop │ ───────▶ │ record │ ────────▶ │ executor │
//	      outcomes ─▶└──────┘          └────────┘           └──────────┘
//	          ▲                                                   │
//	          └───────────────────────────────────────────────────┘
//
// The loop is one goroutine; it alone touches the scheduler and never waits for the database or a handler. Commands
// gather in a batch while the batch before is being committed, so the busier an environment is, the more one
// transaction carries. A batch holds the beginnings and the ends of deployments; nothing in it runs before all of it
// is durable. When the database cannot be reached the batch is retried until it can, and meanwhile nothing new runs.
// Where handlers are quicker than commits, the beginning of what comes next is recorded ahead of time: see ahead.go.
// Some of that is sent to the executor before its turn: see queue.go.
//
// A server that is killed leaves deployments that are marked as running, or ahead. Start notes them, closes their
// entries in the log as cancelled, and runs them again.
package deployer
