package gitsync

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// remote is a repository to fetch from. It is opened for one fetch, and closed after it.
type remote interface {
	// refs asks for the branches and tags. It is called first.
	refs(ctx context.Context) (refSet, error)
	// fetch brings the wanted objects, and everything that they need, into the mirror.
	// An object is in the mirror only when everything that it needs is. fetch returns
	// the messages of the remote.
	fetch(ctx context.Context, into *mirror, want []plumbing.Hash) (said string, err error)
	// peeled returns the commit of a reference that points to h: h itself, unless it
	// is an annotated tag.
	peeled(name string, h plumbing.Hash) plumbing.Hash
	close()
}

// dial returns the remote of a place. It does not connect to it yet.
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

// mirrored reports whether a mirror has a reference: it has branches and tags, but
// not the references that forges keep for pull requests and other things.
func mirrored(name string) bool {
	n := plumbing.ReferenceName(name)
	return (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) &&
		n.Validate() == nil && n.IsSafe()
}

// names returns the full names, sorted.
func (r refSet) names() []string { return slices.Sorted(maps.Keys(r.refs)) }

// branches returns the short names of the branches, sorted.
func (r refSet) branches() []string {
	var names []string
	for _, name := range r.names() {
		if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			names = append(names, short)
		}
	}
	return names
}

// find returns the full name of the reference that a person means by a branch or tag.
func (r refSet) find(branch string) (full string, ok bool) {
	if wanted, is := strings.CutPrefix(branch, rangePrefix); is {
		return r.highest(wanted)
	}
	if branch == "" {
		if _, ok := r.refs[r.head]; ok {
			return r.head, true
		}
		// HEAD of a new bare repository often names a branch that nobody has pushed.
		// If there is only one branch, it is the one that is meant.
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
