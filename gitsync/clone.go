package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

// A module that a project downloads is an ordinary working copy, in a folder in
// which people work. So it holds its own objects and all branches and tags, it
// still works when the mirror is gone, and changes in it are never overwritten.

const opClone = "gitsync.Clone"

// Refs are the tags and the default branch of a repository.
type Refs struct {
	Head string            // commit of the default branch; empty when there is no default branch
	Main string            // name of the default branch
	Tags map[string]string // the commit of each tag
}

// Refs returns the tags and the default branch of a repository, as the mirror has
// them. It fetches first when refresh is set, or when there is no mirror.
func (s *Syncer) Refs(ctx context.Context, src Source, refresh bool) (Refs, error) {
	p, err := src.locate()
	if err != nil {
		return Refs{}, err
	}
	dir := s.mirrorDir(p)
	fetched := refresh || !s.mirrored(p)
	if fetched {
		got, err := s.share(ctx, p)
		if err != nil {
			return Refs{}, err
		}
		for name, why := range got.after.broken {
			if p.local == "" && (errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF)) {
				return Refs{}, p.brokenFault(opClone, name, why) // the connection may have broken off
			}
		}
	}
	refs, err := withMirror(dir, readTags)
	if needsRepair(err) {
		if err = s.repair(ctx, p, dir, func(m *mirror) error { _, err := readTags(m); return err }, err); err == nil {
			refs, err = withMirror(dir, readTags)
		}
	}
	if err != nil {
		return Refs{}, diskFault(opClone, "the mirror of "+p.shown+" cannot be read", err)
	}
	return refs, nil
}

func readTags(m *mirror) (Refs, error) {
	out := Refs{Tags: map[string]string{}}
	if full, ok := m.refs.find(""); ok {
		c, err := m.peel(m.refs.refs[full])
		if err != nil && !errors.Is(err, errNoCommit) {
			return out, err
		}
		if err == nil {
			out.Head, out.Main = c.Hash.String(), strings.TrimPrefix(full, "refs/heads/")
		}
	}
	for _, name := range m.refs.names() {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok {
			continue
		}
		c, err := m.peel(m.refs.refs[name])
		if errors.Is(err, errNoCommit) {
			continue
		}
		if err != nil {
			return out, err
		}
		out.Tags[tag] = c.Hash.String()
	}
	return out, nil
}

// maxRead is how many bytes of a file ReadFile returns at most.
const maxRead = 1 << 20

// ReadFile returns a file of a commit that was fetched, cut to 1 MiB. The error is
// fs.ErrNotExist when the commit has no such file.
func (s *Syncer) ReadFile(src Source, commit, path string) ([]byte, error) {
	p, err := src.locate()
	if err != nil {
		return nil, err
	}
	return withMirror(s.mirrorDir(p), func(m *mirror) ([]byte, error) {
		c, err := object.GetCommit(m.store, plumbing.NewHash(commit))
		if err != nil {
			return nil, err
		}
		f, err := c.File(path)
		if errors.Is(err, object.ErrFileNotFound) {
			return nil, fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		in, err := f.Reader()
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return io.ReadAll(io.LimitReader(in, maxRead))
	})
}

// Clone makes a working copy of a commit that was fetched, in a new folder. When it
// fails, there is no folder. The fault is a Conflict when something is in its place.
func (s *Syncer) Clone(ctx context.Context, src Source, commit, dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(opClone, fault.Conflict, dir+" is in the way").Hint("move it away")
	}
	p, err := src.locate()
	if err != nil {
		return err
	}
	what := p.shown + " cannot be cloned to " + dir
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return diskFault(opClone, what, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".new-*")
	if err != nil {
		return diskFault(opClone, what, err)
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "clone")
	at := Source{URL: src.URL, Branch: commit, Credentials: src.Credentials, MaxFile: src.MaxFile}
	if _, err := s.Checkout(ctx, at, commit, fresh); err != nil {
		return err
	}
	err = errors.Join(s.adopt(ctx, p, fresh), s.packRefs(p, fresh))
	if err != nil {
		return diskFault(opClone, what, err)
	}
	if err := os.Remove(filepath.Join(fresh, ".git", "objects", "info", "alternates")); err != nil {
		return diskFault(opClone, what, err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return diskFault(opClone, what, err)
	}
	return nil
}

// adopt puts all objects of the mirror into a working copy. Objects never change,
// so their files are linked where the file system allows it.
func (s *Syncer) adopt(ctx context.Context, p place, dir string) error {
	unlock, err := lockMirror(ctx, s.mirrorDir(p)) // so that no pack disappears while we walk
	if err != nil {
		return err
	}
	defer unlock()
	objects := filepath.Join(s.mirrorDir(p), "objects")
	own := filepath.Join(dir, ".git", "objects")
	return filepath.WalkDir(objects, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(objects, path)
		if err != nil || rel == "." || strings.HasPrefix(rel, "info") {
			return err
		}
		to := filepath.Join(own, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular() || strings.Contains(d.Name(), "tmp"):
			return nil
		}
		if err := os.Link(path, to); err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
		return copyFile(ctx, path, to)
	})
}

