package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// writeFile writes a whole file or nothing; an empty path means that no file is
// wanted. A file that exists is replaced and keeps its mode, and links still lead
// to it. A pipe, a device such as /dev/null, and a file in a folder in which no
// files can be created are written into instead.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return writeInto(path, write)
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return unwritable(err)
	}
	written := replaceWhole(path, mode, func(file *os.File) error { return write(file) })
	if err == nil && errors.Is(written, fs.ErrPermission) { // no new file can be made, but the old one may be writable
		return writeInto(path, write)
	}
	return written
}

func unwritable(err error) error {
	return fault.Wrap("cli.writeFile", fault.Invalid, err).Say("the result cannot be written")
}

func writeInto(path string, write func(io.Writer) error) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return unwritable(err)
	}
	return errors.Join(write(out), out.Close())
}

// replaceWhole writes a new file and renames it to path, where there may be an
// older one.
func replaceWhole(path string, mode fs.FileMode, write func(*os.File) error) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".ordain-*")
	if err != nil {
		return unwritable(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	if err := errors.Join(write(temp), temp.Chmod(mode), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// keepOwner gives a new file the owner of the file that it replaces. Only root has
// to do that, and may.
func keepOwner(f *os.File, old fs.FileInfo) error {
	stat, ok := old.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}
