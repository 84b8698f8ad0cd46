// Package process runs recorded work: declared state machines, one row for each intention, durable across crashes.
//
//	Schedule ──one transaction──▶ state of the resource, row, job
//	                                   │
//	      River wakes a worker ◀───────┘
//	                │
//	                ▼
//	Take: lease, fence + 1 ─▶ pre ─▶ main ─▶ post ─▶ End: done state, next process of the resource
//	                            │ each handler that finishes is recorded: a replay goes on after it
//	                            └─fails─▶ waits, longer each time ─▶ dead: a person retries or cancels it
//
// A resource has one process that runs at a time, and its processes run in the order in which they were scheduled.
//
// A worker renews its lease while it runs a process. When it stops doing that, because it was killed or paused or
// cannot reach the database, another one continues the process after the last handler that finished. Each attempt has
// a fencing number, and everything that is recorded for the process is refused when the number is no longer that of
// the row; so a worker that wakes up late can write nothing.
//
// Handlers are therefore idempotent: one whose end could not be recorded runs again.
package process
