package gitsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

const opRead = "gitsync.Read"

// maxReadFile is the largest file, in bytes, that Read returns.
const maxReadFile = 4 << 20

// File is a file of a commit.
type File struct {
	Commit     string // full hash
	Path       string
	Content    []byte
	Executable bool
}

// Entry is what a folder of a commit holds under one name.
type Entry struct {
	Name string
	Kind EntryKind
}

// EntryKind says what an Entry is.
type EntryKind string

// The kinds of entries.
const (
	EntryFile      EntryKind = "file"
	EntryFolder    EntryKind = "folder"
	EntryLink      EntryKind = "link"      // a symbolic link; Read does not follow it
	EntrySubmodule EntryKind = "submodule" // another repository
)

// Listing is what a folder of a commit holds, sorted by name.
type Listing struct {
	Commit  string // full hash
	Entries []Entry
}

// Read returns a file as a commit has it. The commit is a full hash, which is fetched if the mirror lacks it; when it
// is empty, the branch is fetched, and its tip is read. The fault is NotFound when there is no such file or commit,
// and Conflict when something else is there, such as a link or a file that is too large.
func (s *Syncer) Read(ctx context.Context, src Source, commit, path string) (File, error) {
	if err := s.checkPath(opRead, "read", path); err != nil {
		return File{}, err
	}
	return readAt(ctx, s, src, commit, func(m *mirror, c *object.Commit) (File, error) {
		e, err := m.entryAt(c.TreeHash, path)
		if err != nil {
			return File{}, err
		}
		at := fmt.Sprintf("%q of commit %s", printable(path), short(c.Hash.String()))
		switch kindOf(e) {
		case EntryFile:
		case "":
			return File{}, fault.New(opRead, fault.NotFound, "commit "+short(c.Hash.String())+" has no file "+
				fmt.Sprintf("%q", printable(path))).Hint("list the folder to see what there is")
		default:
			return File{}, fault.New(opRead, fault.Conflict, at+" is a "+string(kindOf(e))+", not a file").
				Hint("put a plain file there")
		}
		text, err := m.read(e.Hash, maxReadFile)
		if errors.Is(err, errTooBig) {
			return File{}, fault.New(opRead, fault.Conflict,
				fmt.Sprintf("%s has more than %d MiB", at, maxReadFile>>20)).
				Hint("make it smaller")
		}
		return File{Commit: c.Hash.String(), Path: path, Content: text, Executable: e.Mode == filemode.Executable}, err
	})
}

// List returns what a folder holds in a commit, which is given as for Read; the folder "" is the top of the repository.
// A folder that is not there is empty, because Git keeps no empty folders.
func (s *Syncer) List(ctx context.Context, src Source, commit, dir string) (Listing, error) {
	if dir != "" {
		if err := s.checkPath(opRead, "read", dir); err != nil {
			return Listing{}, err
		}
	}
	return readAt(ctx, s, src, commit, func(m *mirror, c *object.Commit) (Listing, error) {
		out := Listing{Commit: c.Hash.String()}
		e := object.TreeEntry{Mode: filemode.Dir, Hash: c.TreeHash}
		var err error
		if dir != "" {
			if e, err = m.entryAt(c.TreeHash, dir); err != nil {
				return out, err
			}
		}
		switch kindOf(e) {
		case "":
			return out, nil
		case EntryFolder:
		default:
			return out, fault.New(opRead, fault.Conflict, fmt.Sprintf("%q of commit %s is a %s, not a folder",
				printable(dir), short(c.Hash.String()), kindOf(e))).
				Hint("remove it from the repository, or choose another folder")
		}
		entries, err := m.folder(e.Hash)
		if err != nil {
			return out, err
		}
		for name, e := range entries {
			if kind := kindOf(e); kind != "" {
				out.Entries = append(out.Entries, Entry{name, kind})
			}
		}
		slices.SortFunc(out.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	})
}

// kindOf returns what an entry is; empty for nothing.
func kindOf(e object.TreeEntry) EntryKind {
	switch {
	case e.Hash.IsZero():
		return ""
	case isPlain(e):
		return EntryFile
	case isFolder(e):
		return EntryFolder
	case e.Mode == filemode.Symlink:
		return EntryLink
	case e.Mode == filemode.Submodule:
		return EntrySubmodule
	}
	return ""
}

// readAt calls read with a commit in the mirror, which it fetches if necessary.
func readAt[T any](
	ctx context.Context, s *Syncer, src Source, commit string, read func(*mirror, *object.Commit) (T, error),
) (T, error) {
	var none T
	p, err := src.locate()
	if err != nil {
		return none, err
	}
	if commit != "" && !plumbing.IsHash(commit) {
		return none, fault.New(opRead, fault.Invalid, fmt.Sprintf("%q is not a full commit hash", printable(commit))).
			Hint("give all 40 digits")
	}
	look := func(m *mirror) (out T, err error) {
		c, err := object.GetCommit(m.store, plumbing.NewHash(commit))
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return out, fault.New(opRead, fault.NotFound, "commit "+short(commit)+" is not in "+p.shown).
				Hint("it may have been removed by a forced push: choose a commit of the branch")
		}
		if err != nil {
			return out, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		return read(m, c)
	}
	if commit == "" || !s.Has(src, commit) {
		rev, _, err := s.Fetch(ctx, src)
		if err != nil {
			return none, err
		}
		if commit == "" {
			commit = rev.Commit
		}
	}
	out, err := withMirror(s.mirrorDir(p), look)
	if needsRepair(err) { // the next fetch makes the mirror again
		if _, _, err = s.Fetch(ctx, src); err == nil {
			out, err = withMirror(s.mirrorDir(p), look)
		}
	}
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opRead, "the mirror of "+p.shown+" cannot be read", err)
	}
	return out, err
}
