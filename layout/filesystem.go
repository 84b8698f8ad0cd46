package layout

import (
	"os"
	"syscall"
)

// isOurs takes the result of Stat or Lstat. It reports whether that is a folder
// that belongs to this user and that only the user and its group can write to.
func isOurs(info os.FileInfo, err error) bool {
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
