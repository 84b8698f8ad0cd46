// Package objects stores the objects of a Git repository, in packs and loose files as
// git has them.
//
//	Receive ──▶ pack-….pack + .idx ◀──┐        EncodedObject: index ─▶ offset ─▶ chain of deltas
//	Write ────▶   (many, small)       │
//	            loose files ─────── Compact ──▶ few packs; Prune removes what no root needs
//
// It replaces the storage of go-git v5, which reads the index of every pack into memory
// whenever it opens a repository. Here an object is found with one or two reads of the
// index, and memory does not grow with the history.
//
// A repository can be read while it is compacted, also by other processes: an object is
// removed only after it was written elsewhere, and a reader that does not find an object
// lists the packs again. Only one process may write at a time.
//
// This package goes once go-git v6 is stable and meets bench/git with a storage of its
// own, which reads indexes from the disk; see docs/adr/0020.
package objects
