// Package filestamp detects that a file has changed or was replaced, without reading it, by what the
// kernel knows of it. It is for caches of results that depend on files.
package filestamp

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Stamp is what the kernel knows of a file: size in bytes, time of content and
// of metadata in nanoseconds since 1970, inode, device. All zero: there is none.
type Stamp [5]int64

// Of returns the stamp of the file or folder at a path. When there is none it returns the zero Stamp
// and no error.
func Of(path string) (Stamp, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			return Stamp{}, nil
		}
		return Stamp{}, err
	}
	return of(&s), nil
}

func of(s *syscall.Stat_t) Stamp {
	content, metadata := times(s)
	return Stamp{s.Size, content, metadata, int64(s.Ino), int64(s.Dev)}
}

// OfLink returns the stamp and the mode of a file, of a symbolic link itself and not of what it leads to.
func OfLink(path string) (Stamp, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Stamp{}, 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Stamp{}, 0, errors.ErrUnsupported
	}
	return of(s), info.Mode(), nil
}

// Changed is the last time when the file's content or metadata changed.
func (s Stamp) Changed() time.Time { return time.Unix(0, max(s[1], s[2])) }
