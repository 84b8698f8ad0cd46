// Package plugin is the bridge from the engine to Python: it implements
// eval.Host with a worker process in the compile role.
//
//	engine ──Call──▶ Host ──call──▶ worker ──▶ plug-in
//	engine ◀─Heap.Attribute── Host ◀──read── worker ◀── proxy.attribute
//	engine ◀─Outcome── Host ◀──reply── worker
//
// Crossing costs about a tenth of a millisecond, so the host crosses seldom:
// values travel whole; an instance carries the attributes that instances of
// its type were asked for before; and one read asks for all instances of the
// list that the plug-in walks over. None of this changes what a plug-in sees:
// a variable of the model, once it has a value, never changes.
//
// The worker starts while the model is still parsed: Start returns at once,
// and the first request waits for it.
//
// The conversation is written down in internal/python/worker/PROTOCOL.md.
package plugin
