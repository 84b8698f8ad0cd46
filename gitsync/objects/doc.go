// Package objects keeps the objects of a Git repository: packs and loose files,
// read where they lie.
//
//	Receive ──▶ pack-….pack + .idx ◀──┐        EncodedObject: index ─▶ offset ─▶ chain of deltas
//	Write ────▶   (many, small)       │
//	            loose files ─────── Compact ──▶ few packs; Prune drops what no root reaches
//
// It stands in for the storage of go-git, which reads the index of every pack
// into memory whenever it opens a repository: here an object is found with a
// read or two of the index, and memory does not grow with the history. What is
// removed is always somewhere else before, and who does not find an object
// looks at the packs again: so a repository is read while it is compacted, also
// by other processes. Only one may change it at a time.
package objects
