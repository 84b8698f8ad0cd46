package gitsync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// The references of a local repository are read here and not by go-git, which returns
// none of them as soon as one cannot be read.

// maxRefFile is the largest size, in bytes, of the file of a reference.
const maxRefFile = 8 << 10

// refs reads the branches and tags. Broken ones are listed as such.
func (l *local) refs(ctx context.Context) (refSet, error) {
	set := refSet{refs: map[string]plumbing.Hash{}, broken: map[string]error{}}
	links := map[string]string{} // symbolic references
	// Files first: a reference that is packed meanwhile is found in packed-refs.
	if err := l.looseRefs(ctx, &set, links); err != nil {
		return refSet{}, err
	}
	if err := l.packedRefs(&set, links); err != nil {
		return refSet{}, err
	}
	for name := range links {
		target := name
		for range 5 {
			if next, is := links[target]; is {
				target = next
			}
		}
		if h, ok := set.refs[target]; ok {
			set.refs[name] = h
		} else {
			set.broken[name] = errors.New("it leads to " + target + ", which is not there")
		}
	}
	head, err := os.ReadFile(filepath.Join(l.dot, "HEAD"))
	if err != nil {
		return refSet{}, err
	}
	if target, ok := strings.CutPrefix(string(head), "ref:"); ok {
		set.head = strings.TrimSpace(target)
	}
	if len(set.refs)+len(set.broken) == 0 {
		return refSet{}, transport.ErrEmptyRemoteRepository
	}
	return set, nil
}

// looseRefs reads the references that have a file of their own.
func (l *local) looseRefs(ctx context.Context, set *refSet, links map[string]string) error {
	return filepath.WalkDir(filepath.Join(l.common, "refs"), func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, relErr := filepath.Rel(l.common, path)
		if relErr != nil {
			return relErr
		}
		name := filepath.ToSlash(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed, or packed, in the meantime
			return nil
		case err != nil && strings.Count(name, "/") > 1: // the references in this folder cannot be listed
			set.broken[name] = err
			return fs.SkipDir
		case err != nil:
			return err
		case d.IsDir():
			if name == "refs/remotes" {
				return fs.SkipDir
			}
			return nil
		// Git locks a reference during a push: refs/heads/main.lock is empty at first, and
		// then has the new value of main.
		case strings.HasSuffix(name, ".lock"), !l.place.wants(name):
			return nil
		}
		switch hash, target, err := readRef(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			set.broken[name] = err
		case target != "":
			links[name] = target
		default:
			set.refs[name] = hash
		}
		return nil
	})
}

// readRef reads the file of a reference: a hash, or the name of another reference.
func readRef(path string) (hash plumbing.Hash, target string, err error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return hash, "", cmp.Or(err, errors.New("it is not a file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return hash, "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRefFile))
	if err != nil {
		return hash, "", err
	}
	if name, ok := bytes.CutPrefix(text, []byte("ref:")); ok {
		return hash, strings.TrimSpace(string(name)), nil
	}
	fields := strings.Fields(string(text))
	switch {
	case len(fields) == 0:
		return hash, "", errors.New("its file is empty")
	case !plumbing.IsHash(fields[0]):
		return hash, "", errors.New("its file holds no object name")
	}
	return plumbing.NewHash(fields[0]), "", nil
}

// packedRefs reads packed-refs. A file of its own takes precedence, even a broken one.
func (l *local) packedRefs(set *refSet, links map[string]string) error {
	text, err := os.ReadFile(filepath.Join(l.common, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		hash, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "^") || !l.place.wants(name) ||
			set.has(name) || links[name] != "" {
			continue
		}
		if plumbing.IsHash(hash) {
			set.refs[name] = plumbing.NewHash(hash)
		} else {
			set.broken[name] = errors.New("packed-refs holds no object name for it")
		}
	}
	return nil
}
