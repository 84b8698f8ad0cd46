package executor

import (
	"context"
	"os"
	"slices"
	"time"

	"ordain.dev/ordain/internal/diskuse"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
)

// folder is a virtual environment or code folder on disk.
type folder struct {
	dir   string
	venv  bool
	used  time.Time
	files map[diskuse.File]bool
}

// survey holds how much space the folders take. A file that several virtual
// environments link to counts once, as it does on the disk.
type survey struct {
	folders []folder
	sizes   map[diskuse.File]int64
	holders map[diskuse.File]int // how many folders hold the file
	total   int64
}

// survey measures every file of every folder.
func (m *Manager) survey() survey {
	paths := m.c.Layout.Environment(m.c.Environment)
	s := survey{sizes: map[diskuse.File]int64{}, holders: map[diskuse.File]int{}}
	for _, dir := range folders(paths.Venvs()) {
		s.folders = append(s.folders, folder{dir: dir, venv: true, used: venv.LastUsed(dir)})
	}
	for _, dir := range folders(paths.Codes()) {
		if info, err := os.Stat(dir); err == nil {
			s.folders = append(s.folders, folder{dir: dir, used: info.ModTime()})
		}
	}
	for i := range s.folders {
		files := map[diskuse.File]bool{}
		s.folders[i].files = files
		diskuse.Walk(s.folders[i].dir, func(file diskuse.File, size int64) {
			if files[file] {
				return
			}
			files[file] = true
			if s.holders[file]++; s.holders[file] == 1 {
				s.sizes[file], s.total = size, s.total+size
			}
		})
	}
	return s
}

// without subtracts a folder that was removed and returns how many bytes that freed.
func (s *survey) without(f folder) (freed int64) {
	for file := range f.files {
		if s.holders[file]--; s.holders[file] == 0 {
			freed += s.sizes[file]
		}
	}
	s.total -= freed
	return freed
}

// keepWithin removes unused folders, the least recently used first, until all
// together take at most DiskMax.
func (m *Manager) keepWithin(ctx context.Context, used map[string]bool) error {
	s := m.survey()
	slices.SortFunc(s.folders, func(a, b folder) int { return a.used.Compare(b.used) })
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
		m.c.Logger.Info("removed a folder to stay within [agent] executor-disk-max",
			"path", f.dir, "bytes", s.without(f))
	}
	if s.total > int64(m.c.DiskMax) {
		m.c.Logger.Warn(
			"the folders of executors are larger than [agent] executor-disk-max",
			"bytes", s.total, "limit", m.c.DiskMax,
		)
	}
	return nil
}

func (m *Manager) remove(ctx context.Context, f folder) error {
	if f.venv {
		_, err := m.c.Maker.RemoveUnused(ctx, f.dir, f.used.Add(1))
		return err
	}
	return fault.Disk("executor.Clean", f.dir, os.RemoveAll(f.dir))
}
