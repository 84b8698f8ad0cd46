// Package worker starts Python processes and talks to them, with frames over two
// pipes; PROTOCOL.md beside this file describes the protocol. The package knows
// nothing about plug-ins or handlers, which are the business of compiler/plugin
// and executor.
//
//	Go                                 Python (../runtime/ordain_worker)
//	 │  fd 3  ──frames──▶  requests    │
//	 │  fd 4  ◀──frames──  replies, notices, requests back
//	 │  stdout, stderr ◀── what the code prints; never part of the protocol
package worker
