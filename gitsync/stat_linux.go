package gitsync

import (
	"io/fs"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// entryOf gives what the index remembers of a file on the disk.
func entryOf(info fs.FileInfo) *index.Entry {
	e := &index.Entry{ModifiedAt: info.ModTime(), CreatedAt: info.ModTime(), Size: uint32(info.Size())}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.CreatedAt = time.Unix(st.Ctim.Unix())
		e.Dev, e.Inode, e.UID, e.GID = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	}
	return e
}
