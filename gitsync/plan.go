package gitsync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"ordain.dev/ordain/internal/fault"
)

// Plan is what a Write would commit, for those who commit it elsewhere, such as at a forge.
type Plan struct {
	Branch  string   // without refs/heads/
	Tip     string   // the commit that Branch points to
	Changes []Change // to Tip, sorted by path; none when the branch has all contents already
}

// Plan fetches the branch of a Write and computes its changes, with the same checks and faults as Write. It writes
// nothing.
func (s *Syncer) Plan(ctx context.Context, src Source, w Write) (Plan, error) {
	var out Plan
	if w.Branch != "" {
		src.Branch = w.Branch
	}
	w, err := s.checked(w)
	if err != nil {
		return out, err
	}
	p, err := src.locate()
	if err != nil {
		return out, err
	}
	p.branch = src.Branch
	got, err := s.share(ctx, p)
	if err != nil {
		return out, err
	}
	full, err := p.branchOf(got.after, src.Branch)
	if err != nil {
		return out, err
	}
	tip := got.after.refs[full]
	out.Branch, out.Tip = strings.TrimPrefix(full, "refs/heads/"), tip.String()
	out.Changes, err = withMirror(s.mirrorDir(p), func(m *mirror) ([]Change, error) {
		if _, err := m.draft(tip, w); err != nil {
			return nil, err
		}
		now, err := m.peel(tip)
		if err != nil {
			return nil, err
		}
		pending, err := m.pending(now, w)
		if err != nil {
			return nil, err
		}
		var changes []Change
		for _, f := range pending {
			e, err := m.entryAt(now.TreeHash, f.Path)
			if err != nil {
				return nil, err
			}
			c := Change{Path: f.Path, Content: f.Content, Gone: f.Content == nil}
			c.Executable = e.Mode == filemode.Executable
			if !e.Hash.IsZero() {
				c.Was = e.Hash.String()
			}
			changes = append(changes, c)
		}
		return changes, nil
	})
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opWrite, "the mirror of "+p.shown+" cannot be read", err)
	}
	return out, err
}

// branchOf returns the full name of the branch that a person means, among the references of a repository.
func (p place) branchOf(at refSet, branch string) (full string, err error) {
	full, ok := at.find(branch)
	if !ok {
		return "", branchFault(p, branch, at)
	}
	if !strings.HasPrefix(full, "refs/heads/") {
		return "", fault.New(opWrite, fault.Conflict,
			fmt.Sprintf("%q of %s is not a branch: nothing can be committed on it", printable(branch), p.shown)).
			Hint("let the environment follow a branch, or commit by hand")
	}
	return full, nil
}
