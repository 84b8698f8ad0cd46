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

// Every fetch that brings something adds a pack to a mirror. When there are
// many they are made into few, which takes as long as what is new is large.
// What a branch left behind, by a rewrite or by its end, and what was fetched
// for a pull request is noted with the time, and is thrown away once that is
// long ago: until then people look at it, deploy it, or push it again. What an
// environment uses is never thrown away.

// compact makes few packs of many. The fetch is done already: if this fails,
// the next one tries again.
func (s *Syncer) compact(ctx context.Context, m *mirror) {
	if !m.store.Crowded() {
		return
	}
	if err := m.store.Compact(ctx); err != nil {
		s.cfg.Logger.Warn("the packs of a mirror could not be made into one", "dir", m.dir, "error", err)
	}
}

// retiredFile lists commits that no reference of the mirror names any more, or
// ever did, with the time when that was noted.
const retiredFile = "ordain-retired"

// retired reads the list. What is no line of it was cut off: then it is as if
// that had been noted now.
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

func (m *mirror) setRetired(list map[plumbing.Hash]time.Time) error {
	var text strings.Builder
	for _, h := range slices.SortedFunc(maps.Keys(list), func(a, b plumbing.Hash) int { return list[a].Compare(list[b]) }) {
		fmt.Fprintf(&text, "%s %d\n", h, list[h].Unix())
	}
	return writeFile(filepath.Join(m.dir, retiredFile), []byte(text.String()))
}

// retire notes commits that are to be kept for a while though no reference names them.
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

// leftBehind finds what references named whose branches were rewritten or are
// gone. Of tags, nothing tells whether one builds on the other.
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

// upkeep tidies one mirror up, unless it is in use: what a killed fetch left,
// many packs, and what was left behind before a time, but for commits in use.
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
		return nil // the next fetch makes it anew
	}
	return err
}

// prune throws away what was left behind before a time and what nothing else
// needs. Commits in use stay as if they were left behind now: what is deployed is
// compared with, gone back to, and reverted, whatever became of its branch.
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
