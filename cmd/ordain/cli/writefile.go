package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
)

// writeFile writes a whole file or none; an empty path writes nothing. A file
// that is there keeps its mode, and a link still leads to it. What is no file,
// such as a pipe or /dev/null, is written into and never replaced; so is a file
// in a folder that takes no new ones.
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
	if err == nil &&
		errors.Is(written, fs.ErrPermission) { // a folder that takes no new files may hold one that takes text
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

// replaceWhole puts a new file in the place of another, or of none.
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
	return replace(temp.Name(), path)
}
