// Package desk hands out tasks to provisioners, and takes their results.
//
//	provisioner ─ HTTP ─▶ Handler ─▶ Take ──▶ record: a lease, and then all that the task needs (compose.go)
//	                               ├▶ Renew, Output
//	                               └▶ Finish ─▶ record: what follows from the result (verdict.go); reports of a
//	                                        project that arrive at the same time share a transaction (merge.go)
//
// A task is composed when it is taken: the definition of its job's goal, the facts of its
// node, macros, secrets. Secrets are opened for that moment only, and go to the
// provisioner that has the lease.
//
// A lease has a fence number. Results with an older one are dropped; leases that were not
// renewed are taken back by any desk, and the task is tried again. Provisioners serve one
// project: they get its tasks and no others.
package desk
