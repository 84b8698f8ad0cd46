// Package worker starts Python child processes and speaks with them: over
// frames on two pipes, with a version, a heartbeat and a written protocol
// (PROTOCOL.md beside this file). It knows nothing of plug-ins or handlers;
// packages compiler/plugin and executor do.
//
//	Go                                 Python (runtime/ordain_worker)
//	 │  fd 3  ──frames──▶  requests    │
//	 │  fd 4  ◀──frames──  replies, notices, requests back
//	 │  stdout, stderr ◀── whatever the code prints: never part of the protocol
//
// The Python side is the package tree in runtime/, embedded in the binary and
// unpacked once per content hash below the cache directory. It also carries
// our own light `inmanta` package, found before an installed inmanta-core.
package worker
