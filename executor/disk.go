package executor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/pyenv"
	"ordain.dev/ordain/layout"
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

// keepWithin removes folders until all together take at most DiskMax: those
// unused longest first, those in use never. Files are counted as the disk has
// them: once, also when several virtual environments link to them.
func (m *Manager) keepWithin(ctx context.Context, used map[string]bool) error {
	paths := m.c.Layout.Environment(m.c.Environment)
	sizes, names := map[inode]int64{}, map[inode]int{}
	var folder []kept
	for _, dir := range folders(paths.Venvs()) {
		folder = append(folder, kept{dir: dir, venv: true, used: pyenv.LastUsed(dir)})
	}
	for _, dir := range folders(paths.Codes()) {
		if info, err := os.Stat(dir); err == nil {
			folder = append(folder, kept{dir: dir, used: info.ModTime()})
		}
	}
	var total int64
	for i := range folder {
		folder[i].in = map[inode]bool{}
		walk(folder[i].dir, func(file inode, size int64) {
			if folder[i].in[file] {
				return
			}
			folder[i].in[file] = true
			if names[file]++; names[file] == 1 {
				sizes[file], total = size, total+size
			}
		})
	}
	slices.SortFunc(folder, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, f := range folder {
		if total <= int64(m.c.DiskMax) {
			return nil
		}
		if used[f.dir] {
			continue
		}
		if err := m.remove(ctx, f); err != nil {
			return err
		}
		before := total
		for file := range f.in {
			if names[file]--; names[file] == 0 {
				total -= sizes[file]
			}
		}
		m.c.Logger.Info("removed to stay within [agent] executor-disk-max", "path", f.dir, "bytes", before-total)
	}
	if total > int64(m.c.DiskMax) {
		m.c.Logger.Warn("what executors use is larger than [agent] executor-disk-max", "bytes", total, "limit", m.c.DiskMax)
	}
	return nil
}

func (m *Manager) remove(ctx context.Context, f kept) error {
	if f.venv {
		_, err := m.c.Maker.RemoveUnused(ctx, f.dir, f.used.Add(1))
		return err
	}
	return layout.Explain("executor.Clean", f.dir, os.RemoveAll(f.dir))
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
