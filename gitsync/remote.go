package gitsync

import (
	"context"
	"fmt"
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
	// is an annotated tag. An error means that the reference is broken.
	peeled(name string, h plumbing.Hash) (plumbing.Hash, error)
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
	// broken are the references that cannot be read, with the reason. They are not in
	// refs. They concern only those who follow them; see find.
	broken map[string]error
}

// leaveOut moves a reference from refs to broken.
func (r *refSet) leaveOut(name string, why error) {
	delete(r.refs, name)
	if r.broken == nil {
		r.broken = map[string]error{}
	}
	r.broken[name] = why
}

// leftOut returns lines for the report about the references that are broken.
func (r refSet) leftOut() string {
	var out strings.Builder
	names := slices.Sorted(maps.Keys(r.broken))
	for _, name := range names[:min(len(names), 10)] {
		fmt.Fprintf(&out, "%s is broken and was left out: %s\n", name, printable(r.broken[name].Error()))
	}
	if more := len(names) - 10; more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	return out.String()
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
// It returns false when there is none, and also when the reference is broken: nothing
// else may take its place.
func (r refSet) find(branch string) (full string, ok bool) {
	full = r.meant(branch)
	_, ok = r.refs[full]
	return full, ok
}

// meant returns the full name of the reference that a person means by a branch or tag,
// which may be broken. It is empty when there is no such reference.
func (r refSet) meant(branch string) (full string) {
	if wanted, is := strings.CutPrefix(branch, rangePrefix); is {
		return r.highest(wanted)
	}
	if branch == "" {
		if r.has(r.head) {
			return r.head
		}
		// HEAD of a new bare repository often names a branch that nobody has pushed.
		// If there is only one branch, it is the one that is meant.
		if all := r.branches(); len(all) == 1 {
			return "refs/heads/" + all[0]
		}
		return ""
	}
	for _, full := range []string{"refs/heads/" + branch, "refs/tags/" + branch, branch} {
		if r.has(full) {
			return full
		}
	}
	return ""
}

// has reports whether there is a reference, broken or not.
func (r refSet) has(full string) bool {
	_, ok := r.refs[full]
	_, broken := r.broken[full]
	return ok || broken
}
