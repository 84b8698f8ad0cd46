package postgres

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// inWords turns an error about files into a fault that says what to do.
func inWords(op string, err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(op, fault.Exhausted, err).Say("the disk is full").Hint("free some space, then start again")
	case errors.Is(err, syscall.EROFS):
		return fault.Wrap(op, fault.Forbidden, err).
			Say("the disk is read-only").
			Hint("choose a state directory that can be written")
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(op, fault.Forbidden, err).Say("this account may not do that").
			Hint("give it the directory, or choose another state directory")
	}
	return fault.Wrap(op, fault.Internal, err)
}

func inWordsOrNil(op string, err error) error {
	if err == nil {
		return nil
	}
	return inWords(op, err)
}

// failure turns the last output of initdb or postgres into a fault.
func failure(op, what, words string) *fault.Error {
	words = strings.TrimSpace(words)
	say := func(kind fault.Kind, advice string) *fault.Error {
		e := fault.New(op, kind, what).Hint(advice)
		if words != "" {
			e.Err = errors.New(words)
		}
		return e
	}
	for _, known := range []struct {
		sign   string
		kind   fault.Kind
		advice string
	}{
		{"No space left on device", fault.Exhausted, "free some space on the disk, then start again"},
		{"Check free disk space", fault.Exhausted, "free some space on the disk, then start again"}, // a short write
		{"Disk quota exceeded", fault.Exhausted, "free some space, then start again"},
		{"Permission denied", fault.Forbidden,
			"the account that runs PostgreSQL may not use a file or directory: correct its owner and mode"},
		{"Read-only file system", fault.Forbidden, "choose a state directory that can be written"},
		{"Cannot allocate memory", fault.Exhausted, "free some memory, then start again"},
		{"could not create shared memory", fault.Exhausted, "free some memory or enlarge /dev/shm, then start again"},
		{inUse, fault.Conflict, "another PostgreSQL is still using the data directory: stop it, then start again"},
		{"is not compatible", fault.Invalid, "use the version of PostgreSQL that made the data directory"},
		{"unrecognized configuration parameter", fault.Invalid, "correct local.conf in the data directory"},
		{"contains errors", fault.Invalid, "correct local.conf in the data directory"},
	} {
		if strings.Contains(words, known.sign) {
			return say(known.kind, known.advice)
		}
	}
	return say(fault.Internal, "see its last lines of output")
}

// inUse is PostgreSQL's message when children of a dead server are still running.
const inUse = "pre-existing shared memory block"

// lockFile is its message when the process named in postmaster.pid exists.
const lockFile = `lock file "postmaster.pid" already exists`
