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

// Change is one file as a revert, or a Write, leaves it.
type Change struct {
	Path       string // relative to the top of the repository, with slashes
	Content    []byte // the whole file; nil when it is Gone
	Executable bool
	Chmod      bool   // Executable is not what the branch has now
	Gone       bool   // the file is removed
	Was        string // hash of the blob that the branch has now; empty when it has no such file
}

// maxRevert is how many files a revert changes at most.
const maxRevert = 500

// Revert computes what reverting a commit changes in the source's branch, which
// it fetches first. It returns the commit that the branch points to now, and the
// changed files sorted by path; it writes nothing. The fault is a Conflict when
// later commits touched the same lines, or when the branch does not contain the
// commit.
func (s *Syncer) Revert(ctx context.Context, src Source, commit string) (tip string, changes []Change, err error) {
	if !plumbing.IsHash(commit) {
		return "", nil, fault.New(opRevert, fault.Invalid,
			fmt.Sprintf("%q is not a full commit hash", printable(commit)))
	}
	p, err := src.locate()
	if err != nil {
		return "", nil, err
	}
	rev, _, err := s.Fetch(ctx, src)
	if err != nil {
		return "", nil, err
	}
	changes, err = withMirror(s.mirrorDir(p), func(m *mirror) ([]Change, error) {
		return m.revert(ctx, plumbing.NewHash(rev.Commit), plumbing.NewHash(commit))
	})
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opRevert, "commit "+short(commit)+" cannot be taken back", err)
	}
	return rev.Commit, changes, err
}

// revert merges the state before a commit into the branch, with the commit as the common base.
func (m *mirror) revert(ctx context.Context, tip, commit plumbing.Hash) ([]Change, error) {
	bad, err := object.GetCommit(m.store, commit)
	if err != nil {
		return nil, fault.New(opRevert, fault.NotFound, "commit "+short(commit.String())+" is not in the repository")
	}
	now, err := m.peel(tip)
	if err != nil {
		return nil, err
	}
	if has, err := bad.IsAncestor(now); err != nil || !has {
		return nil, fault.New(opRevert, fault.Conflict,
			"the branch does not have commit "+short(commit.String())+" any more")
	}
	if len(bad.ParentHashes) == 0 {
		return nil, fault.New(opRevert, fault.Conflict, "commit "+short(commit.String())+" is the first one")
	}
	before, err := m.peel(bad.ParentHashes[0]) // for a merge, this is the branch that was merged into
	if err != nil {
		return nil, err
	}
	t := &treeMerge{ctx: ctx, m: m}
	tree, err := t.trees(bad.TreeHash, now.TreeHash, before.TreeHash, "", 0)
	if err != nil {
		return nil, err
	}
	if len(t.conflicts) > 0 {
		return nil, fault.New(opRevert, fault.Conflict,
			fmt.Sprintf("commit %s cannot be taken back by itself: %s", short(commit.String()),
				enumerate(t.conflicts, 10))).
			Hint("make the revert by hand: git revert " + short(commit.String()))
	}
	return m.differences(ctx, now.TreeHash, tree)
}

// differences returns the files that differ in the second tree.
func (m *mirror) differences(ctx context.Context, from, to plumbing.Hash) ([]Change, error) {
	was, err := m.flat(ctx, from)
	if err != nil {
		return nil, err
	}
	is, err := m.flat(ctx, to)
	if err != nil {
		return nil, err
	}
	var out []Change
	for path, e := range is {
		old, had := was[path]
		if had && sameEntry(old, e) {
			continue
		}
		if e.Mode != filemode.Regular && e.Mode != filemode.Executable {
			return nil, fault.New(opRevert, fault.Conflict, fmt.Sprintf("%q is not a plain file", printable(path))).
				Hint("make the revert by hand with git")
		}
		text, err := m.read(e.Hash, mergeLimit)
		if err != nil {
			return nil, err
		}
		c := Change{Path: path, Content: text, Executable: e.Mode == filemode.Executable}
		c.Chmod = c.Executable != (had && old.Mode == filemode.Executable)
		if had {
			c.Was = old.Hash.String()
		}
		out = append(out, c)
	}
	for path, old := range was {
		if _, still := is[path]; !still {
			out = append(out, Change{Path: path, Gone: true, Was: old.Hash.String()})
		}
	}
	switch {
	case len(out) == 0:
		return nil, fault.New(opRevert, fault.Conflict, "the branch does not have these changes")
	case len(out) > maxRevert:
		return nil, fault.New(opRevert, fault.Conflict,
			fmt.Sprintf("it changes %d files, more than %d", len(out), maxRevert)).
			Hint("make the revert by hand with git")
	}
	slices.SortFunc(out, func(a, b Change) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return out, nil
}

// flat returns all files of a tree by path.
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
