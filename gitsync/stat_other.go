//go:build !linux

package gitsync

import "io/fs"

// entryOf gives what the index remembers of a file on the disk.
func entryOf(info fs.FileInfo) entry {
	at := momentOf(info.ModTime())
	return entry{modified: at, created: at, size: uint32(info.Size())}
}
