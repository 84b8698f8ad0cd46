// Package logfile writes log files that do not grow for ever. A file that is
// large or old enough is set aside under a number, and the oldest are removed:
//
//	agent-….log ─▶ agent-….log.1 ─▶ agent-….log.2 ─▶ (gone)
//
// Other programs may rotate or remove the file too: what is written next goes
// to a new file under the old name.
package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lookEvery is how often the file is looked for under its name: a system call
// for each line would be too much.
const lookEvery = time.Second

// Policy says when a file is set aside and when it is removed. The zero value
// lets it grow.
type Policy struct {
	Size int64         // bytes after which a file is set aside; 0: any
	Age  time.Duration // time after which it is; 0: any
	Keep int           // files that are kept beside the one that is written
	// Retention is how long a file is kept after the last line in it; 0: as Keep says.
	Retention time.Duration
}

// File is a log file. Its methods may be called from many goroutines.
type File struct {
	path   string
	policy func() Policy
	now    func() time.Time

	mu     sync.Mutex
	file   *os.File
	size   int64
	since  time.Time // of its first line
	looked time.Time
	failed time.Time // when setting it aside did not work
}

// Open opens a log for appending. policy is asked again and again, so that it
// may change; it must be quick.
func Open(path string, policy func() Policy) (*File, error) {
	f := &File{path: path, policy: policy, now: time.Now}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.size, f.looked = file, info.Size(), f.now()
	f.since = f.looked
	if f.size > 0 {
		f.since = began(file.Name(), info)
	}
	return nil
}

// began is when a file that is there already got its first line: as its name
// cannot tell, the end of the one before, or else its own last line.
func began(path string, info fs.FileInfo) time.Time {
	if before, err := os.Stat(path + ".1"); err == nil {
		return before.ModTime()
	}
	return info.ModTime()
}

// Write appends whole lines. A file is set aside between two writes, never
// within one; when that fails it goes on being written.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return 0, os.ErrClosed
	}
	now := f.now()
	if now.Sub(f.looked) >= lookEvery {
		f.looked = now
		if f.moved() {
			if err := f.open(); err != nil {
				return 0, err
			}
		}
	}
	policy := f.policy()
	full := policy.Size > 0 && f.size > 0 && f.size+int64(len(p)) > policy.Size
	old := policy.Age > 0 && f.size > 0 && now.Sub(f.since) >= policy.Age
	if (full || old) && now.Sub(f.failed) >= lookEvery {
		if err := f.setAside(policy); err != nil {
			f.failed = now
		}
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, err
}

// moved tells whether the open file has lost its name.
func (f *File) moved() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	open, err := f.file.Stat()
	return err == nil && !os.SameFile(named, open)
}

// setAside gives the file the number 1, and those before it the next ones.
func (f *File) setAside(policy Policy) error {
	for n := policy.Keep; n > 1; n-- {
		if err := os.Rename(f.numbered(n-1), f.numbered(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var err error
	if policy.Keep > 0 {
		err = os.Rename(f.path, f.numbered(1))
	} else {
		err = os.Remove(f.path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	f.since = f.now()
	return f.clean(policy)
}

func (f *File) numbered(n int) string { return f.path + "." + strconv.Itoa(n) }

// Clean removes files that were set aside and are older than the policy
// keeps them, or more than it does.
func (f *File) Clean() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clean(f.policy())
}

func (f *File) clean(policy Policy) error {
	aside, err := filepath.Glob(globbed(f.path) + ".*")
	if err != nil {
		return err
	}
	var failed []error
	for _, path := range aside {
		n, err := strconv.Atoi(strings.TrimPrefix(path, f.path+"."))
		if err != nil || n < 1 {
			continue // somebody else's
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if n > policy.Keep || policy.Retention > 0 && f.now().Sub(info.ModTime()) > policy.Retention {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// globbed is a path as a pattern that only matches itself.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close closes the file. What is written after it is refused.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
