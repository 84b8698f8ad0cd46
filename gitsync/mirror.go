package gitsync

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"ordain.dev/ordain/gitsync/objects"
)

// mirror is a bare repository that copies a remote one. It can be read while it is
// fetched into: a fetch only adds objects, and then changes all references at once,
// by replacing one file.
type mirror struct {
	dir   string
	store *objects.Store
	refs  refSet
	empty bool // nothing has been fetched into it yet
}

// errCorrupt means that the mirror is damaged.
var errCorrupt = errors.New("the mirror is damaged")

// errNoMirror means that there is no mirror of the repository.
var errNoMirror = errors.New("the repository was not fetched")

// openMirror opens a mirror. The error is fs.ErrNotExist when there is none, and
// errCorrupt when it cannot be used.
func openMirror(dir string) (*mirror, error) {
	refs, err := readRefs(dir)
	if err != nil {
		if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
			return nil, statErr
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	store, err := objects.Open(filepath.Join(dir, "objects"))
	if errors.Is(err, objects.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if err != nil {
		return nil, err
	}
	return &mirror{dir: dir, refs: refs, store: store}, nil
}

// createMirror makes an empty mirror in an empty folder.
func createMirror(dir, url string) (*mirror, error) {
	for _, sub := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n" +
		"[remote \"origin\"]\n\turl = " + configQuote(url) + "\n" +
		"\tfetch = +refs/heads/*:refs/heads/*\n\tfetch = +refs/tags/*:refs/tags/*\n"
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644); err != nil {
		return nil, err
	}
	store, err := objects.Open(filepath.Join(dir, "objects"))
	if err != nil {
		return nil, err
	}
	m := &mirror{dir: dir, refs: refSet{refs: map[string]plumbing.Hash{}}, store: store, empty: true}
	return m, m.setRefs(m.refs)
}

func (m *mirror) objects() string { return filepath.Join(m.dir, "objects") }
func (m *mirror) close()          { m.store.Close() }

func (m *mirror) has(h plumbing.Hash) bool { return m.store.HasEncodedObject(h) == nil }

const refsHeader = "# pack-refs with: sorted \n"

// readRefs reads the references of a mirror.
func readRefs(dir string) (refSet, error) {
	set := refSet{refs: map[string]plumbing.Hash{}}
	head, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	if err != nil {
		return set, err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if !ok {
		return set, errors.New("HEAD is not a reference")
	}
	if target != noHead {
		set.head = target
	}
	text, err := os.ReadFile(filepath.Join(dir, "packed-refs"))
	if err != nil {
		return set, err
	}
	body, ok := strings.CutPrefix(string(text), refsHeader)
	if !ok {
		return set, errors.New("packed-refs has no header")
	}
	for line := range strings.Lines(body) {
		hash, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || !plumbing.IsHash(hash) || !mirrored(name) || !strings.HasSuffix(line, "\n") {
			return set, errors.New("packed-refs has a line that is not a reference")
		}
		set.refs[name] = plumbing.NewHash(hash)
	}
	return set, nil
}

// noHead is what HEAD names when the default branch is not known, because it must name a branch.
const noHead = "refs/heads/.none"

// setRefs replaces all references.
func (m *mirror) setRefs(set refSet) error {
	var text bytes.Buffer
	text.WriteString(refsHeader)
	for _, name := range set.names() {
		fmt.Fprintf(&text, "%s %s\n", set.refs[name], name)
	}
	head := set.head
	if !mirrored(head) {
		head = noHead
	}
	if err := writeFile(filepath.Join(m.dir, "HEAD"), []byte("ref: "+head+"\n")); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(m.dir, "packed-refs"), text.Bytes()); err != nil {
		return err
	}
	m.refs = set
	return nil
}

// writeFile replaces a file atomically, unless it has that content already.
func writeFile(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return replaceFile(path, content)
}

// replaceFile replaces a file atomically.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// peel returns the commit that a hash names, directly or through tags. The error is errNoCommit when it names
// something else.
func (m *mirror) peel(h plumbing.Hash) (*object.Commit, error) {
	for range 10 {
		o, err := m.store.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return nil, fmt.Errorf("%w: object %s: %w", errCorrupt, short(h.String()), err)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			c, err := object.DecodeCommit(m.store, o)
			if err != nil {
				return nil, fmt.Errorf("%w: commit %s: %w", errCorrupt, short(h.String()), err)
			}
			return c, nil
		case plumbing.TagObject:
			t := &object.Tag{}
			if err := t.Decode(o); err != nil {
				return nil, fmt.Errorf("%w: tag %s: %w", errCorrupt, short(h.String()), err)
			}
			h = t.Target
		default:
			return nil, errNoCommit
		}
	}
	return nil, errNoCommit
}

var errNoCommit = errors.New("it does not name a commit")

// rewritten reports whether a commit is missing from the history of a later one. It
// looks at a bounded number of commits, newest first; when those do not answer the
// question, it returns false.
func (m *mirror) rewritten(from, to plumbing.Hash) bool {
	if from == to {
		return false
	}
	old, err := m.peel(from)
	if err != nil {
		return false
	}
	tip, err := m.peel(to)
	if err != nil {
		return false
	}
	const most = 20_000
	found, looked := false, 0
	// Clocks differ. We assume that a parent looks at most a day younger than its child.
	oldest := old.Committer.When.Add(-24 * time.Hour)
	err = object.NewCommitIterCTime(tip, nil, nil).ForEach(func(c *object.Commit) error {
		if found = c.Hash == old.Hash; found || c.Committer.When.Before(oldest) {
			return storer.ErrStop
		}
		if looked++; looked > most {
			return errTooMany
		}
		return nil
	})
	return err == nil && !found
}

var errTooMany = errors.New("too many commits")

// configQuote writes a value for a Git configuration file.
func configQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
