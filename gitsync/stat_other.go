//go:build !linux

package gitsync

import (
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// entryOf gives what the index remembers of a file on the disk.
func entryOf(info fs.FileInfo) *index.Entry {
	return &index.Entry{ModifiedAt: info.ModTime(), CreatedAt: info.ModTime(), Size: uint32(info.Size())}
}
