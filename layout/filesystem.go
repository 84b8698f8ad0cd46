package layout

import (
	"os"
	"path/filepath"
	"syscall"
)

// sameFilesystem says whether files can be hard-linked between two folders.
func sameFilesystem(a, b string) bool {
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

// own says whether a folder, as Stat or Lstat tells of it, is ours, and open for
// writing to nobody else but our group.
func own(info os.FileInfo, err error) bool {
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
