// Package filestamp tells a file from what may replace it, by what the kernel
// knows of it: caches that hold what a file led to ask here whether it is the
// same one still, without reading it.
package filestamp

import (
	"errors"
	"syscall"
	"time"
)

// Stamp is what the kernel knows of a file: size in bytes, time of content and
// of metadata in nanoseconds since 1970, inode, device. All zero: there is none.
type Stamp [5]int64

// Of stamps the file or folder that a path leads to. Nothing there is no error,
// and has the zero Stamp.
func Of(path string) (Stamp, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			return Stamp{}, nil
		}
		return Stamp{}, err
	}
	content, metadata := times(&s)
	return Stamp{s.Size, content, metadata, int64(s.Ino), int64(s.Dev)}, nil
}

// Changed is when the file, or what is known of it, changed last.
func (s Stamp) Changed() time.Time { return time.Unix(0, max(s[1], s[2])) }
