// Package postgres runs the private PostgreSQL of the embedded default, so that one program is a whole server.
//
//	Start ─▶ find the programs (else fetch them once) ─▶ stop what a killed server left running
//	      ─▶ make the cluster (once) ─▶ run it, wait until it is ready ─▶ Server
//
// The database listens on a unix socket only, in a directory that no other account may enter, and admits only clients
// with a password. That is made with the cluster and kept in a file that only the account of this program may read, so
// that processes which run under the same account but may not read the file cannot connect. PostgreSQL refuses to run
// as root: then it runs as postgres or nobody, which own nothing but the data and the socket directory. When this
// program is killed, the kernel tells the database to stop; should the database survive that, the next Start stops it
// first.
package postgres
