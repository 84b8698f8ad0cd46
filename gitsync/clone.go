package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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
	at := Source{URL: src.URL, Branch: commit, Credentials: src.Credentials, Trust: src.Trust, MaxFile: src.MaxFile}
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
	var before, after converted
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
		if !m.has(head.Hash()) {
			return false, nil
		}
		if after, err = m.convertAll(content); err != nil {
			return false, err
		}
		now, err := m.peel(head.Hash())
		if err != nil {
			return false, err
		}
		if content, err = m.readContent(ctx, &s.trees, now, s.kept); err != nil {
			return false, err
		}
		before, err = m.convertAll(content)
		return true, err
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return diskFault(opClone, dir+" cannot be read", err)
	}
	defer root.Close()
	if err := unchanged(tree, to, dir, func(path string) bool { return before.is(root, path) }); err != nil {
		return err
	}
	// go-git takes converted files for changed ones, and converts none itself.
	if err = before.write(root, false); err == nil {
		if err = tree.Checkout(&git.CheckoutOptions{Hash: to.Hash}); err == nil {
			if err = after.write(root, true); err == nil {
				err = refresh(root, repository, before, after)
			}
		} else {
			err = errors.Join(err, before.write(root, true))
		}
	}
	if err != nil {
		return diskFault(opClone, dir+" cannot be brought to "+short(commit), err)
	}
	return nil
}

// converted are the files of a commit that its .gitattributes changes on the disk, by path.
type converted map[string]struct{ plain, onDisk []byte }

// convertAll converts the files of a commit that are to be.
func (m *mirror) convertAll(c *content) (converted, error) {
	all := converted{}
	for _, f := range c.files {
		if f.conversion == (conversion{}) {
			continue
		}
		text, err := m.read(f.hash, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		if onDisk, _ := f.conversion.apply(text, f.hash.String()); !bytes.Equal(text, onDisk) {
			all[f.path] = struct{ plain, onDisk []byte }{text, onDisk}
		}
	}
	return all, nil
}

// is reports whether a file in a working copy is as its conversion left it.
func (c converted) is(root *os.Root, path string) bool {
	one, ok := c[path]
	if !ok {
		return false
	}
	text, err := root.ReadFile(path)
	return err == nil && bytes.Equal(text, one.onDisk)
}

// write writes the files as they are on the disk, or as they are in the commit.
func (c converted) write(root *os.Root, onDisk bool) error {
	for path, one := range c {
		text := one.plain
		if onDisk {
			text = one.onDisk
		}
		if err := root.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// refresh writes the sizes and times of files that were converted, or are, into the
// index: git takes a file of another size for a changed one.
func refresh(root *os.Root, repository *git.Repository, before, after converted) error {
	if len(before)+len(after) == 0 {
		return nil
	}
	index, err := repository.Storer.Index()
	if err != nil {
		return err
	}
	for _, e := range index.Entries {
		_, was := before[e.Name]
		if _, is := after[e.Name]; !was && !is {
			continue
		}
		info, err := root.Lstat(e.Name)
		if err != nil {
			return err
		}
		e.Size, e.ModifiedAt = uint32(info.Size()), info.ModTime()
	}
	return repository.Storer.SetIndex(index)
}

// unchanged returns a fault that names a change which a checkout would lose. Files that
// .gitattributes converted are no changes.
func unchanged(tree *git.Worktree, to *object.Commit, dir string, converted func(path string) bool) error {
	status, err := tree.StatusWithOptions(git.StatusOptions{Strategy: git.Preload})
	if err != nil {
		return diskFault(opClone, dir+" cannot be compared with its commit", err)
	}
	for path, one := range status {
		if one.Worktree == git.Untracked {
			if _, err := to.File(path); errors.Is(err, object.ErrFileNotFound) {
				continue
			}
		} else if one.Staging == git.Unmodified && (one.Worktree == git.Unmodified || converted(path)) {
			continue
		}
		return fault.New(opClone, fault.Conflict,
			fmt.Sprintf("%s has changes that are not committed: %s", dir, printable(path))).
			Hint("commit them, or undo them with git restore")
	}
	return nil
}