// packRefs writes the tags of the mirror, and its branches as those of the remote.
func (s *Syncer) packRefs(p place, dir string) error {
	set, err := readRefs(s.mirrorDir(p))
	if err != nil {
		return err
	}
	var lines []string
	for _, name := range set.names() {
		full := name
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			full = "refs/remotes/origin/" + branch
		}
		lines = append(lines, full+"\x00"+set.refs[name].String())
	}
	slices.Sort(lines)
	text := refsHeader
	for _, line := range lines {
		name, hash, _ := strings.Cut(line, "\x00")
		text += hash + " " + name + "\n"
	}
	return replaceFile(filepath.Join(dir, ".git", "packed-refs"), []byte(text))
}

// Switch checks out another commit, which was fetched, in a working copy that Clone
// or git made. The fault is a Conflict when that would lose changed files, or commits
// that only this working copy has.
func (s *Syncer) Switch(ctx context.Context, src Source, commit, dir string) error {
	p, err := src.locate()
	if err != nil {
		return err
	}
	repository, err := git.PlainOpen(dir)
	if err != nil {
		return fault.Wrap(opClone, fault.Conflict, err).Say(dir + " is no Git working copy").
			Hint("move it away to have it downloaded, or bring it to the version that is wanted yourself")
	}
	head, err := repository.Head()
	if err != nil {
		return fault.Wrap(opClone, fault.Conflict, err).Say(dir + " has no commit")
	}
	if head.Hash().String() == commit {
		return nil
	}
	known, err := withMirror(s.mirrorDir(p), func(m *mirror) (bool, error) {
		to, err := m.peel(plumbing.NewHash(commit))
		if err != nil {
			return false, err
		}
		// It returns a fault for a commit that is not safe to check out.
		content, err := m.readContent(ctx, &s.trees, to, s.kept)
		if err != nil {
			return false, err
		}
		for _, f := range content.files {
			if err := m.weigh(f, p, commit); err != nil {
				return false, err
			}
		}
		return m.has(head.Hash()), nil
	})
	if err != nil {
		return diskFault(opClone, "the mirror of "+p.shown+" cannot be read", err)
	}
	if !known {
		return fault.New(opClone, fault.Conflict, fmt.Sprintf("%s has commits that %s has not", dir, p.shown)).
			Hint("push them, or check the wanted version out yourself")
	}
	if err := s.adopt(ctx, p, dir); err != nil {
		return diskFault(opClone, dir+" cannot be brought to "+short(commit), err)
	}
	if repository, err = git.PlainOpen(dir); err != nil { // opened again, so that it finds the new objects
		return diskFault(opClone, dir+" cannot be read", err)
	}
	to, err := repository.CommitObject(plumbing.NewHash(commit))
	if err != nil {
		return diskFault(opClone, dir+" cannot be brought to "+short(commit), err)
	}
	tree, err := repository.Worktree()
	if err != nil {
		return diskFault(opClone, dir+" cannot be read", err)
	}
	if err := unchanged(tree, to, dir); err != nil {
		return err
	}
	if err := tree.Checkout(&git.CheckoutOptions{Hash: to.Hash}); err != nil {
		return diskFault(opClone, dir+" cannot be brought to "+short(commit), err)
	}
	return nil
}

// unchanged returns a fault that names a change which a checkout would lose.
func unchanged(tree *git.Worktree, to *object.Commit, dir string) error {
	status, err := tree.StatusWithOptions(git.StatusOptions{Strategy: git.Preload})
	if err != nil {
		return diskFault(opClone, dir+" cannot be compared with its commit", err)
	}
	for path, one := range status {
		if one.Worktree == git.Untracked {
			if _, err := to.File(path); errors.Is(err, object.ErrFileNotFound) {
				continue
			}
		} else if one.Worktree == git.Unmodified && one.Staging == git.Unmodified {
			continue
		}
		return fault.New(opClone, fault.Conflict,
			fmt.Sprintf("%s has changes that are not committed: %s", dir, printable(path))).
			Hint("commit them, or undo them with git restore")
	}
	return nil
}
