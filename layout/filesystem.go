package layout

import (
	"os"
	"path/filepath"
	"syscall"
)

// canLink reports whether files of folder a can be hard-linked into folder b.
func canLink(a, b string) bool {
	probe, err := os.CreateTemp(a, ".probe-*")
	if err != nil {
		return false
	}
	defer os.Remove(probe.Name())
	_ = probe.Close()
	link := filepath.Join(b, filepath.Base(probe.Name()))
	if os.Link(probe.Name(), link) != nil {
		return false
	}
	_ = os.Remove(link)
	return true
}

// isOurs takes the result of Stat or Lstat. It reports whether that is a folder
// that belongs to this user and that only the user and its group can write to.
func isOurs(info os.FileInfo, err error) bool {
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
