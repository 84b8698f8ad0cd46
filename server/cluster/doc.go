// Package cluster has the verbs about clusters, and keeps their machines equal to what
// is committed and released (ADR 45).
//
//	person ─ Create, Amend, Delete ─▶ solve ─▶ clusters/NAME.yaml ─ commit ─▶ Git
//	                                                                            │ compile
//	version ◀─ stored with it ─ Read: every file is checked and solved ◀────────┘
//	   │ release
//	   ▼
//	wanted ─ reconcile ─▶ plan: what exists ─▶ what is wanted ─▶ a job: a graph of tasks
//	                                                              │ desk (package desk)
//	machines ◀─ plug-ins ◀─ provisioners ◀─ take, finish ─────────┘
//
//	service.go     the service, and what it needs
//	definition.go  a manifest with all that it refers to, in the versions that it pins
//	wish.go        what people ask for ─▶ a manifest
//	verbs.go       create, amend, delete, roll back: each is a commit; pause, resume, abort, retry
//	read.go        the files of a commit ─▶ the manifests of a version
//	reconcile.go   what is released ─▶ jobs, and how they end
//	jobs.go        a manifest and the nodes there are ─▶ a plan and its tasks
//	lease.go       ends of leases
package cluster
