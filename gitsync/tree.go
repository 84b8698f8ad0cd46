package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

const opCheckout = "gitsync.Checkout"

// Bounds on the content of a commit. They stop trees that unfold to more than any
// disk can hold.
const (
	maxDepth   = 200
	maxFiles   = 200_000 // including folders
	maxPath    = 4095    // bytes
	maxName    = 255
	maxSymlink = 4095
)

var errTooDeep = errors.New("folders are nested too deeply")

// file is a file, a symbolic link or a submodule of a commit.
type file struct {
	path string // with slashes
	mode filemode.FileMode
	hash plumbing.Hash
	// target is where a symbolic link leads.
	target string
	// conversion is how its content is written to the disk.
	conversion conversion
	// from is the mirror of the submodule that it belongs to; nil for the commit's own.
	from *mirror
}

// content is what a commit holds. It has been checked to be safe to check out.
type content struct {
	files      []file          // in Git's order, including submodules
	byPath     map[string]int  // index into files
	dirs       map[string]bool // by path, without the top
	submodules []string
	// unapplied are the attributes that were not applied, with the paths of their files.
	unapplied map[string][]string
}

// readContent reads and checks everything in a commit except the content of its files.
func (m *mirror) readContent(
	ctx context.Context,
	trees *treeCache,
	c *object.Commit,
	kept func(string) bool,
) (*content, error) {
	r := &contentReader{m: m, ctx: ctx, kept: kept, commit: c.Hash.String(), trees: trees,
		content: &content{byPath: map[string]int{}, dirs: map[string]bool{}}}
	if err := r.tree(c.TreeHash, "", 0); err != nil {
		return nil, err
	}
	if err := r.links(); err != nil {
		return nil, err
	}
	if err := r.applyAttributes(); err != nil {
		return nil, err
	}
	return r.content, nil
}

type contentReader struct {
	*content
	m      *mirror
	ctx    context.Context
	kept   func(string) bool
	commit string
	trees  *treeCache
}

// refuse returns the fault for a commit that is not safe to check out.
func (r *contentReader) refuse(format string, args ...any) *fault.Error {
	return fault.New(opCheckout, fault.Invalid,
		fmt.Sprintf("commit %s cannot be checked out: ", short(r.commit))+fmt.Sprintf(format, args...))
}

// tree reads a folder and everything below it.
func (r *contentReader) tree(h plumbing.Hash, dir string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return r.refuse("%v", errTooDeep).Hint(fmt.Sprintf("nest folders at most %d deep", maxDepth))
	}
	entries, known := r.trees.get(h)
	if !known {
		var err error
		if entries, err = r.read(h, dir); err != nil {
			return err
		}
		r.trees.put(h, entries)
	}
	for _, e := range entries {
		path := e.Name
		if dir != "" {
			path = dir + "/" + e.Name
		}
		if _, twice := r.byPath[path]; twice || r.dirs[path] {
			return r.refuse("the folder %q holds the name %q twice", printable(dir), printable(e.Name)).
				Hint("run git fsck in the repository")
		}
		if err := r.name(e.Name, path, depth == 0); err != nil {
			return err
		}
		if len(r.files)+len(r.dirs) >= maxFiles {
			return r.refuse("it holds more than %d files", maxFiles).Hint("keep the project in a smaller repository")
		}
		switch e.Mode {
		case filemode.Dir:
			r.dirs[path] = true
			if err := r.tree(e.Hash, path, depth+1); err != nil {
				return err
			}
			continue
		case filemode.Submodule:
			r.dirs[path] = true
			r.submodules = append(r.submodules, path)
		case filemode.Regular, filemode.Deprecated:
			e.Mode = filemode.Regular
		case filemode.Executable, filemode.Symlink:
		default:
			return r.refuse("%q has the mode %v, which is unknown", printable(path), e.Mode).
				Hint("run git fsck in the repository")
		}
		if e.Mode == filemode.Symlink && strings.EqualFold(e.Name, ".gitmodules") {
			return r.refuse("%q is a symbolic link", printable(path)).Hint("make it a plain file")
		}
		r.byPath[path] = len(r.files)
		r.files = append(r.files, file{path: path, mode: e.Mode, hash: e.Hash})
	}
	return nil
}

