package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quietTime is how long no file may be saved before a change is reported.
const quietTime = 150 * time.Millisecond

// fileWatcher reports which files were saved in the folders that it watches and
// in all folders below them. Close it after use.
//
//	fsnotify ──events──▶ debounce ──one list of paths when it is quiet──▶ changes
//
// Editors write a file in several steps or replace it by another, and a Git
// checkout touches thousands of files: everything that happens close together is
// one change. New folders are watched as they appear.
type fileWatcher struct {
	fs      *fsnotify.Watcher
	roots   map[string]bool
	changes chan []string
	toAdd   chan []string
	added   chan struct{}
	done    chan struct{}
	ended   chan struct{}
}

// newFileWatcher begins to watch folders. It fails if one of them does not exist.
func newFileWatcher(roots ...string) (*fileWatcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &fileWatcher{
		fs: notify, roots: map[string]bool{}, changes: make(chan []string),
		toAdd: make(chan []string), added: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, root := range roots {
		if err := w.watch(root); err != nil {
			_ = notify.Close()
			return nil, err
		}
	}
	events := make(chan []string)
	go w.listen(events)
	go debounce(events, w.changes, quietTime)
	return w, nil
}

// add watches more folders. It ignores those that do not exist or are watched already.
func (w *fileWatcher) add(roots ...string) {
	select {
	case w.toAdd <- roots:
		<-w.added
	case <-w.ended:
	}
}

// close stops watching and closes changes.
func (w *fileWatcher) close() {
	close(w.done)
	<-w.ended
}

// watch watches a folder and those below it, unless it is watched already.
func (w *fileWatcher) watch(root string) error {
	root = filepath.Clean(root)
	if w.roots[root] {
		return nil
	}
	if err := w.tree(root, nil); err != nil {
		return err
	}
	w.roots[root] = true
	return nil
}

// tree watches a folder and those below it. Unless files is nil, it appends the
// files in them that a compile may read.
func (w *fileWatcher) tree(root string, files *[]string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil: // it was removed meanwhile
			return nil
		case !d.IsDir():
			if files != nil && compileReads(path) {
				*files = append(*files, path)
			}
			return nil
		case path != root && ignored(d.Name()):
			return filepath.SkipDir
		}
		return w.fs.Add(path)
	})
}

// ignored reports whether a folder of this name holds nothing that a person writes.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == "node_modules"
}

// compileReads reports whether a compile may read a file: the model, Python code,
// project files, and anything below a module's files and templates.
func compileReads(path string) bool {
	name := filepath.Base(path)
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return false
	}
	switch filepath.Ext(name) {
	case ".cf", ".py", ".yml", ".yaml", ".cfg", ".toml", ".j2", ".jinja", ".jinja2", ".tmpl":
		return true
	}
	if name == "requirements.txt" {
		return true
	}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if base := filepath.Base(dir); base == "files" || base == "templates" {
			return true
		}
	}
	return false
}

// listen turns the system's events into paths.
func (w *fileWatcher) listen(events chan<- []string) {
	defer close(w.ended)
	defer close(events)
	defer func() { _ = w.fs.Close() }()
	for {
		select {
		case <-w.done:
			return
		case roots := <-w.toAdd:
			for _, root := range roots {
				_ = w.watch(root) // a folder that cannot be watched is compiled nevertheless
			}
			w.added <- struct{}{}
		case err := <-w.fs.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) { // events were lost: anything may have changed
				events <- slices.Sorted(maps.Keys(w.roots))
			}
		case e := <-w.fs.Events:
			if paths := w.paths(e); len(paths) > 0 {
				events <- paths
			}
		}
	}
}

// paths returns the files that an event concerns. It watches a new folder; the
// files that are in it already are new too.
func (w *fileWatcher) paths(e fsnotify.Event) []string {
	if e.Op == fsnotify.Chmod {
		return nil
	}
	if e.Has(fsnotify.Create) {
		if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
			var files []string
			if !ignored(filepath.Base(e.Name)) {
				_ = w.tree(e.Name, &files) // it may have been removed again
			}
			return files
		}
	}
	if !compileReads(e.Name) {
		return nil
	}
	return []string{e.Name}
}

// debounce collects paths and passes them on, sorted and without duplicates, when
// none has come for a while. Paths that come before they are taken are added.
func debounce(in <-chan []string, out chan<- []string, quiet time.Duration) {
	defer close(out)
	pending := map[string]bool{}
	timer := time.NewTimer(quiet)
	timer.Stop()
	var batch []string
	var ready chan<- []string // nil while it is not quiet
	for {
		select {
		case paths, ok := <-in:
			if !ok {
				return
			}
			for _, p := range paths {
				pending[p] = true
			}
			ready = nil
			timer.Reset(quiet)
		case <-timer.C:
			batch, ready = slices.Sorted(maps.Keys(pending)), out
		case ready <- batch:
			clear(pending)
			ready = nil
		}
	}
}
