package gitsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/provenance"
)

const opBlame = "gitsync.Blame"

// Blame returns who wrote each line of a file, as it was in a commit that was
// fetched before. It reads the history of the file, so ctx should have a deadline.
// The fault is NotFound when the mirror has no such commit, or the commit has no
// such file.
func (s *Syncer) Blame(ctx context.Context, src Source, commit, path string) (provenance.Blame, error) {
	p, err := src.locate()
	if err != nil {
		return nil, err
	}
	if !plumbing.IsHash(commit) {
		return nil, fault.New(opBlame, fault.Invalid, fmt.Sprintf("%q is not a full commit hash", printable(commit)))
	}
	lines, err := withMirror(s.mirrorDir(p), func(m *mirror) (provenance.Blame, error) {
		return blame(ctx, m.store, plumbing.NewHash(commit), path)
	})
	if errors.Is(err, errNoMirror) || errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fault.New(opBlame, fault.NotFound,
			fmt.Sprintf("commit %s is not in the mirror of %s", short(commit), p.shown))
	}
	return lines, err
}

// BlameFile returns who wrote each line of a file in a working tree. Lines that are
// not committed are marked as such. The fault is NotFound when the file is in no
// repository.
func BlameFile(ctx context.Context, path string) (provenance.Blame, error) {
	none := func(err error) error { return fault.Wrap(opBlame, fault.NotFound, err) }
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, none(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, none(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, none(err)
	}
	repo, err := git.PlainOpenWithOptions(filepath.Dir(path),
		&git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if err != nil {
		return nil, none(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return nil, none(err)
	}
	root, err := filepath.EvalSymlinks(tree.Filesystem.Root())
	if err != nil {
		return nil, none(err)
	}
	inside, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, fault.New(opBlame, fault.NotFound, path+" lies outside of the repository")
	}
	inside = filepath.ToSlash(inside)
	head, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) { // nothing has been committed yet
		return uncommitted("", string(text), nil), nil
	}
	if err != nil {
		return nil, none(err)
	}
	committed, err := blame(ctx, repo.Storer, head.Hash(), inside)
	if errors.Is(err, object.ErrFileNotFound) || fault.Is(err, fault.NotFound) {
		return uncommitted("", string(text), nil), nil
	}
	if err != nil {
		return nil, err
	}
	commit, err := repo.CommitObject(head.Hash())
	if err != nil {
		return nil, none(err)
	}
	file, err := commit.File(inside)
	if err != nil {
		return nil, none(err)
	}
	before, err := file.Contents()
	if err != nil {
		return nil, none(err)
	}
	now := string(text)
	if !strings.Contains(before, "\r\n") { // .gitattributes may have changed the line breaks
		now = strings.ReplaceAll(now, "\r\n", "\n")
	}
	return uncommitted(before, now, committed), nil
}

// uncommitted carries the commits of lines over to a changed text.
func uncommitted(before, after string, committed provenance.Blame) provenance.Blame {
	var out provenance.Blame
	old := 0
	for _, d := range diff.Do(before, after) {
		n := strings.Count(d.Text, "\n")
		if !strings.HasSuffix(d.Text, "\n") && d.Text != "" {
			n++
		}
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			old += n
		case diffmatchpatch.DiffEqual:
			for range n {
				if old < len(committed) {
					out = append(out, committed[old])
				}
				old++
			}
		case diffmatchpatch.DiffInsert:
			for range n {
				out = append(out, &provenance.Commit{Uncommitted: true})
			}
		}
	}
	return out
}

// blame finds the commit of each line by reading the history of the file.
func blame(
	ctx context.Context,
	objects storer.EncodedObjectStorer,
	commit plumbing.Hash,
	path string,
) (lines provenance.Blame, err error) {
	defer func() {
		if cause := recover(); cause != nil { // the objects come from strangers, and go-git may panic on them
			lines, err = nil, fault.New(opBlame, fault.Invalid,
				fmt.Sprintf("the history of %s cannot be read: %v", printable(path), cause))
		}
	}()
	c, err := object.GetCommit(interruptible{objects, ctx}, commit)
	if err != nil {
		return nil, err
	}
	result, err := git.Blame(c, path)
	if errors.Is(err, object.ErrFileNotFound) {
		return nil, fault.Wrap(opBlame, fault.NotFound, err)
	}
	if err != nil {
		return nil, err
	}
	known := map[plumbing.Hash]*provenance.Commit{}
	for _, line := range result.Lines {
		one := known[line.Hash]
		if one == nil {
			one = describeCommit(objects, line.Hash)
			known[line.Hash] = one
		}
		lines = append(lines, one)
	}
	return lines, nil
}

// describeCommit describes a commit in texts that are safe to show.
func describeCommit(objects storer.EncodedObjectStorer, hash plumbing.Hash) *provenance.Commit {
	out := &provenance.Commit{ID: hash.String()}
	if c, err := object.GetCommit(objects, hash); err == nil {
		subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		out.Author, out.Email = provenance.Clean(c.Author.Name), provenance.Clean(c.Author.Email)
		out.Subject = provenance.Clean(subject)
		out.Date = c.Author.When.UTC()
	}
	return out
}

// interruptible ends a long walk through objects when its context ends.
type interruptible struct {
	storer.EncodedObjectStorer
	ctx context.Context
}

// EncodedObject implements storer.EncodedObjectStorer.
func (s interruptible) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	return s.EncodedObjectStorer.EncodedObject(t, h)
}
