package gitsync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

const opPull = "gitsync.MergePull"

// PullRequest names what a pull request would merge. HeadRef and MergeRef are
// references that the forge keeps for it; a mirror never stores them.
type PullRequest struct {
	Base     string // the branch that it targets, without refs/heads/
	Head     string // full hash of the commit that HeadRef must point to
	HeadRef  string // such as refs/pull/7/head
	MergeRef string // such as refs/pull/7/merge; empty where the forge has none
}

// MergePull returns the commit that merging a pull request would make, and
// leaves it in the mirror, so that Checkout can check it out. It takes the merge
// that the forge made, if that merges exactly these two commits; otherwise it
// merges them itself. The fault is a Conflict that names the files when they do
// not merge, and NotFound when HeadRef no longer points to Head.
func (s *Syncer) MergePull(ctx context.Context, src Source, q PullRequest) (intent.Revision, Report, error) {
	var report Report
	p, err := src.locate()
	if err != nil {
		return intent.Revision{}, report, err
	}
	if err := q.validate(); err != nil {
		return intent.Revision{}, report, err
	}
	report.Command = fmt.Sprintf("git fetch %s %s %s && git merge-tree --write-tree %s %s",
		shellQuote(p.shown), shellQuote(q.Base), shellQuote(q.HeadRef), shellQuote(q.Base), short(q.Head))
	p.branch = q.Base
	got, err := s.share(ctx, p)
	if err != nil {
		return intent.Revision{}, report, err
	}
	full, ok := got.after.find(q.Base)
	if !ok {
		return intent.Revision{}, report, branchFault(p, q.Base, got.after)
	}
	base := got.after.refs[full]
	private, err := s.fetchPrivate(ctx, p, q)
	if err != nil {
		return intent.Revision{}, report, err
	}
	if head := private.refs[q.HeadRef]; head.String() != q.Head {
		found := "is gone"
		if head != plumbing.ZeroHash {
			found = "points to " + short(head.String())
		}
		return intent.Revision{}, report, fault.New(opPull, fault.NotFound,
			fmt.Sprintf("%s %s now, and not to %s", q.HeadRef, found, short(q.Head))).
			Hint("it was pushed to; the newer commit gets a preview of its own")
	}
	unlock, err := lockMirror(ctx, s.mirrorDir(p))
	if err != nil {
		return intent.Revision{}, report, diskFault(opPull, "the mirror of "+p.shown+" is in use", err)
	}
	defer unlock()
	rev, err := withMirror(s.mirrorDir(p), func(m *mirror) (intent.Revision, error) {
		return m.mergeResult(ctx, q, base, private.refs[q.MergeRef], &report)
	})
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opPull, "the mirror of "+p.shown+" cannot be read", err)
	}
	return rev, report, err
}

// validate rejects pull requests that no well-behaved forge would send.
func (q PullRequest) validate() error {
	for _, name := range []string{q.HeadRef, q.MergeRef} {
		n := plumbing.ReferenceName(name)
		if name != "" && (!strings.HasPrefix(name, "refs/") || n.Validate() != nil || !n.IsSafe()) {
			return fault.New(opPull, fault.Invalid, fmt.Sprintf("%q is not the name of a reference", printable(name)))
		}
	}
	switch {
	case q.HeadRef == "" || q.Base == "":
		return fault.New(opPull, fault.Invalid, "the pull request has no head or no base branch")
	case !plumbing.IsHash(q.Head):
		return fault.New(opPull, fault.Invalid, fmt.Sprintf("%q is not a full commit hash", printable(q.Head)))
	}
	return nil
}

// fetchPrivate fetches the commits of a pull request's references into the mirror,
// but not the references. It returns the references of the remote.
func (s *Syncer) fetchPrivate(ctx context.Context, p place, q PullRequest) (refSet, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.FetchTimeout)
	defer cancel()
	p.also = []string{q.HeadRef}
	if q.MergeRef != "" {
		p.also = append(p.also, q.MergeRef)
	}
	dir := s.mirrorDir(p)
	unlock, err := lockMirror(ctx, dir)
	if err != nil {
		return refSet{}, diskFault(opPull, "the mirror of "+p.shown+" is in use", err)
	}
	defer unlock()
	from, err := s.dial(p)
	if err != nil {
		return refSet{}, p.remoteFault(opPull, err)
	}
	defer from.close()
	at, err := s.ask(ctx, from)
	if err != nil {
		return at, p.remoteFault(opPull, err)
	}
	_, err = withMirror(dir, func(m *mirror) (struct{}, error) {
		var want []plumbing.Hash
		for _, name := range p.also {
			if h, ok := at.refs[name]; ok && !m.has(h) {
				want = append(want, h)
			}
		}
		if len(want) == 0 {
			return struct{}{}, nil
		}
		if _, err := from.fetch(ctx, m, want); err != nil {
			return struct{}{}, err
		}
		s.compact(ctx, m)
		return struct{}{}, m.retire(want)
	})
	if err != nil {
		return at, p.remoteFault(opPull, err)
	}
	return at, nil
}

