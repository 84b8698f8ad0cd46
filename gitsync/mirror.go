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

// mirror is a bare repository of ours. Its objects are only ever added; its
// references all change at once, by the replacement of one file. So it can be
// read while it is fetched into.
type mirror struct {
	dir   string
	store *objects.Store
	refs  refSet
	empty bool // nothing was ever fetched into it
}

// errCorrupt marks what can only be a damaged mirror.
var errCorrupt = errors.New("the mirror is damaged")

// errNoMirror says that there is none.
var errNoMirror = errors.New("the repository was not fetched")

// openMirror opens what createMirror made. fs.ErrNotExist says that there is
// none, errCorrupt that it cannot be used.
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

// createMirror makes an empty bare repository in a new folder.
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
			return set, errors.New("packed-refs holds a line that is no reference")
		}
		set.refs[name] = plumbing.NewHash(hash)
	}
	return set, nil
}

// noHead stands for a default branch that is not known: HEAD must name one.
const noHead = "refs/heads/.none"

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

// writeFile replaces a file at once, unless it holds that content already.
func writeFile(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return replaceFile(path, content)
}

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

// peel follows tags to the commit that they name.
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

var errNoCommit = errors.New("it names no commit")

// rewritten reports whether one commit is not in the history of a later one.
// It looks at a bounded number of commits, newest first; when they do not
// tell, it says no.
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
	// Clocks differ: a parent may look younger than its child, by a day at most.
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
