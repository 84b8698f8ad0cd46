package gitsync

import (
	"io/fs"
	"syscall"
)

// entryOf returns the part of an index entry that comes from the file on the disk.
func entryOf(info fs.FileInfo) entry {
	e := entry{modified: momentOf(info.ModTime()), size: uint32(info.Size())}
	e.created = e.modified
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.created = moment{uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec)}
		e.dev, e.inode, e.uid, e.gid = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	}
	return e
}
