package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// reach returns everything that some commits and tags need, including themselves.
func (s *Store) reach(
	ctx context.Context,
	roots []plumbing.Hash,
	cut map[plumbing.Hash]bool,
) (map[plumbing.Hash]bool, error) {
	found := map[plumbing.Hash]bool{}
	var todo []plumbing.Hash
	for _, h := range roots {
		err := s.HasEncodedObject(h)
		if err == nil {
			todo = append(todo, h)
		} else if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, err
		}
	}
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if found[h] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found[h] = true
		o, err := s.EncodedObject(plumbing.AnyObject, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			err = damaged("object %s is missing", h)
		}
		if err != nil {
			return nil, err
		}
		switch o.Type() {
		case plumbing.TreeObject:
			content, err := read(o)
			if err != nil {
				return nil, err
			}
			err = eachEntry(content, func(mode string, e plumbing.Hash) {
				switch mode {
				case "160000": // a submodule
				case "40000", "040000":
					todo = append(todo, e)
				default:
					found[e] = true
				}
			})
			if err != nil {
				return nil, fmt.Errorf("tree %s: %w", h, err)
			}
		case plumbing.CommitObject, plumbing.TagObject:
			content, err := read(o)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(string(content)) {
				if line == "\n" {
					break
				}
				word, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				switch {
				case !plumbing.IsHash(name):
				case word == "tree", word == "object", word == "parent" && !cut[h]:
					todo = append(todo, plumbing.NewHash(name))
				}
			}
		}
	}
	return found, nil
}

// read returns the content of an object.
func read(o plumbing.EncodedObject) ([]byte, error) {
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

var errTree = errors.New("it is malformed")

// eachEntry calls visit with each entry of a tree.
func eachEntry(tree []byte, visit func(mode string, h plumbing.Hash)) error {
	for len(tree) > 0 {
		head, rest, ok := bytes.Cut(tree, []byte{0})
		mode, _, spaced := bytes.Cut(head, []byte{' '})
		if !ok || !spaced || len(rest) < hashSize {
			return errTree
		}
		visit(string(mode), plumbing.Hash(rest[:hashSize]))
		tree = rest[hashSize:]
	}
	return nil
}
