package gitsync

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// remote is a repository to fetch from. It serves one fetch, and is closed after it.
type remote interface {
	// refs asks what the branches and tags are.
	refs(ctx context.Context) (refSet, error)
	// fetch brings everything that the wanted objects need into the mirror,
	// and gives what the remote said meanwhile. An object is in the mirror
	// only once all that it needs is. refs was called before.
	fetch(ctx context.Context, into *mirror, want []plumbing.Hash) (said string, err error)
	// peeled gives the commit behind a reference, after refs was called: the
	// reference itself unless it is an annotated tag.
	peeled(name string, h plumbing.Hash) plumbing.Hash
	close()
}

// dial gives the remote of a place; nothing is asked yet.
func (s *Syncer) dial(p place) (remote, error) {
	if p.local != "" {
		return openLocal(p)
	}
	if p.ssh != nil {
		return s.openSSH(p)
	}
	return s.openHTTP(p)
}

// refSet is what a repository's branches and tags point to.
type refSet struct {
	head string // full name of the default branch; empty when unknown
	refs map[string]plumbing.Hash
}

// mirrored reports whether we copy a reference: branches and tags, not the
// pull requests and other private names of forges.
func mirrored(name string) bool {
	n := plumbing.ReferenceName(name)
	return (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) &&
		n.Validate() == nil && n.IsSafe()
}

// names gives the full names, sorted.
func (r refSet) names() []string { return slices.Sorted(maps.Keys(r.refs)) }

// branches gives the short names of the branches, sorted.
func (r refSet) branches() []string {
	var names []string
	for _, name := range r.names() {
		if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			names = append(names, short)
		}
	}
	return names
}

// find gives the full name that a person means by a branch or tag.
func (r refSet) find(branch string) (full string, ok bool) {
	if wanted, is := strings.CutPrefix(branch, rangePrefix); is {
		return r.highest(wanted)
	}
	if branch == "" {
		if _, ok := r.refs[r.head]; ok {
			return r.head, true
		}
		// HEAD of a fresh bare repository often names a branch that nobody
		// pushed. The only branch is what is meant then.
		if all := r.branches(); len(all) == 1 {
			return "refs/heads/" + all[0], true
		}
		return "", false
	}
	for _, full := range []string{"refs/heads/" + branch, "refs/tags/" + branch, branch} {
		if _, ok := r.refs[full]; ok {
			return full, true
		}
	}
	return "", false
}
