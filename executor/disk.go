package executor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
)

// kept is a folder of executors on disk.
type kept struct {
	dir  string
	venv bool
	used time.Time
	in   map[inode]bool
}

// inode is one file, however many names it has.
type inode struct{ device, number uint64 }

// survey is what all folders take on disk. Files are counted as the disk has
// them: once, also when several virtual environments link to them.
type survey struct {
	folders []kept
	sizes   map[inode]int64
	names   map[inode]int // in how many folders a file is
	total   int64
}

// survey looks at every file of every folder.
func (m *Manager) survey() survey {
	paths := m.c.Layout.Environment(m.c.Environment)
	s := survey{sizes: map[inode]int64{}, names: map[inode]int{}}
	for _, dir := range folders(paths.Venvs()) {
		s.folders = append(s.folders, kept{dir: dir, venv: true, used: venv.LastUsed(dir)})
	}
	for _, dir := range folders(paths.Codes()) {
		if info, err := os.Stat(dir); err == nil {
			s.folders = append(s.folders, kept{dir: dir, used: info.ModTime()})
		}
	}
	for i := range s.folders {
		in := map[inode]bool{}
		s.folders[i].in = in
		walk(s.folders[i].dir, func(file inode, size int64) {
			if in[file] {
				return
			}
			in[file] = true
			if s.names[file]++; s.names[file] == 1 {
				s.sizes[file], s.total = size, s.total+size
			}
		})
	}
	return s
}

// without takes a folder that was removed out of the sums; it gives how many
// bytes that freed.
func (s *survey) without(f kept) (freed int64) {
	for file := range f.in {
		if s.names[file]--; s.names[file] == 0 {
			freed += s.sizes[file]
		}
	}
	s.total -= freed
	return freed
}

// keepWithin removes folders until all together take at most DiskMax: those
// unused longest first, those in use never.
func (m *Manager) keepWithin(ctx context.Context, used map[string]bool) error {
	s := m.survey()
	slices.SortFunc(s.folders, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, f := range s.folders {
		if s.total <= int64(m.c.DiskMax) {
			return nil
		}
		if used[f.dir] {
			continue
		}
		if err := m.remove(ctx, f); err != nil {
			return err
		}
		m.c.Logger.Info("removed to stay within [agent] executor-disk-max", "path", f.dir, "bytes", s.without(f))
	}
	if s.total > int64(m.c.DiskMax) {
		m.c.Logger.Warn(
			"what executors use is larger than [agent] executor-disk-max",
			"bytes",
			s.total,
			"limit",
			m.c.DiskMax,
		)
	}
	return nil
}

func (m *Manager) remove(ctx context.Context, f kept) error {
	if f.venv {
		_, err := m.c.Maker.RemoveUnused(ctx, f.dir, f.used.Add(1))
		return err
	}
	return fault.Disk("executor.Clean", f.dir, os.RemoveAll(f.dir))
}

// walk tells of every file below dir what it takes on disk. What vanishes
// meanwhile takes nothing.
func walk(dir string, each func(file inode, size int64)) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			each(inode{uint64(s.Dev), s.Ino}, s.Blocks*512)
		}
		return nil
	})
}
