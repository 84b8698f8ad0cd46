//go:build !linux

package gitsync

import "io/fs"

// entryOf returns the part of an index entry that comes from the file on the disk.
func entryOf(info fs.FileInfo) entry {
	at := momentOf(info.ModTime())
	return entry{modified: at, created: at, size: uint32(info.Size())}
}
