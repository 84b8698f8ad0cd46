package gitsync

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

const opRevert = "gitsync.Revert"

// FileChange is one file as a revert wants it.
type FileChange struct {
	Path       string
	Content    []byte
	Executable bool
	Chmod      bool // it is executable now and is not to be, or the other way round
	Gone       bool
	Was        string // hash of the blob that the branch has now; empty: it has none
}

// maxRevert bounds how many files a revert touches.
const maxRevert = 500

// Revert gives what taking a commit back changes in a branch, and the commit
// that the branch has now. Conflict when what came later touched the same
// lines, or the branch does not have the commit; nothing is written anywhere.
func (s *Syncer) Revert(ctx context.Context, src Source, commit string) (tip string, changes []FileChange, err error) {
	if !plumbing.IsHash(commit) {
		return "", nil, fault.New(
			opRevert,
			fault.Invalid,
			fmt.Sprintf("%q is not a full commit hash", printable(commit)),
		)
	}
	p, err := src.locate()
	if err != nil {
		return "", nil, err
	}
	rev, _, err := s.Fetch(ctx, src)
	if err != nil {
		return "", nil, err
	}
	changes, err = withMirror(s.mirrorDir(p), func(m *mirror) ([]FileChange, error) {
		return m.revert(ctx, plumbing.NewHash(rev.Commit), plumbing.NewHash(commit))
	})
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opRevert, "commit "+short(commit)+" cannot be taken back", err)
	}
	return rev.Commit, changes, err
}

// revert merges what was before a commit into the branch, as if it came from the commit.
func (m *mirror) revert(ctx context.Context, tip, commit plumbing.Hash) ([]FileChange, error) {
	bad, err := object.GetCommit(m.store, commit)
	if err != nil {
		return nil, fault.New(opRevert, fault.NotFound, "commit "+short(commit.String())+" is not in the repository")
	}
	now, err := m.peel(tip)
	if err != nil {
		return nil, err
	}
	if has, err := bad.IsAncestor(now); err != nil || !has {
		return nil, fault.New(
			opRevert,
			fault.Conflict,
			"the branch does not have commit "+short(commit.String())+" any more",
		)
	}
	if len(bad.ParentHashes) == 0 {
		return nil, fault.New(opRevert, fault.Conflict, "commit "+short(commit.String())+" is the first one")
	}
	before, err := m.peel(bad.ParentHashes[0]) // of a merge: the branch that it went to
	if err != nil {
		return nil, err
	}
	t := &treeMerge{ctx: ctx, m: m}
	tree, err := t.trees(bad.TreeHash, now.TreeHash, before.TreeHash, "", 0)
	if err != nil {
		return nil, err
	}
	if len(t.conflicts) > 0 {
		return nil, fault.New(opRevert, fault.Conflict, fmt.Sprintf("commit %s cannot be taken back by itself: %s", short(commit.String()), enumerate(t.conflicts, 10))).
			Hint("make the revert by hand: git revert " + short(commit.String()))
	}
	return m.differences(ctx, now.TreeHash, tree)
}

// differences lists the files that are others in the second tree.
func (m *mirror) differences(ctx context.Context, from, to plumbing.Hash) ([]FileChange, error) {
	was, err := m.flat(ctx, from)
	if err != nil {
		return nil, err
	}
	is, err := m.flat(ctx, to)
	if err != nil {
		return nil, err
	}
	var out []FileChange
	for path, e := range is {
		old, had := was[path]
		if had && sameEntry(old, e) {
			continue
		}
		if e.Mode != filemode.Regular && e.Mode != filemode.Executable {
			return nil, fault.New(opRevert, fault.Conflict, fmt.Sprintf("%q is no plain file", printable(path))).
				Hint("make the revert by hand with git")
		}
		text, err := m.read(e.Hash, mergeLimit)
		if err != nil {
			return nil, err
		}
		c := FileChange{Path: path, Content: text, Executable: e.Mode == filemode.Executable}
		c.Chmod = c.Executable != (had && old.Mode == filemode.Executable)
		if had {
			c.Was = old.Hash.String()
		}
		out = append(out, c)
	}
	for path, old := range was {
		if _, still := is[path]; !still {
			out = append(out, FileChange{Path: path, Gone: true, Was: old.Hash.String()})
		}
	}
	switch {
	case len(out) == 0:
		return nil, fault.New(opRevert, fault.Conflict, "the branch is without these changes already")
	case len(out) > maxRevert:
		return nil, fault.New(opRevert, fault.Conflict, fmt.Sprintf("it touches %d files, more than %d", len(out), maxRevert)).
			Hint("make the revert by hand with git")
	}
	slices.SortFunc(out, func(a, b FileChange) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return out, nil
}

// flat lists the files of a tree by path.
func (m *mirror) flat(ctx context.Context, h plumbing.Hash) (map[string]object.TreeEntry, error) {
	c, err := m.readContent(ctx, &treeCache{}, &object.Commit{Hash: h, TreeHash: h}, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	out := make(map[string]object.TreeEntry, len(c.files))
	for _, f := range c.files {
		out[f.path] = object.TreeEntry{Mode: f.mode, Hash: f.hash}
	}
	return out, nil
}
