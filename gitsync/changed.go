package gitsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

const opChanged = "gitsync.Changed"

// errEnough ends a comparison early.
var errEnough = errors.New("the caller has seen enough")

// Changed calls visit with each path that differs between two commits, in no
// order, until visit returns false. Both must have been fetched, and are given by
// their full hashes; the fault is NotFound when the mirror lacks one of them.
func (s *Syncer) Changed(ctx context.Context, src Source, from, to string, visit func(path string) bool) error {
	p, err := src.locate()
	if err != nil {
		return err
	}
	if !plumbing.IsHash(from) || !plumbing.IsHash(to) {
		return fault.New(opChanged, fault.Invalid, "commits are compared by their full hashes")
	}
	_, err = withMirror(s.mirrorDir(p), func(m *mirror) (struct{}, error) {
		a, err := m.treeOf(from)
		if err != nil {
			return struct{}{}, err
		}
		b, err := m.treeOf(to)
		if err != nil {
			return struct{}{}, err
		}
		d := &differ{ctx: ctx, m: m, visit: visit}
		return struct{}{}, d.trees(a, b, "", 0)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if errors.Is(err, errNoMirror) || errors.Is(err, plumbing.ErrObjectNotFound) {
		return fault.New(opChanged, fault.NotFound,
			fmt.Sprintf("%s or %s is not in the mirror of %s", short(from), short(to), p.shown))
	}
	return err
}

func (m *mirror) treeOf(commit string) (plumbing.Hash, error) {
	c, err := object.GetCommit(m.store, plumbing.NewHash(commit))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return c.TreeHash, nil
}

// differ walks two trees side by side, and enters only folders that differ.
type differ struct {
	ctx   context.Context
	m     *mirror
	visit func(string) bool
}

// entries returns what a folder holds by name; nothing for the zero hash.
func (d *differ) entries(h plumbing.Hash) (map[string]object.TreeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	t, err := object.GetTree(d.m.store, h)
	if err != nil {
		return nil, err
	}
	out := make(map[string]object.TreeEntry, len(t.Entries))
	for _, e := range t.Entries {
		out[e.Name] = e
	}
	return out, nil
}

func (d *differ) trees(a, b plumbing.Hash, dir string, depth int) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return errTooDeep
	}
	before, err := d.entries(a)
	if err != nil {
		return err
	}
	after, err := d.entries(b)
	if err != nil {
		return err
	}
	for name, x := range before {
		if err := d.entry(x, after[name], dir+name, depth); err != nil {
			return err
		}
	}
	for name, y := range after {
		if _, seen := before[name]; !seen {
			if err := d.entry(object.TreeEntry{}, y, dir+name, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry compares what two commits have at a path. The zero entry stands for nothing.
func (d *differ) entry(x, y object.TreeEntry, path string, depth int) error {
	if x.Hash == y.Hash && x.Mode == y.Mode {
		return nil
	}
	a, b := folder(x), folder(y)
	if !a.IsZero() || !b.IsZero() {
		if err := d.trees(a, b, path+"/", depth+1); err != nil {
			return err
		}
	}
	file := !x.Hash.IsZero() && a.IsZero() || !y.Hash.IsZero() && b.IsZero()
	if file && !d.visit(path) {
		return errEnough
	}
	return nil
}

// folder returns the hash of a folder, and the zero hash for everything else.
func folder(e object.TreeEntry) plumbing.Hash {
	if e.Mode == filemode.Dir {
		return e.Hash
	}
	return plumbing.ZeroHash
}