// mergeResult returns the merge that the forge made, if it is of the right commits, or makes one.
func (m *mirror) mergeResult(
	ctx context.Context,
	q PullRequest,
	base, forges plumbing.Hash,
	report *Report,
) (intent.Revision, error) {
	head, err := m.peel(plumbing.NewHash(q.Head))
	if err != nil {
		return intent.Revision{}, err
	}
	ours, err := m.peel(base)
	if err != nil {
		return intent.Revision{}, err
	}
	if forges != plumbing.ZeroHash {
		c, err := m.peel(forges)
		if err == nil && len(c.ParentHashes) == 2 && c.ParentHashes[0] == ours.Hash && c.ParentHashes[1] == head.Hash {
			report.Output = fmt.Sprintf("%s merges %s into %s at %s\n", short(c.Hash.String()), short(q.Head), q.Base,
				short(base.String()))
			return revisionOf(c.Hash, head, q.Base), nil
		}
	}
	result, said, err := m.merge(ctx, ours, head)
	report.Output = said
	if err != nil {
		return intent.Revision{}, err
	}
	return revisionOf(result, head, q.Base), nil
}

// revisionOf describes a merge by what it brings: author and subject are those of the head.
func revisionOf(merged plumbing.Hash, head *object.Commit, branch string) intent.Revision {
	subject, _, _ := strings.Cut(strings.TrimSpace(head.Message), "\n")
	return intent.Revision{
		Commit: merged.String(), Branch: branch, Author: provenance.Clean(head.Author.Name),
		Email:   provenance.Clean(head.Author.Email),
		Subject: provenance.Clean(strings.TrimSpace(subject)), Time: head.Committer.When,
	}
}

// merge merges a head into a branch. If one of the two contains the other, it returns
// that one, and otherwise a new commit, which is the same each time. It also returns
// a line for the report.
func (m *mirror) merge(ctx context.Context, ours, head *object.Commit) (plumbing.Hash, string, error) {
	bases, err := ours.MergeBase(head)
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return plumbing.ZeroHash, "", fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if len(bases) == 0 {
		return plumbing.ZeroHash, "", fault.New(opPull, fault.Conflict,
			fmt.Sprintf("%s and the branch have no history in common", short(head.Hash.String()))).
			Hint("rebase it on the branch; with git_depth, the mirror may not reach back far enough")
	}
	base := bases[0]
	switch base.Hash {
	case head.Hash:
		return ours.Hash, "The branch contains it already\n", nil
	case ours.Hash:
		return head.Hash, "It is ahead of the branch: nothing to merge\n", nil
	}
	t := &treeMerge{ctx: ctx, m: m}
	tree, err := t.trees(base.TreeHash, ours.TreeHash, head.TreeHash, "", 0)
	if err != nil {
		return plumbing.ZeroHash, "", err
	}
	if len(t.conflicts) > 0 {
		return plumbing.ZeroHash, "", fault.New(opPull, fault.Conflict,
			fmt.Sprintf("%s does not merge: %s", short(head.Hash.String()), enumerate(t.conflicts, 10))).
			Hint("merge the branch into it, or rebase it")
	}
	c := &object.Commit{
		Author:       object.Signature{Name: "Ordain", Email: "ordain@localhost", When: head.Committer.When},
		Committer:    object.Signature{Name: "Ordain", Email: "ordain@localhost", When: head.Committer.When},
		Message:      fmt.Sprintf("Merge %s into %s for a preview\n", head.Hash, ours.Hash),
		TreeHash:     tree,
		ParentHashes: []plumbing.Hash{ours.Hash, head.Hash},
	}
	hash, err := m.keep(func(o plumbing.EncodedObject) error { return c.Encode(o) })
	if err == nil {
		err = m.retire([]plumbing.Hash{hash})
	}
	return hash, fmt.Sprintf("Merged %s into %s here: %d of its files changed on both sides\n",
		short(head.Hash.String()), short(ours.Hash.String()), t.merged), err
}

// keep stores a new object, unless the mirror has it.
func (m *mirror) keep(encode func(plumbing.EncodedObject) error) (plumbing.Hash, error) {
	o := m.store.NewEncodedObject()
	if err := encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	h := o.Hash()
	if m.has(h) {
		return h, nil
	}
	return h, m.store.Put(o)
}
