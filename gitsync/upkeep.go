package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Every fetch that brings something adds a pack to a mirror. When there are many
// packs, they are combined into few; the work is proportional to what is new.
//
// Commits that a branch left behind, because it was rewritten or deleted, and those
// that were fetched for a pull request are listed as retired, with the time. They are
// removed when that is long ago: until then people may look at them, deploy them or
// push them again. Commits that an environment uses are never removed.

// compact combines the packs of a mirror if there are many. If that fails, the next
// fetch tries again.
func (s *Syncer) compact(ctx context.Context, m *mirror) {
	if !m.store.Crowded() {
		return
	}
	if err := m.store.Compact(ctx); err != nil {
		s.cfg.Logger.Warn("the packs of a mirror could not be combined", "dir", m.dir, "error", err)
	}
}

// retiredFile lists the retired commits, with the time in seconds since 1970.
const retiredFile = "ordain-retired"

// retired reads the list. A line whose time is cut off counts as written now.
func (m *mirror) retired() (map[plumbing.Hash]time.Time, error) {
	text, err := os.ReadFile(filepath.Join(m.dir, retiredFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list := map[plumbing.Hash]time.Time{}
	for line := range strings.Lines(string(text)) {
		name, when, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseInt(when, 10, 64)
		switch {
		case !plumbing.IsHash(name):
		case err != nil:
			list[plumbing.NewHash(name)] = time.Now()
		default:
			list[plumbing.NewHash(name)] = time.Unix(seconds, 0)
		}
	}
	return list, nil
}

// setRetired writes the list.
func (m *mirror) setRetired(list map[plumbing.Hash]time.Time) error {
	var text strings.Builder
	for _, h := range slices.SortedFunc(
		maps.Keys(list), func(a, b plumbing.Hash) int { return list[a].Compare(list[b]) },
	) {
		fmt.Fprintf(&text, "%s %d\n", h, list[h].Unix())
	}
	return writeFile(filepath.Join(m.dir, retiredFile), []byte(text.String()))
}

// retire adds commits to the list.
func (m *mirror) retire(commits []plumbing.Hash) error {
	if len(commits) == 0 {
		return nil
	}
	list, err := m.retired()
	if err != nil {
		return err
	}
	for _, h := range commits {
		list[h] = time.Now()
	}
	return m.setRetired(list)
}

// leftBehind returns the commits of references that are gone or rewritten. A
// reference of which we do not know whether it was rewritten, such as a tag that moved,
// counts as rewritten.
func (m *mirror) leftBehind(to refSet, forced map[string]bool) []plumbing.Hash {
	var left []plumbing.Hash
	for _, name := range m.refs.names() {
		old := m.refs.refs[name]
		now, ok := to.refs[name]
		rewritten, looked := forced[name]
		if now != old && (!ok || !looked || rewritten) {
			left = append(left, old)
		}
	}
	return left
}

// upkeep cleans up one mirror, unless it is locked: it removes what a killed fetch
// left, combines packs, and removes retired commits that were listed before the given
// time and are not used.
func (s *Syncer) upkeep(ctx context.Context, dir string, used []string, since time.Time) error {
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if free, err := flock(lock, false); err != nil || !free {
		return err
	}
	_, err = withMirror(dir, func(m *mirror) (struct{}, error) {
		m.store.Sweep()
		s.compact(ctx, m)
		return struct{}{}, m.prune(ctx, used, since)
	})
	if errors.Is(err, errNoMirror) || errors.Is(err, errCorrupt) {
		return nil // the next fetch makes it again
	}
	return err
}

// prune removes retired commits that were listed before the given time, with
// everything that only they need. Commits in use are listed again with the time of
// now: people compare with, roll back to and revert what is deployed, whatever
// happened to its branch.
func (m *mirror) prune(ctx context.Context, used []string, since time.Time) error {
	list, err := m.retired()
	if err != nil {
		return err
	}
	before := len(list)
	maps.DeleteFunc(list, func(_ plumbing.Hash, noted time.Time) bool { return noted.Before(since) })
	if len(list) == before {
		return nil
	}
	for _, commit := range used {
		if h := plumbing.NewHash(commit); m.has(h) {
			list[h] = time.Now()
		}
	}
	roots := slices.Collect(maps.Keys(list))
	for _, h := range m.refs.refs {
		roots = append(roots, h)
	}
	cut, err := m.shallow()
	if err != nil {
		return err
	}
	ends := map[plumbing.Hash]bool{}
	for _, h := range cut {
		ends[h] = true
	}
	if _, err := m.store.Prune(ctx, roots, ends); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return m.setRetired(list)
}
