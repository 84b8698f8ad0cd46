// Package executor runs handler code on resources, as the scheduler decides.
// Each blueprint has a worker process of its own:
//
//	Task ──▶ Manager ──blueprint──▶ venv (executors/venvs/<hash>)
//	                                code (executors/code/<hash>)
//	                                worker process ──▶ handler ──▶ Result
//
// Equal blueprints share a process, which may serve many agents. When a process
// crashes, the resource that it was working on is reported as failed, with the
// process's last words, and the next task starts a new process. Executors and
// everything that they started end with their server.
//
// places.go draws how tasks share a limited number of processes;
// docs/executors.md describes the limits of a process. The package neither
// decides what to deploy nor writes to the database.
package executor
