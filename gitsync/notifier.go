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

// notifier pokes sources when the branches of their local repositories change
// on the disk. One serves all sources: the system has few to give.
type notifier struct {
	logger *slog.Logger
	fs     *fsnotify.Watcher

	mu   sync.Mutex
	dirs map[string]map[*watched]bool
}

// newNotifier makes one that lives until ctx ends.
func newNotifier(ctx context.Context, logger *slog.Logger, done *sync.WaitGroup) (*notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &notifier{logger: logger, fs: w, dirs: map[string]map[*watched]bool{}}
	done.Go(func() {
		defer w.Close()
		n.run(ctx)
	})
	return n, nil
}

func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-n.fs.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod || !tellsOfBranches(e.Name) {
				continue
			}
			n.poke(filepath.Dir(e.Name))
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				n.poke(e.Name) // a watched folder itself went away
			}
		case err, ok := <-n.fs.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				n.logger.Warn("watching local repositories", "error", err)
			}
			n.poke("") // something was missed
		}
	}
}

// tellsOfBranches leaves out what changes in a repository all the time and
// moves no branch.
func tellsOfBranches(path string) bool {
	name := filepath.Base(path)
	if strings.HasSuffix(name, ".lock") {
		return false
	}
	if strings.Contains(path, string(filepath.Separator)+"refs"+string(filepath.Separator)) {
		return true
	}
	switch name {
	case "HEAD", "packed-refs", "refs", "heads", "tags", "objects": // the last is what makes a folder a repository
		return true
	}
	return strings.HasSuffix(name, ".git") // a repository came or went
}

// poke looks at the sources that a folder concerns; "" concerns all.
func (n *notifier) poke(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for d, sources := range n.dirs {
		if dir != "" && d != dir {
			continue
		}
		for s := range sources {
			s.poke(poke{kind: KindWatch})
		}
	}
}

// arm watches the folders of a repository in which references live. It may be
// called again, when folders were added or the repository was made anew.
func (n *notifier) arm(s *watched, path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.disarmed {
		return
	}
	// A folder that is made before its parent is watched tells nobody, so they are
	// listed once more; and again as long as the list grows, within reason.
	known := 0
	for range 4 {
		dirs := foldersOf(path)
		for _, dir := range dirs {
			n.add(s, dir)
		}
		if len(dirs) <= known {
			return
		}
		known = len(dirs)
	}
}

// foldersOf lists the folders that tell that a branch moved. What is not yet a
// repository may be in the making: then its own folder tells when it goes on.
func foldersOf(path string) []string {
	dirs := []string{filepath.Dir(path)} // tells when a repository is made or replaced
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
			return nil // one that went away meanwhile is no matter
		}
		if d.Name() == "remotes" {
			return fs.SkipDir
		}
		dirs = append(dirs, p)
		return nil
	})
	return dirs
}

// add watches a folder for a source; n.mu is held.
func (n *notifier) add(s *watched, dir string) {
	if err := n.fs.Add(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fsnotify.ErrClosed) {
			n.logger.Warn(
				"a local repository is not watched, only looked at from time to time",
				"dir",
				dir,
				"error",
				err,
			)
		}
		return
	}
	if n.dirs[dir] == nil {
		n.dirs[dir] = map[*watched]bool{}
	}
	n.dirs[dir][s] = true
}

// disarm ends what arm began, for good.
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
