//go:build unix && !solaris && !aix

package gitsync

import (
	"errors"
	"os"
	"syscall"
)

// flock takes an exclusive lock on an open file, and returns whether it has it. With
// wait it waits for the lock.
func flock(f *os.File, wait bool) (bool, error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !wait && errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
}
