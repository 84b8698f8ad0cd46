package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// treeMerge merges two trees that were made from the same base. What only one side
// changed is taken from that side; files that both changed are merged line by line.
type treeMerge struct {
	ctx       context.Context
	m         *mirror
	conflicts []string // a path and a reason each
	merged    int      // files that were merged line by line
	entries   int      // names that were looked at
}

// mergeLimit is the largest size, in bytes, of a file that is merged line by line.
const mergeLimit = 4 << 20

// trees merges three folders and returns the hash of the result. The zero hash is a
// folder that does not exist.
func (t *treeMerge) trees(base, ours, theirs plumbing.Hash, dir string, depth int) (plumbing.Hash, error) {
	if err := t.ctx.Err(); err != nil {
		return plumbing.ZeroHash, err
	}
	if depth > maxDepth {
		return plumbing.ZeroHash, errTooDeep
	}
	var sides [3]map[string]object.TreeEntry
	names := map[string]bool{}
	for i, h := range []plumbing.Hash{base, ours, theirs} {
		entries, err := t.m.folder(h)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		sides[i] = entries
		for name := range entries {
			names[name] = true
		}
	}
	if t.entries += len(names); t.entries > maxFiles {
		return plumbing.ZeroHash, fmt.Errorf("more than %d files", maxFiles)
	}
	result := object.Tree{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := name
		if dir != "" {
			path = dir + "/" + name
		}
		e, err := t.entry(sides[0][name], sides[1][name], sides[2][name], path, depth)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if e.Hash != plumbing.ZeroHash {
			e.Name = name
			result.Entries = append(result.Entries, e)
		}
	}
	if len(result.Entries) == 0 && depth > 0 {
		return plumbing.ZeroHash, nil // Git stores no empty folders
	}
	slices.SortFunc(result.Entries, func(a, b object.TreeEntry) int { return bytes.Compare(sortKey(a), sortKey(b)) })
	return t.m.keep(result.Encode)
}

// sortKey orders entries as Git does: a folder sorts as if its name ended with a slash.
func sortKey(e object.TreeEntry) []byte {
	if e.Mode == filemode.Dir {
		return []byte(e.Name + "/")
	}
	return []byte(e.Name)
}

func sameEntry(a, b object.TreeEntry) bool { return a.Hash == b.Hash && a.Mode == b.Mode }

// entry merges what the three sides have under one name. The zero entry means that a side has nothing.
func (t *treeMerge) entry(base, ours, theirs object.TreeEntry, path string, depth int) (object.TreeEntry, error) {
	switch {
	case sameEntry(ours, theirs), sameEntry(theirs, base):
		return ours, nil
	case sameEntry(ours, base):
		return theirs, nil
	case isFolder(ours) && isFolder(theirs):
		if base.Mode != filemode.Dir {
			base = object.TreeEntry{}
		}
		h, err := t.trees(base.Hash, ours.Hash, theirs.Hash, path, depth+1)
		return object.TreeEntry{Mode: filemode.Dir, Hash: h}, err
	case isPlain(ours) && isPlain(theirs) && (isPlain(base) || base.Hash == plumbing.ZeroHash):
		return t.file(base, ours, theirs, path)
	}
	why := "changed on both sides"
	if ours.Hash == plumbing.ZeroHash || theirs.Hash == plumbing.ZeroHash {
		why = "removed on one side and changed on the other"
	}
	t.conflict(path, why)
	return ours, nil
}

func isFolder(e object.TreeEntry) bool { return e.Mode == filemode.Dir }
func isPlain(e object.TreeEntry) bool {
	return e.Mode == filemode.Regular || e.Mode == filemode.Executable || e.Mode == filemode.Deprecated
}

func (t *treeMerge) conflict(path, why string) {
	t.conflicts = append(t.conflicts, printable(path)+" ("+why+")")
}

// file merges a file that both sides changed.
func (t *treeMerge) file(base, ours, theirs object.TreeEntry, path string) (object.TreeEntry, error) {
	mode := ours.Mode
	if base.Mode == ours.Mode {
		mode = theirs.Mode
	}
	var texts [3][]byte
	for i, e := range []object.TreeEntry{base, ours, theirs} {
		if e.Hash == plumbing.ZeroHash {
			continue
		}
		text, err := t.m.read(e.Hash, mergeLimit)
		if errors.Is(err, errTooBig) || bytes.IndexByte(text, 0) >= 0 {
			t.conflict(path, "changed on both sides, and not a text")
			return ours, nil
		}
		if err != nil {
			return ours, err
		}
		texts[i] = text
	}
	result, ok := mergeLines(texts[0], texts[1], texts[2])
	if !ok {
		t.conflict(path, "the same lines changed on both sides")
		return ours, nil
	}
	t.merged++
	h, err := t.m.keep(func(o plumbing.EncodedObject) error {
		o.SetType(plumbing.BlobObject)
		w, err := o.Writer()
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = w.Write(result)
		return err
	})
	return object.TreeEntry{Mode: mode, Hash: h}, err
}

// folder returns the entries of a folder by name. The zero hash is a folder that does not exist.
func (m *mirror) folder(h plumbing.Hash) (map[string]object.TreeEntry, error) {
	entries := map[string]object.TreeEntry{}
	if h == plumbing.ZeroHash {
		return entries, nil
	}
	tree, err := object.GetTree(m.store, h)
	switch {
	case errors.Is(err, object.ErrMalformedTree), errors.Is(err, object.ErrEntriesNotSorted):
		return nil, fmt.Errorf("the folder %s is malformed: %w", short(h.String()), err)
	case err != nil:
		return nil, fmt.Errorf("%w: tree %s: %w", errCorrupt, short(h.String()), err)
	}
	for _, e := range tree.Entries {
		if _, twice := entries[e.Name]; twice {
			return nil, fmt.Errorf("the folder %s holds the name %q twice", short(h.String()), printable(e.Name))
		}
		entries[e.Name] = e
	}
	return entries, nil
}
