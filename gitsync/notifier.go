package gitsync

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// notifier pokes sources when the branches of their local repositories change on the
// disk. There is one for all sources, because the system allows only a few.
type notifier struct {
	logger *slog.Logger
	fs     *fsnotify.Watcher

	mu sync.Mutex
	// dirs holds, for each watched folder, the sources with the one name in it that matters to
	// them; empty: all do.
	dirs map[string]map[*watched]string
}

// newNotifier starts a notifier, which ends with ctx.
func newNotifier(ctx context.Context, logger *slog.Logger, done *sync.WaitGroup) (*notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &notifier{logger: logger, fs: w, dirs: map[string]map[*watched]string{}}
	done.Go(func() {
		defer w.Close()
		n.listen(ctx)
	})
	return n, nil
}

// listen handles events until ctx ends.
func (n *notifier) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-n.fs.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod || !mayMoveBranch(e.Name) {
				continue
			}
			n.poke(filepath.Dir(e.Name), filepath.Base(e.Name))
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				n.poke(e.Name, "") // it may be a watched folder that is gone
			}
		case err, ok := <-n.fs.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				n.logger.Warn("an error while watching local repositories", "error", err)
			}
			n.poke("", "") // events were lost
		}
	}
}

// mayMoveBranch reports whether a change of this path can mean that a branch moved.
// Much else changes in a repository all the time.
func mayMoveBranch(path string) bool {
	name := filepath.Base(path)
	if strings.HasSuffix(name, ".lock") {
		return false
	}
	if strings.Contains(path, string(filepath.Separator)+"refs"+string(filepath.Separator)) {
		return true
	}
	switch name {
	case "HEAD", "packed-refs", "refs", "heads", "tags", "objects": // with objects, a folder becomes a repository
		return true
	}
	return strings.HasSuffix(name, ".git") // a repository was created or removed
}

// poke pokes the sources for which a folder is watched and to which a change of this name in
// it matters. An empty name stands for any change, an empty folder for all folders.
func (n *notifier) poke(dir, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if dir == "" {
		for _, sources := range n.dirs {
			pokeAll(sources, "")
		}
		return
	}
	pokeAll(n.dirs[dir], name)
}

func pokeAll(sources map[*watched]string, name string) {
	for s, only := range sources {
		if name == "" || only == "" || only == name {
			s.poke(poke{kind: KindWatch})
		}
	}
}

// arm watches the folders of a repository that hold references. It is called before
// every look, because folders may have been added or the repository created again.
func (n *notifier) arm(s *watched, path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.disarmed {
		return
	}
	// There is no event for a folder that is created before its parent is watched. So
	// the folders are listed again as long as there are new ones, up to four times.
	known := 0
	for range 4 {
		dirs := foldersOf(path)
		for _, dir := range dirs {
			only := ""
			if dir == filepath.Dir(path) { // may hold a thousand other repositories
				only = filepath.Base(path)
			}
			n.add(s, dir, only)
		}
		if len(dirs) <= known {
			return
		}
		known = len(dirs)
	}
}

// foldersOf lists the folders in which something changes when a branch moves. If
// there is no repository yet, these are the folders in which it would be created.
func foldersOf(path string) []string {
	dirs := []string{filepath.Dir(path)} // changes when the repository is created or replaced
	dot, common, err := gitDirs(path)
	if err != nil {
		return append(dirs, path, filepath.Join(path, ".git"))
	}
	dirs = append(dirs, dot)
	if common != dot {
		dirs = append(dirs, common)
	}
	_ = filepath.WalkDir(filepath.Join(common, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a folder may be removed while we walk
		}
		if d.Name() == "remotes" {
			return fs.SkipDir
		}
		dirs = append(dirs, p)
		return nil
	})
	return dirs
}

// add watches a folder for a source, to which changes of only matter there if it is not empty;
// n.mu is held.
func (n *notifier) add(s *watched, dir, only string) {
	if err := n.fs.Add(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fsnotify.ErrClosed) {
			n.logger.Warn("a folder of a local repository cannot be watched; the repository is only polled",
				"dir", dir, "error", err)
		}
		return
	}
	if n.dirs[dir] == nil {
		n.dirs[dir] = map[*watched]string{}
	}
	n.dirs[dir][s] = only
}

// disarm stops watching for a source, for good.
func (n *notifier) disarm(s *watched) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.disarmed = true
	for dir, sources := range n.dirs {
		delete(sources, s)
		if len(sources) == 0 {
			delete(n.dirs, dir)
			_ = n.fs.Remove(dir)
		}
	}
}
