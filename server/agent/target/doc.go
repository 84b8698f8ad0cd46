// Package target is the agent program: it runs on, or close to, the targets, and does what the commands of a server
// say. docs/agent-protocol.md describes what the two say to each other.
//
//	server ══ TLS, WebSocket ══▶ link.go ──command──▶ journal.go   on disk before it starts
//	                                │                  commands.go  one entry for each command
//	                                │ content          work.go ────▶ executor.Manager ──▶ handlers
//	                                ▼                     │
//	                             contents.go ◀──by hash───┘ answers.go: kept until the server has recorded them
//
// It starts nothing by itself and decides nothing. A command runs once, however often it arrives and whatever breaks in
// between; its answer is sent until the server says that it is recorded. No deadline is a time of day: all count from
// the arrival of the command, so the clock may be wrong. Secrets stay in memory.
package target
