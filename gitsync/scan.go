package gitsync

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// scanner looks at everything in a checkout, at several folders at a time. It lists
// every folder and looks at every file, because only that proves that the checkout
// is the commit and nothing else.
type scanner struct {
	w       *worktree
	ctx     context.Context
	workers chan struct{} // bounds the goroutines besides the first
	done    sync.WaitGroup

	mu     sync.Mutex
	remove []string
	there  map[string]bool
	err    error
}

// scan finds what does not belong to the commit, which of its folders exist, and
// which of its files are right.
func (w *worktree) scan(ctx context.Context) error {
	s := &scanner{
		w:       w,
		ctx:     ctx,
		workers: make(chan struct{}, min(runtime.GOMAXPROCS(0), 8)-1),
		there:   make(map[string]bool, len(w.content.dirs)),
	}
	s.folder("")
	s.done.Wait()
	slices.Sort(s.remove)
	w.remove, w.there = s.remove, s.there
	return s.err
}

// below scans a folder, in a goroutine of its own when a worker is free.
func (s *scanner) below(dir string) {
	select {
	case s.workers <- struct{}{}:
		s.done.Go(func() {
			defer func() { <-s.workers }()
			s.folder(dir)
		})
	default:
		s.folder(dir)
	}
}

// folder scans a folder.
func (s *scanner) folder(dir string) {
	entries, err := os.ReadDir(filepath.Join(s.w.dir, filepath.FromSlash(dir)))
	if err == nil {
		err = s.ctx.Err()
	}
	if err != nil {
		s.fail(err)
		return
	}
	for _, e := range entries {
		rel := e.Name()
		if dir != "" {
			rel = dir + "/" + rel
		} else if rel == ".git" || s.w.kept(rel) {
			continue
		}
		if e.IsDir() {
			if s.judge(rel, s.w.content.dirs[rel]) {
				s.below(rel)
			}
			continue
		}
		if err := s.file(rel, e); err != nil {
			s.fail(err)
			return
		}
	}
}

// file looks at everything that is not a folder.
func (s *scanner) file(rel string, e fs.DirEntry) error {
	i, ok := s.w.content.byPath[rel]
	if !ok || s.w.content.files[i].mode == filemode.Submodule {
		s.judge(rel, false)
		return nil
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	if f := s.w.content.files[i]; s.w.same(f, info) {
		s.w.fresh[i] = f.entry(info) // no other goroutine writes this element
	}
	return nil
}

// judge notes that a folder exists and stays, or that something is to be removed. It returns stays.
func (s *scanner) judge(rel string, stays bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stays {
		s.there[rel] = true
	} else {
		s.remove = append(s.remove, rel)
	}
	return stays
}

// fail keeps the first error.
func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// entry returns the index entry of a file that is in its place.
func (f file) entry(info fs.FileInfo) entry {
	e := entryOf(info)
	e.name, e.mode, e.hash = f.path, f.mode, f.hash
	return e
}
