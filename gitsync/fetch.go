package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

const opFetch = "gitsync.Fetch"

// Fetch brings the mirror of a source up to date and resolves its branch.
// Calls for the same repository and credentials that arrive while a fetch is
// running share the next one, so each caller sees everything that was pushed
// before its call.
func (s *Syncer) Fetch(ctx context.Context, src Source) (intent.Revision, Report, error) {
	p, err := src.locate()
	if err != nil {
		return intent.Revision{}, Report{}, err
	}
	p.branch = src.Branch
	var rev intent.Revision
	got, err := s.share(ctx, p)
	if err == nil {
		rev, err = s.resolve(ctx, p, src, &got)
	}
	got.report.Output = endLine(got.report.Output)
	if err == nil {
		got.report.describe(got, rev, src.Branch)
	}
	return rev, got.report, err
}

// fetched is the result of one fetch, for all callers that share it. before are the
// references of the mirror, and after those of the repository.
type fetched struct {
	report        Report
	before, after refSet
	forced        map[string]bool // branches whose history was rewritten
}

// command returns what a person would have typed for a fetch.
func (s *Syncer) command(p place, mirrored bool) string {
	dir := s.mirrorDir(p)
	if mirrored {
		return "git -C " + shellQuote(dir) + " fetch --prune origin"
	}
	return "git clone --mirror " + p.options() + shellQuote(p.shown) + " " + shellQuote(dir)
}

// fetch runs one fetch, under the lock of the mirror.
func (s *Syncer) fetch(ctx context.Context, p place, dir string) (got fetched, err error) {
	got.report.Command = s.command(p, s.mirrored(p))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return got, diskFault(opFetch, "the folder of the mirrors cannot be made", err)
	}
	unlock, err := lockMirror(ctx, dir)
	if err != nil {
		return got, diskFault(opFetch, "the mirror of "+p.shown+" is in use", err)
	}
	defer unlock()

	from, err := s.dial(p)
	if err != nil {
		return got, p.remoteFault(opFetch, err)
	}
	defer from.close()
	whole, err := s.ask(ctx, from)
	if err != nil {
		return got, p.remoteFault(opFetch, err)
	}
	got.after = whole
	m, err := openMirror(dir)
	if err == nil {
		got.before = m.refs
	}
	if got.after = p.narrow(whole, got.before); len(got.after.refs) == 0 {
		if err == nil {
			m.close()
		}
		return got, branchFault(p, p.wanted(), whole)
	}
	switch {
	case err == nil:
		said, forced, err := s.update(ctx, from, p, m, &got.after)
		if err == nil {
			got.report.Output, got.forced = got.after.leftOut()+said, forced
			m.close()
			return got, nil
		}
		m.close()
		if !errors.Is(err, errCorrupt) {
			return got, p.remoteFault(opFetch, err)
		}
		return got, s.rebuild(ctx, from, p, dir, &got, err)
	case errors.Is(err, errCorrupt):
		return got, s.rebuild(ctx, from, p, dir, &got, err)
	case errors.Is(err, fs.ErrNotExist):
		got.report.Cloned = true
		said, err := s.clone(ctx, from, p, dir, &got.after)
		got.report.Output = got.after.leftOut() + said
		if err != nil {
			return got, p.remoteFault(opFetch, err)
		}
		return got, nil
	}
	return got, diskFault(opFetch, "the mirror of "+p.shown+" cannot be opened", err)
}

// ask asks a remote for its branches and tags, for at most AskTimeout.
func (s *Syncer) ask(ctx context.Context, from remote) (refSet, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AskTimeout)
	defer cancel()
	return from.refs(ctx)
}

// update fetches what a mirror lacks, and returns which branches were rewritten.
// References that cannot be fetched are moved to to.broken; the mirror keeps their
// former values.
func (s *Syncer) update(
	ctx context.Context,
	from remote,
	p place,
	m *mirror,
	to *refSet,
) (said string, forced map[string]bool, err error) {
	var want []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, name := range to.names() {
		if h := to.refs[name]; !seen[h] && !m.has(h) {
			seen[h] = true
			want = append(want, h)
		}
	}
	if len(want) > 0 {
		m.store.Sweep()
		b := &bringer{s: s, place: p, into: m, broken: map[plumbing.Hash]error{}, left: maxFetches}
		if said, err = b.bring(ctx, from, want); err != nil {
			return said, nil, err
		}
		for _, name := range to.names() {
			if why := b.broken[to.refs[name]]; why != nil {
				to.leaveOut(name, why)
			}
		}
		for _, h := range want {
			if b.broken[h] == nil && !m.has(h) {
				return said, nil, fmt.Errorf("%w: %s was fetched and is not there", errCorrupt, short(h.String()))
			}
		}
	}
	keep := refSet{head: to.head, refs: maps.Clone(to.refs)}
	for name := range to.broken {
		if old, ok := m.refs.refs[name]; ok {
			keep.refs[name] = old
		}
	}
	forced = m.forced(m.refs, keep)
	if err := m.retire(m.leftBehind(keep, forced)); err != nil {
		return said, nil, err
	}
	if err := m.setRefs(keep); err != nil {
		return said, nil, err
	}
	s.compact(ctx, m)
	return said, forced, nil
}

