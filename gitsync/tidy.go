package gitsync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The lock file of a mirror lies beside it. Its modification time is the time at
// which the mirror was last used.

// lockMirror takes the lock that is needed to change a mirror, across processes.
func lockMirror(ctx context.Context, dir string) (unlock func(), err error) {
	unlock, err = lockFile(ctx, dir+".lock", os.O_RDWR|os.O_CREATE)
	if err == nil {
		markUsed(dir)
	}
	return unlock, err
}

// markUsed notes that a mirror is used now. It may fail: then the mirror may be removed
// too early, and is fetched again.
func markUsed(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir+".lock", now, now)
}

// Use names a source that is in use. Its Commits, full hashes, stay in the
// mirror even if no branch contains them any more.
type Use struct {
	Source  Source
	Commits []string
}

// Tidy removes the mirrors that belong to none of the sources in use and have
// not been used since the given time, together with what killed fetches left of
// them. From the other mirrors it removes the objects that branches left behind
// before that time (see upkeep), except for the commits in use. A mirror that is
// being fetched is left alone.
func (s *Syncer) Tidy(ctx context.Context, used []Use, since time.Time) error {
	keep := map[string][]string{}
	for _, u := range used {
		if p, err := u.Source.locate(); err == nil {
			dir := s.mirrorDir(p)
			keep[dir] = append(keep[dir], u.Commits...)
		}
	}
	entries, err := os.ReadDir(s.cfg.Mirrors)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	removed := 0
	defer func() {
		if removed > 0 {
			s.cfg.Logger.Info("removed mirrors that nothing uses any more", "mirrors", removed)
		}
	}()
	var failed []error
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		dir := filepath.Join(s.cfg.Mirrors, name)
		if !isLock || !strings.HasSuffix(name, ".git") {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		gone := false
		commits, inUse := keep[dir]
		if !inUse {
			gone, err = removeUnused(dir, since)
		}
		if gone {
			removed++
		} else if err == nil {
			err = s.upkeep(ctx, dir, commits, since)
		}
		if err != nil {
			failed, err = append(failed, err), nil
		}
	}
	return errors.Join(failed...)
}

// removeUnused removes a mirror under its lock, and then the lock file. Others who wait
// for the lock notice that the file is gone (see lockFile), and start over. It returns
// false if the mirror is locked, or was used since the given time.
func removeUnused(dir string, since time.Time) (bool, error) {
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if free, err := flock(lock, false); err != nil || !free {
		return false, err
	}
	// Nobody can start a fetch from here on.
	info, err := lock.Stat()
	if err != nil || !inPlace(lock, dir+".lock") || !info.ModTime().Before(since) {
		return false, err
	}
	// A rename, so that readers find the whole mirror or none.
	if err := os.Rename(dir, dir+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	left, err := filepath.Glob(dir + ".new-*")
	if err != nil {
		return false, err
	}
	for _, path := range append(left, dir+".old") {
		if err := os.RemoveAll(path); err != nil {
			return false, err
		}
	}
	return true, os.Remove(dir + ".lock")
}