// read reads a folder.
func (r *contentReader) read(h plumbing.Hash, dir string) ([]object.TreeEntry, error) {
	damaged := func(err error) error {
		return fmt.Errorf("%w: tree %s: %w", errCorrupt, short(h.String()), err)
	}
	o, err := r.m.store.EncodedObject(plumbing.TreeObject, h)
	if err != nil {
		return nil, damaged(err)
	}
	t := &object.Tree{}
	switch err := t.Decode(o); {
	case errors.Is(err, object.ErrMalformedTree), errors.Is(err, object.ErrEntriesNotSorted):
		return nil, r.refuse("the folder %q is malformed: %v", printable(dir), err).
			Hint("run git fsck in the repository")
	case err != nil:
		return nil, damaged(err)
	}
	return t.Entries, nil
}

// name refuses a name that could mean anything but a new entry of its folder.
func (r *contentReader) name(name, path string, top bool) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return r.refuse("it holds the name %q, which leads elsewhere", printable(path)).
			Hint("run git fsck in the repository")
	case isDotGit(name):
		return r.refuse("it holds %q, a name that belongs to Git itself", printable(path)).
			Hint("remove it from the repository")
	case len(name) > maxName || len(path) > maxPath:
		return r.refuse("the path %q is too long", printable(path)).Hint("rename it in the repository")
	case top && r.kept(name):
		return r.refuse("it holds %q, a name that the compiler's virtual environment needs", printable(path)).
			Hint("rename or remove it in the repository, and add it to .gitignore")
	}
	return nil
}

// isDotGit reports whether any file system takes a name for .git: it considers letter
// case, trailing dots and spaces, streams and short names of NTFS, and characters that
// HFS+ ignores.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(name))
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, `\`)
	name = strings.TrimRight(name, ". ")
	return name == ".git" || name == "git~1"
}

// links reads the targets of the symbolic links, and refuses those that lead outside of the commit.
func (r *contentReader) links() error {
	for i := range r.files {
		f := &r.files[i]
		if f.mode != filemode.Symlink {
			continue
		}
		text, err := r.m.read(f.hash, maxSymlink)
		if errors.Is(err, errTooBig) {
			return r.refuse("the symbolic link %q is too long", printable(f.path)).
				Hint("run git fsck in the repository")
		}
		if err != nil {
			return err
		}
		f.target = string(text)
	}
	return r.judgeLinks()
}

// judgeLinks refuses symbolic links that lead outside of the commit.
func (r *contentReader) judgeLinks() error {
	for _, f := range r.files {
		if f.mode != filemode.Symlink {
			continue
		}
		if why := r.leaves(f); why != "" {
			return r.refuse("the symbolic link %q leads to %q, %s", printable(f.path), printable(f.target), why).
				Hint("let it lead to a file of the repository, by a relative path")
		}
	}
	return nil
}

// leaves follows a symbolic link as the system would, through other links of the
// commit. It returns what is wrong with the place that it leads to, or an empty text.
func (r *contentReader) leaves(f file) string {
	const outside = "outside of the repository"
	if f.target == "" || strings.ContainsRune(f.target, 0) {
		return "which is no path"
	}
	// at is where we are, from the top; todo what is still to be walked.
	at := strings.Split(f.path, "/")
	at = at[:len(at)-1]
	todo := strings.Split(f.target, "/")
	if strings.HasPrefix(f.target, "/") {
		return outside
	}
	for hops := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return outside
			}
			at = at[:len(at)-1]
			continue
		}
		if len(at) == 0 && (isDotGit(step) || r.kept(step)) {
			return "which is not part of the repository"
		}
		at = append(slices.Clip(at), step)
		i, ok := r.byPath[strings.Join(at, "/")]
		if !ok || r.files[i].mode != filemode.Symlink {
			continue
		}
		if hops++; hops > 40 {
			return "" // a cycle of links leads nowhere
		}
		target := r.files[i].target
		if strings.HasPrefix(target, "/") {
			return outside
		}
		at = at[:len(at)-1]
		todo = append(strings.Split(target, "/"), todo...)
	}
	return ""
}

var errTooBig = errors.New("it is too big")

// read returns the content of a file. The error is errTooBig if it has more than limit bytes.
func (m *mirror) read(h plumbing.Hash, limit int64) ([]byte, error) {
	o, err := m.store.EncodedObject(plumbing.BlobObject, h)
	if err != nil {
		return nil, fmt.Errorf("%w: file %s: %w", errCorrupt, short(h.String()), err)
	}
	if o.Size() > limit {
		return nil, errTooBig
	}
	in, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("%w: file %s: %w", errCorrupt, short(h.String()), err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%w: file %s: %w", errCorrupt, short(h.String()), err)
	}
	if plumbing.ComputeHash(plumbing.BlobObject, text) != h {
		return nil, fmt.Errorf("%w: file %s has another content", errCorrupt, short(h.String()))
	}
	return text, nil
}
