package fault

import (
	"errors"
	"os"
	"syscall"
)

// Disk turns an error of the file system at path into a fault with advice. An
// error that already is a fault stays as it is.
func Disk(op, path string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Wrap(op, Exhausted, err).Say("the disk that holds " + path + " is full").
			Hint("free space there, or move the state directory: [config] state-dir")
	case errors.Is(err, syscall.EROFS):
		return Wrap(op, Unavailable, err).Say(path + " is on a file system that is mounted read-only").
			Hint("mount it for writing, or choose another directory: [config] state-dir, log-dir")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		return Wrap(op, Invalid, err).Say("something that is not a directory is in the way of " + path).
			Hint("move it away, or choose another directory: [config] state-dir, log-dir")
	case errors.Is(err, os.ErrPermission):
		return Wrap(op, Forbidden, err).Say("no permission to write " + path).
			Hint("run as its owner, change its owner, or choose another directory: [config] state-dir, log-dir")
	}
	return Wrap(op, Internal, err).Say("trouble with " + path)
}
