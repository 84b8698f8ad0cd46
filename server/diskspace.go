package server

import (
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// diskSpace returns how much of the disk with a folder is free for ordinary users, and its size.
func diskSpace(folder string) (free, size int64, err error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, 0, fault.Disk("server.diskSpace", folder, err)
	}
	return int64(fs.Bavail) * fs.Bsize, int64(fs.Blocks) * fs.Bsize, nil
}
