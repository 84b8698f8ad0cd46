// Package watch tells when the files of a project were saved.
//
//	fsnotify ──events──▶ settle ──one list of paths when it is quiet──▶ Changes
//
// Editors write a file in several steps or replace it by another, and a Git
// checkout touches thousands: what happens close together is one change. New
// folders are watched as they come.
package watch

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

// Quiet is how long nothing must happen before a change is told.
const Quiet = 150 * time.Millisecond

// Watcher watches folders with all that is below them. Close it.
type Watcher struct {
	fs      *fsnotify.Watcher
	roots   map[string]bool
	changes chan []string
	add     chan []string
	added   chan struct{}
	done    chan struct{}
	ended   chan struct{}
}

// New begins to watch folders. A folder that is not there is an error.
func New(roots ...string) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		fs: notify, roots: map[string]bool{}, changes: make(chan []string),
		add: make(chan []string), added: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, root := range roots {
		if err := w.watch(root); err != nil {
			_ = notify.Close()
			return nil, err
		}
	}
	events := make(chan []string)
	go w.listen(events)
	go settle(events, w.changes, Quiet)
	return w, nil
}

// Changes gives the files that were saved, sorted, each time that they settled.
// It is closed by Close.
func (w *Watcher) Changes() <-chan []string { return w.changes }

// Add watches more folders; what is not there, or watched already, is passed over.
func (w *Watcher) Add(roots ...string) {
	select {
	case w.add <- roots:
		<-w.added
	case <-w.ended:
	}
}

// Close ends it.
func (w *Watcher) Close() {
	close(w.done)
	<-w.ended
}

// watch adds a folder and those below it.
func (w *Watcher) watch(root string) error {
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

// tree watches a folder with those below it, and gives the files in them.
func (w *Watcher) tree(root string, files *[]string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil: // it went while we looked
			return nil
		case !d.IsDir():
			if files != nil && Matters(path) {
				*files = append(*files, path)
			}
			return nil
		case path != root && ignored(d.Name()):
			return filepath.SkipDir
		}
		return w.fs.Add(path)
	})
}

// ignored are folders that hold nothing that a person writes.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == "node_modules"
}

// Matters tells whether a compile may read a file: what the model, plug-ins and
// the project are written in, and all that lies in files/ and templates/.
func Matters(path string) bool {
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

// listen turns events of the system into paths.
func (w *Watcher) listen(events chan<- []string) {
	defer close(w.ended)
	defer close(events)
	defer func() { _ = w.fs.Close() }()
	for {
		select {
		case <-w.done:
			return
		case roots := <-w.add:
			for _, root := range roots {
				_ = w.watch(root) // what cannot be watched is compiled all the same
			}
			w.added <- struct{}{}
		case err := <-w.fs.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) { // something happened, nobody knows what
				events <- slices.Sorted(maps.Keys(w.roots))
			}
		case e := <-w.fs.Events:
			if paths := w.paths(e); len(paths) > 0 {
				events <- paths
			}
		}
	}
}

// paths are the files that an event concerns. A new folder is watched; what is
// in it already is new too.
func (w *Watcher) paths(e fsnotify.Event) []string {
	if e.Op == fsnotify.Chmod {
		return nil
	}
	if e.Has(fsnotify.Create) {
		if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
			var files []string
			if !ignored(filepath.Base(e.Name)) {
				_ = w.tree(e.Name, &files) // it may be gone again
			}
			return files
		}
	}
	if !Matters(e.Name) {
		return nil
	}
	return []string{e.Name}
}

// settle gathers paths and hands them on, sorted and each once, when none came
// for a while. What comes while nobody takes them is added.
func settle(in <-chan []string, out chan<- []string, quiet time.Duration) {
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
