package gitsync

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// walk finds the objects that are missing in the history of some tips, in an order in
// which every object comes after all that it needs. It assumes that the mirror has
// everything that an object in the mirror needs.
type walk struct {
	from    *local
	have    func(plumbing.Hash) bool
	seen    map[plumbing.Hash]bool
	missing []plumbing.Hash
}

func (w *walk) closure(ctx context.Context, tips []plumbing.Hash) error {
	// Depth first, with a stack of our own, because histories are long.
	type visit struct {
		hash plumbing.Hash
		done bool // everything that it needs has been visited
	}
	var commits []plumbing.Hash
	var stack []visit
	for _, h := range tips {
		stack = append(stack, visit{hash: h})
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v.done {
			commits = append(commits, v.hash)
			continue
		}
		if !w.need(v.hash) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := w.from.object(v.hash)
		if err != nil {
			return err
		}
		stack = append(stack, visit{hash: v.hash, done: true})
		switch o.Type() {
		case plumbing.CommitObject:
			c := &object.Commit{}
			if err := c.Decode(o); err != nil {
				return err
			}
			if err := w.tree(ctx, c.TreeHash, 0); err != nil {
				return err
			}
			if !w.from.shallow[v.hash] {
				for _, parent := range c.ParentHashes {
					stack = append(stack, visit{hash: parent})
				}
			}
		case plumbing.TagObject:
			t := &object.Tag{}
			if err := t.Decode(o); err != nil {
				return err
			}
			stack = append(stack, visit{hash: t.Target})
		case plumbing.TreeObject: // a tag may name one
			if err := w.entries(ctx, o, 0); err != nil {
				return err
			}
		}
	}
	w.missing = append(w.missing, commits...)
	return nil
}

// need reports whether an object is missing. Asked again about the same object, it returns false.
func (w *walk) need(h plumbing.Hash) bool {
	if w.seen[h] {
		return false
	}
	w.seen[h] = true
	return !w.have(h)
}

func (w *walk) tree(ctx context.Context, h plumbing.Hash, depth int) error {
	if !w.need(h) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := w.from.object(h)
	if err != nil {
		return err
	}
	if err := w.entries(ctx, o, depth); err != nil {
		return err
	}
	w.missing = append(w.missing, h)
	return nil
}

func (w *walk) entries(ctx context.Context, o plumbing.EncodedObject, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	t := &object.Tree{}
	if err := t.Decode(o); err != nil {
		return err
	}
	for _, e := range t.Entries {
		switch e.Mode {
		case filemode.Submodule:
		case filemode.Dir:
			if err := w.tree(ctx, e.Hash, depth+1); err != nil {
				return err
			}
		default:
			if w.need(e.Hash) {
				w.missing = append(w.missing, e.Hash)
			}
		}
	}
	return nil
}