// clone makes a new mirror beside its place, and moves it there when it is complete.
func (s *Syncer) clone(ctx context.Context, from remote, p place, dir string, to *refSet) (string, error) {
	// A clone that was killed left these. Nobody uses them, because we hold the lock.
	stale, err := filepath.Glob(dir + ".new-*")
	if err != nil {
		return "", err
	}
	for _, old := range append(stale, dir+".old") {
		if err := os.RemoveAll(old); err != nil {
			return "", err
		}
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", err
	}
	m, err := createMirror(temp, p.shown)
	if err != nil {
		return "", err
	}
	said, _, err := s.update(ctx, from, p, m, to)
	m.close()
	if err != nil {
		return said, err
	}
	// If there is a mirror already, it is damaged.
	if err := os.Rename(dir, dir+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return said, err
	}
	if err := os.Rename(temp, dir); err != nil {
		return said, err
	}
	return said, os.RemoveAll(dir + ".old")
}

// rebuild replaces a damaged mirror. When the remote cannot be reached, the mirror stays as it is.
func (s *Syncer) rebuild(ctx context.Context, from remote, p place, dir string, got *fetched, why error) error {
	s.cfg.Logger.Warn("a mirror is damaged; it is made again", "url", p.shown, "dir", dir, "error", why)
	got.report.Rebuilt = true
	got.report.Command = s.command(p, false)
	said, err := s.clone(ctx, from, p, dir, &got.after)
	got.report.Output = fmt.Sprintf("The mirror was damaged (%v); it was made again.\n%s", why, said)
	if err != nil {
		return p.remoteFault(opFetch, err)
	}
	return nil
}

// repair rebuilds a mirror, unless somebody else did so while we waited for the lock.
func (s *Syncer) repair(ctx context.Context, p place, dir string, intact func(*mirror) error, why error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.FetchTimeout)
	defer cancel()
	unlock, err := lockMirror(ctx, dir)
	if err != nil {
		return diskFault(opFetch, "the mirror of "+p.shown+" is in use", err)
	}
	defer unlock()
	if m, err := openMirror(dir); err == nil {
		err = intact(m)
		m.close()
		if err == nil {
			return nil
		}
	}
	from, err := s.dial(p)
	if err != nil {
		return p.remoteFault(opFetch, err)
	}
	defer from.close()
	var got fetched
	if got.after, err = s.ask(ctx, from); err != nil {
		return p.remoteFault(opFetch, err)
	}
	got.after = p.narrow(got.after, refSet{})
	return s.rebuild(ctx, from, p, dir, &got, why)
}

// resolve finds the commit of a branch. If the mirror is damaged, resolve repairs it
// and tries once more.
func (s *Syncer) resolve(ctx context.Context, p place, src Source, got *fetched) (intent.Revision, error) {
	dir := s.mirrorDir(p)
	look := func(m *mirror) (rev intent.Revision, err error) {
		rev, err = m.revision(p, src, got.after)
		return rev, err
	}
	rev, err := withMirror(dir, look)
	if needsRepair(err) {
		why := err
		err = s.repair(ctx, p, dir, func(m *mirror) error { _, err := look(m); return err }, why)
		if err == nil {
			got.report.Rebuilt = true
			got.report.Output = fmt.Sprintf(
				"The mirror was damaged (%v); it was made again.\n%s",
				why,
				got.report.Output,
			)
			if rev, err = withMirror(dir, look); errors.Is(err, errCorrupt) {
				err = p.damaged(opFetch, err)
			}
		}
	}
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opFetch, "the mirror of "+p.shown+" cannot be read", err)
	}
	return rev, err
}

// needsRepair reports whether an error means that the mirror is damaged, or was
// removed after the fetch.
func needsRepair(err error) bool {
	return errors.Is(err, errCorrupt) || errors.Is(err, errNoMirror)
}

// withMirror opens a mirror for the duration of a call. The error is errNoMirror when there is none.
func withMirror[T any](dir string, use func(*mirror) (T, error)) (T, error) {
	m, err := openMirror(dir)
	if err != nil {
		var none T
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errCorrupt) {
			err = errNoMirror
		}
		return none, err
	}
	defer m.close()
	return use(m)
}

