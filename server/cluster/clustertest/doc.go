// Package clustertest has machines for tests: real SSH servers at addresses of this
// machine's loopback network.
//
//	Machines(t, 3) ── for each: an address 127.x.y.z, a host key, the same authorized
//	                  key, and, as root, a file system, processes and a host name of its own
//
// As root, a machine is a set of namespaces. Its file system is that of this machine with
// an overlay in memory, so that what is written there is seen nowhere else and survives
// Restart; ending its first process ends all others. For an ordinary user, a machine is
// an SSH server that lets only this user in, in a home folder of its own; NeedRoot skips
// tests that this is not enough for.
//
// All ends with the test. If the test is killed, the machines notice that their standard
// input has ended, and end too.
package clustertest
