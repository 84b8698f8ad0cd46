// Package executor does what the scheduler decides: it runs handler code on
// resources, each blueprint in a worker process of its own.
//
//	Task ──▶ Manager ──blueprint──▶ venv (executors/venvs/<hash>)
//	                                code (executors/code/<hash>)
//	                                worker process ──▶ handler ──▶ Result
//
// Equal blueprints share a process, however many agents it serves; a process
// that crashes is started again and the resource that it was busy with is
// reported as failed, with the process's last words. Executors die with their
// server, and what they started dies with them; limits and contention are drawn
// in places.go, what bounds a process is in docs/executors.md. Nothing
// here decides what to deploy, or writes to the database.
package executor
