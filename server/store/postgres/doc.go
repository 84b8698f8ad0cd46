// Package postgres runs the private PostgreSQL of the embedded default, so
// that one program is a whole server.
//
//	Start ─▶ find the programs (else fetch them once) ─▶ end what a killed server left
//	      ─▶ make the cluster (once) ─▶ run, wait until ready ─▶ Server
//
// The database listens on a unix socket only, in a directory that nobody else
// may enter, and lets in only the account that runs this program. PostgreSQL
// refuses to be root: then it runs as postgres or nobody, which own nothing
// but the data and the socket directory. When this program is killed, the
// kernel tells the database to stop; should it live on all the same, the next
// Start ends it first.
package postgres
