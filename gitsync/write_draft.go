package gitsync

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"ordain.dev/ordain/internal/fault"
)

// draft is a commit that was not pushed yet. Its objects are in memory, so that a commit that is refused leaves nothing
// in the mirror.
type draft struct {
	commit  plumbing.Hash
	objects []plumbing.EncodedObject // each comes after all that it needs; none when nothing changes
	have    map[plumbing.Hash]bool
}

// add adds an object.
func (d *draft) add(encode func(plumbing.EncodedObject) error) (plumbing.Hash, error) {
	o := &plumbing.MemoryObject{}
	if err := encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	h := o.Hash()
	if !d.have[h] {
		d.have[h] = true
		d.objects = append(d.objects, o)
	}
	return h, nil
}

// pack returns the objects as a pack.
func (d *draft) pack() ([]byte, error) {
	store := memory.NewStorage()
	var all []plumbing.Hash
	for _, o := range d.objects {
		h, err := store.SetEncodedObject(o)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	var out bytes.Buffer
	if _, err := packfile.NewEncoder(&out, store, false).Encode(all, 0); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// draft makes the commit of a Write on top of a commit of the mirror.
func (m *mirror) draft(tip plumbing.Hash, w Write) (*draft, error) {
	parent, err := m.peel(tip)
	if err != nil {
		return nil, err
	}
	changes, err := m.pending(parent, w)
	if err != nil {
		return nil, err
	}
	d := &draft{have: map[plumbing.Hash]bool{}}
	if len(changes) == 0 {
		return d, nil
	}
	tree, err := m.replace(d, parent.TreeHash, changes, "")
	if err != nil {
		return nil, err
	}
	if tree.IsZero() { // the last file was removed
		if tree, err = d.add((&object.Tree{}).Encode); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	c := &object.Commit{
		Author:       object.Signature{Name: w.Author.Name, Email: w.Author.Email, When: now},
		Committer:    object.Signature{Name: w.Committer.Name, Email: w.Committer.Email, When: now},
		Message:      w.Message,
		TreeHash:     tree,
		ParentHashes: []plumbing.Hash{parent.Hash},
	}
	d.commit, err = d.add(c.Encode)
	return d, err
}

// pending returns the changes that the tip does not have yet. It fails when another one changed the same files since
// the base of the Write.
func (m *mirror) pending(tip *object.Commit, w Write) ([]FileChange, error) {
	base := tip
	if w.Base != "" && plumbing.NewHash(w.Base) != tip.Hash {
		h := plumbing.NewHash(w.Base)
		if !m.has(h) {
			return nil, fault.New(opWrite, fault.Conflict,
				"the repository does not have commit "+short(w.Base)+" any more").
				Hint("read the files again, and make the change again")
		}
		var err error
		if base, err = m.peel(h); err != nil {
			return nil, err
		}
	}
	var out []FileChange
	var moved []string
	for _, f := range w.Files {
		now, err := m.entryAt(tip.TreeHash, f.Path)
		if err != nil {
			return nil, err
		}
		switch {
		case f.Content == nil && now.Hash.IsZero():
			continue
		case f.Content != nil && isPlain(now) && now.Hash == plumbing.ComputeHash(plumbing.BlobObject, f.Content):
			continue
		}
		read, err := m.entryAt(base.TreeHash, f.Path)
		if err != nil {
			return nil, err
		}
		if !sameEntry(read, now) {
			moved = append(moved, printable(f.Path))
		}
		out = append(out, f)
	}
	if len(moved) > 0 {
		return nil, fault.New(opWrite, fault.Conflict,
			fmt.Sprintf("%s changed since commit %s; the branch is at %s now", enumerate(moved, 10), short(w.Base),
				short(tip.Hash.String()))).
			Hint("read the file again, and make the change again")
	}
	return out, nil
}

// entryAt returns what a tree has at a path; the zero entry when it has nothing there, or something in the way.
func (m *mirror) entryAt(tree plumbing.Hash, path string) (object.TreeEntry, error) {
	at := object.TreeEntry{Mode: filemode.Dir, Hash: tree}
	for name := range strings.SplitSeq(path, "/") {
		if !isFolder(at) {
			return object.TreeEntry{}, nil
		}
		entries, err := m.folder(at.Hash)
		if err != nil {
			return at, err
		}
		at = entries[name]
	}
	return at, nil
}

// replace returns the folder h with some files changed: the paths are relative to it. It is the zero hash when nothing
// is left. dir is the path of the folder, which is empty or ends with a slash.
func (m *mirror) replace(d *draft, h plumbing.Hash, changes []FileChange, dir string) (plumbing.Hash, error) {
	entries, err := m.folder(h)
	if err != nil {
		return h, err
	}
	for len(changes) > 0 {
		name, _, deeper := strings.Cut(changes[0].Path, "/")
		e, has := entries[name]
		if why := inTheWay(e, has, deeper); why != "" {
			return h, fault.New(opWrite, fault.Conflict, fmt.Sprintf("%q cannot be committed: %q is %s",
				printable(dir+changes[0].Path), printable(dir+name), why)).
				Hint("choose another name, or remove what is in the way from the repository")
		}
		if !deeper {
			if e, err = d.file(e, changes[0].Content); err != nil {
				return h, err
			}
			changes = changes[1:]
		} else {
			var below []FileChange
			for len(changes) > 0 && strings.HasPrefix(changes[0].Path, name+"/") {
				below = append(below, FileChange{changes[0].Path[len(name)+1:], changes[0].Content})
				changes = changes[1:]
			}
			e.Mode = filemode.Dir
			if e.Hash, err = m.replace(d, e.Hash, below, dir+name+"/"); err != nil {
				return h, err
			}
		}
		if e.Name = name; e.Hash.IsZero() {
			delete(entries, name)
		} else {
			entries[name] = e
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil // Git stores no empty folders
	}
	t := &object.Tree{Entries: slices.Collect(maps.Values(entries))}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return bytes.Compare(sortKey(a), sortKey(b)) })
	return d.add(t.Encode)
}

// inTheWay says what stands where a file, or a folder of one, is to be; empty when it is free or of the right kind.
func inTheWay(e object.TreeEntry, has, folder bool) string {
	switch {
	case !has, folder && isFolder(e), !folder && isPlain(e):
		return ""
	case e.Mode == filemode.Symlink:
		return "a symbolic link"
	case e.Mode == filemode.Submodule:
		return "a submodule"
	case isFolder(e):
		return "a folder"
	}
	return "a file"
}

// file returns the entry of a file with another content; the zero entry when it is removed.
func (d *draft) file(old object.TreeEntry, content []byte) (object.TreeEntry, error) {
	if content == nil {
		return object.TreeEntry{}, nil
	}
	mode := filemode.Regular
	if old.Mode == filemode.Executable {
		mode = old.Mode
	}
	h, err := d.add(func(o plumbing.EncodedObject) error {
		o.SetType(plumbing.BlobObject)
		out, err := o.Writer()
		if err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
		return out.Close()
	})
	return object.TreeEntry{Mode: mode, Hash: h}, err
}