// revision finds the commit of a source among the references of its remote.
func (m *mirror) revision(p place, src Source, at refSet) (intent.Revision, error) {
	branch := src.Branch
	full, ok := at.find(branch)
	var h plumbing.Hash
	switch {
	case ok:
		h = at.refs[full]
	case plumbing.IsHash(branch) && m.has(plumbing.NewHash(branch)):
		h = plumbing.NewHash(branch)
	default:
		found, err := false, error(nil)
		if src.Abbreviated {
			h, found, err = m.abbreviated(p, branch)
		}
		if err != nil {
			return intent.Revision{}, err
		}
		if !found {
			return intent.Revision{}, branchFault(p, branch, at)
		}
	}
	c, err := m.peel(h)
	if errors.Is(err, errNoCommit) {
		return intent.Revision{}, fault.New(opFetch, fault.Invalid,
			fmt.Sprintf("%s in %s is a tag of something that is not a commit", printable(branch), p.shown)).
			Hint("choose a branch, or a tag of a commit")
	}
	if err != nil {
		return intent.Revision{}, err
	}
	name := branch
	if ok {
		name = plumbing.ReferenceName(full).Short()
	}
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return intent.Revision{
		Commit: c.Hash.String(), Branch: name, Author: provenance.Clean(c.Author.Name),
		Email:   provenance.Clean(c.Author.Email),
		Subject: provenance.Clean(strings.TrimSpace(subject)), Time: c.Committer.When,
	}, nil
}

// branchFault returns the fault for a branch, tag or commit that the repository does
// not have, or that is broken in it.
func branchFault(p place, branch string, at refSet) error {
	if full := at.meant(branch); at.broken[full] != nil {
		return p.brokenFault(opFetch, full, at.broken[full])
	}
	all := at.branches()
	if strings.HasPrefix(branch, rangePrefix) {
		return rangeFault(p, branch, at)
	}
	if plumbing.IsHash(branch) && p.depth > 0 {
		return fault.New(opFetch, fault.NotFound,
			fmt.Sprintf("commit %s is not among the newest %d of each branch of %s", short(branch), p.depth, p.shown)).
			Hint("raise git_depth, or set it to 0 to fetch all of the history")
	}
	advice := "push it, or set the environment's branch to one that is there: " + enumerate(all, 5)
	if len(all) == 0 {
		advice = "push a branch"
	}
	if branch == "" {
		return fault.New(opFetch, fault.NotFound, "the default branch of "+p.shown+" does not exist").
			Hint("set the environment's branch to one that is there: " + enumerate(all, 5))
	}
	return fault.New(opFetch, fault.NotFound,
		fmt.Sprintf("there is no branch or tag %q in %s", printable(branch), p.shown)).
		Hint(advice)
}

// forced returns the branches whose history was rewritten. It examines at most 20
// branches; the others are missing from the result.
func (m *mirror) forced(before, after refSet) map[string]bool {
	forced := map[string]bool{}
	looked := 0
	for name, old := range before.refs {
		now, ok := after.refs[name]
		if !ok || now == old || !strings.HasPrefix(name, "refs/heads/") {
			continue
		}
		if looked++; looked > 20 {
			break
		}
		forced[name] = m.rewritten(old, now)
	}
	return forced
}

// describe adds to the output what happened to one branch.
func (r *Report) describe(got fetched, rev intent.Revision, branch string) {
	var out strings.Builder
	out.WriteString(r.Output)
	full, ok := got.after.find(branch)
	old, known := got.before.refs[full]
	switch {
	case !ok || !known:
		fmt.Fprintf(&out, "%s is at %s %s\n", rev.Branch, rev.Short(), rev.Subject)
	case old == got.after.refs[full]:
		fmt.Fprintf(&out, "%s is unchanged at %s %s\n", rev.Branch, rev.Short(), rev.Subject)
	case got.forced[full]:
		r.Rewritten = true
		fmt.Fprintf(&out, "%s went from %s to %s %s; its history was rewritten (force-pushed)\n",
			rev.Branch, short(old.String()), rev.Short(), rev.Subject)
	default:
		fmt.Fprintf(&out, "%s went from %s to %s %s\n", rev.Branch, short(old.String()), rev.Short(), rev.Subject)
	}
	r.Output = out.String()
}

// shellQuote makes an argument safe to paste into a shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Tip asks the repository which commit a source's branch points to. It fetches nothing.
func (s *Syncer) Tip(ctx context.Context, src Source) (string, error) {
	const op = "gitsync.Tip"
	p, err := src.locate()
	if err != nil {
		return "", err
	}
	from, err := s.dial(p)
	if err != nil {
		return "", p.remoteFault(op, err)
	}
	defer from.close()
	at, err := s.ask(ctx, from)
	if err != nil {
		return "", p.remoteFault(op, err)
	}
	full, ok := at.find(src.Branch)
	switch {
	case !ok && plumbing.IsHash(src.Branch):
		return src.Branch, nil
	case !ok:
		return "", branchFault(p, src.Branch, at)
	}
	commit, err := from.peeled(full, at.refs[full])
	if err != nil {
		return "", p.brokenFault(op, full, err)
	}
	return commit.String(), nil
}
