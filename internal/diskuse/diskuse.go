// Package diskuse measures how much space folders take on disk.
package diskuse

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// File identifies a file, whatever its names.
type File struct{ device, number uint64 }

// Walk calls each with every file and folder below dir, and the space that it takes. Files that vanish meanwhile are
// left out. A file with several names is passed once for each.
func Walk(dir string, each func(file File, size int64)) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			each(File{uint64(s.Dev), s.Ino}, s.Blocks*512)
		}
		return nil
	})
}

// Of returns the space that a folder takes with all that is in it. A file with several names counts once.
func Of(dir string) (total int64) {
	seen := map[File]bool{}
	Walk(dir, func(file File, size int64) {
		if !seen[file] {
			seen[file] = true
			total += size
		}
	})
	return total
}
