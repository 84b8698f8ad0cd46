// Package plugin is the bridge from the engine to Python. It implements eval.Host with a worker
// process in the compile role.
//
//	engine ──Call──▶ Host ──call──▶ worker ──▶ plug-in
//	engine ◀─Heap.Attribute── Host ◀──read── worker ◀── proxy.attribute
//	engine ◀─Outcome── Host ◀──reply── worker
//
// A message costs about a tenth of a millisecond, so the host sends few: values travel whole; an
// instance carries the attributes that plug-ins read of instances of its type before; and one read
// asks for all instances of the list over which the plug-in iterates. None of this changes what a
// plug-in sees, because a variable of the model never changes once it has a value.
//
// The worker starts while the model is parsed: Start returns at once, and the first request waits
// for the worker.
//
// internal/python/worker/PROTOCOL.md describes the messages.
package plugin
