package layout

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// Explain turns an error of the file system into a fault that says what to
// do. An error that is a fault already stays as it is.
func Explain(op, path string, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(op, fault.Exhausted, err).Say("the disk that holds " + path + " is full").
			Hint("free space there, or move the state directory: [config] state-dir")
	case errors.Is(err, syscall.EROFS):
		return fault.Wrap(op, fault.Unavailable, err).Say(path + " is on a file system that is mounted read-only").
			Hint("mount it for writing, or choose another directory: [config] state-dir, log-dir")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		return fault.Wrap(op, fault.Invalid, err).Say("something that is no directory is in the way of " + path).
			Hint("move it away, or choose another directory: [config] state-dir, log-dir")
	case errors.Is(err, os.ErrPermission):
		return fault.Wrap(op, fault.Forbidden, err).Say("no permission to write " + path).
			Hint("run as its owner, change its owner, or choose another directory: [config] state-dir, log-dir")
	}
	return fault.Wrap(op, fault.Internal, err).Say("trouble with " + path)
}

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
