// Package remote runs tasks on remote agents. It stands beside the executors of the server, and Router decides for each
// task which of the two it goes to:
//
//	deployer ─▶ Router ─┬─▶ executor.Manager      this server
//	                    └─▶ Executor ─▶ the record: a command ─▶ agent server ─▶ agent
//	                          ▲                  an answer ◀───────────────────────┘
//	                          └── waits: a bus event says "read again", and so does a sweep
//
// A command has the id of its task. It holds all that the agent needs: parcel.go turns a blueprint into contents that
// the agent keeps by their hashes (sources of handlers, wheels, the Python runtime).
//
// A server that stops leaves its commands alone. The next owner of the environment gives the same resources new tasks;
// it finds the commands by their subject and takes their answers, so that nothing runs twice for one intent.
package remote
