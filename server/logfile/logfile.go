// Package logfile writes log files of limited size. A file that is large or old
// enough is renamed to a numbered one, and the oldest files are removed:
//
//	agent-….log ─▶ agent-….log.1 ─▶ agent-….log.2 ─▶ (gone)
//
// Other programs may rotate or remove the file too. The next lines then go to a
// new file under the old name.
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

// checkEvery is how often it is checked whether the file still has its name. A
// system call for each line would be too much.
const checkEvery = time.Second

// lookAgain is how long Clean relies on what it saw in the folder, if nothing there gets too
// old before. The logs of a thousand environments share one, which is slow to list.
const lookAgain = time.Hour

// Policy says when a file is rotated and when rotated files are removed. With the
// zero value the file just grows.
type Policy struct {
	Size int64         // of a file, in bytes, when it is rotated; 0: no limit
	Age  time.Duration // of a file when it is rotated; 0: no limit
	Keep int           // number of rotated files that are kept
	// Retention is how long a rotated file is kept after its last line; 0: no limit.
	Retention time.Duration
}

// File is a log file. It is safe for concurrent use.
type File struct {
	path   string
	policy func() Policy
	now    func() time.Time

	mu      sync.Mutex
	file    *os.File
	size    int64
	since   time.Time // of its first line
	checked time.Time
	failed  time.Time // when rotating last failed

	cleaned Policy    // by which clean last removed files
	due     time.Time // when clean may have something to do again, by this policy
}

// Open opens a log for appending. policy is called for each write, so that it may
// change, and must be quick.
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
	f.file, f.size, f.checked = file, info.Size(), f.now()
	f.since = f.checked
	if f.size > 0 {
		f.since = began(file.Name(), info)
	}
	return nil
}

// began returns about when an existing file got its first line: the time of the
// last line of the previous file or, if there is none, of its own last line.
func began(path string, info fs.FileInfo) time.Time {
	if before, err := os.Stat(path + ".1"); err == nil {
		return before.ModTime()
	}
	return info.ModTime()
}

// Write appends whole lines. The file is rotated between two writes, never within
// one. If rotating fails, the file is used further.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return 0, os.ErrClosed
	}
	now := f.now()
	if now.Sub(f.checked) >= checkEvery {
		f.checked = now
		if f.moved() {
			if err := f.open(); err != nil {
				return 0, err
			}
		}
	}
	policy := f.policy()
	full := policy.Size > 0 && f.size > 0 && f.size+int64(len(p)) > policy.Size
	old := policy.Age > 0 && f.size > 0 && now.Sub(f.since) >= policy.Age
	if (full || old) && now.Sub(f.failed) >= checkEvery {
		if err := f.rotate(policy); err != nil {
			f.failed = now
		}
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, err
}

// moved reports whether the open file has lost its name.
func (f *File) moved() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	open, err := f.file.Stat()
	return err == nil && !os.SameFile(named, open)
}

// rotate renames the file to number 1, and earlier ones to the next numbers.
func (f *File) rotate(policy Policy) error {
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

// Clean removes rotated files that are older or more than the policy allows. It may be called
// often: it looks at the folder when a rotated file has become too old, the policy is another
// one, or an hour has passed.
func (f *File) Clean() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	policy := f.policy()
	if policy == f.cleaned && f.now().Before(f.due) {
		return nil
	}
	return f.clean(policy)
}

func (f *File) clean(policy Policy) error {
	aside, err := filepath.Glob(globbed(f.path) + ".*")
	if err != nil {
		return err
	}
	now := f.now()
	f.cleaned, f.due = policy, now.Add(lookAgain)
	var failed []error
	for _, path := range aside {
		n, err := strconv.Atoi(strings.TrimPrefix(path, f.path+"."))
		if err != nil || n < 1 {
			continue // not one of ours
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if n > policy.Keep || policy.Retention > 0 && now.Sub(info.ModTime()) > policy.Retention {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
				f.due = now
			}
			continue
		}
		if end := info.ModTime().Add(policy.Retention); policy.Retention > 0 && end.Before(f.due) {
			f.due = end
		}
	}
	return errors.Join(failed...)
}

// globbed returns a pattern that matches only this path.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close closes the file. Later writes fail.
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
