package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// fetched is the outcome of one fetch, for all who share it. after is what
// the repository held; before what the mirror held.
type fetched struct {
	report        Report
	before, after refSet
	forced        map[string]bool // branches whose history was rewritten
}

type flightKey struct {
	mirror      string
	credentials Credentials // who may read it is for the remote to say, each time
	trust       Trust
	beside      string // the branch that is fetched beside Source.Only
}

// flight is a fetch that was asked for. The one that runs is followed by at
// most one that waits, and everybody who comes meanwhile joins that one.
type flight struct {
	running bool
	done    chan struct{}
	next    *flight
	waiting int
	cancel  context.CancelFunc
	result  fetched
	err     error
}

// share runs a fetch, or waits for one that has not begun.
func (s *Syncer) share(ctx context.Context, p place) (fetched, error) {
	key := flightKey{s.mirrorDir(p), p.credentials, p.trust, p.beside()}
	s.mu.Lock()
	f := s.flights[key]
	switch {
	case f == nil:
		f = &flight{done: make(chan struct{})}
		s.flights[key] = f
		s.begin(key, f, p)
	case f.next == nil:
		f.next = &flight{done: make(chan struct{})}
		f = f.next
	default:
		f = f.next
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		s.mu.Lock()
		if f.waiting--; f.waiting == 0 && f.cancel != nil {
			f.cancel() // nobody wants it any more
		}
		s.mu.Unlock()
		return fetched{report: Report{Command: s.command(p, s.mirrored(p))}}, p.remoteFault(opFetch, ctx.Err())
	}
}

// begin starts a flight; s.mu is held. It does not end with the context of
// the one who asked first: others wait for it too.
func (s *Syncer) begin(key flightKey, f *flight, p place) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.FetchTimeout)
	f.running, f.cancel = true, cancel
	go func() {
		defer cancel()
		f.result, f.err = s.fetch(ctx, p, key.mirror)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch next := f.next; {
		case next == nil || next.waiting == 0:
			delete(s.flights, key)
		default:
			s.flights[key] = next
			s.begin(key, next, p)
		}
		close(f.done)
	}()
}

func (s *Syncer) command(p place, mirrored bool) string {
	dir := s.mirrorDir(p)
	if mirrored {
		return "git -C " + shellQuote(dir) + " fetch --prune origin"
	}
	return "git clone --mirror " + p.options() + shellQuote(p.shown) + " " + shellQuote(dir)
}

// fetch does the work, under the lock of the mirror.
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
		said, forced, err := s.update(ctx, from, m, got.after)
		if err == nil {
			got.report.Output, got.forced = said, forced
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
		said, err := s.clone(ctx, from, p, dir, got.after)
		got.report.Output = said
		if err != nil {
			return got, p.remoteFault(opFetch, err)
		}
		return got, nil
	}
	return got, diskFault(opFetch, "the mirror of "+p.shown+" cannot be opened", err)
}

// ask bounds the time that a remote may take to name its branches.
func (s *Syncer) ask(ctx context.Context, from remote) (refSet, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AskTimeout)
	defer cancel()
	return from.refs(ctx)
}

// update fetches what a mirror lacks, and says which branches were rewritten.
func (s *Syncer) update(
	ctx context.Context,
	from remote,
	m *mirror,
	to refSet,
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
		if said, err = from.fetch(ctx, m, want); err != nil {
			return said, nil, err
		}
		for _, h := range want {
			if !m.has(h) {
				return said, nil, fmt.Errorf("%w: %s was fetched and is not there", errCorrupt, short(h.String()))
			}
		}
	}
	forced = m.forced(m.refs, to)
	if err := m.retire(m.leftBehind(to, forced)); err != nil {
		return said, nil, err
	}
	if err := m.setRefs(to); err != nil {
		return said, nil, err
	}
	s.compact(ctx, m)
	return said, forced, nil
}

// clone makes a new mirror beside, and moves it to its place when it is whole.
func (s *Syncer) clone(ctx context.Context, from remote, p place, dir string, to refSet) (string, error) {
	// What a killed clone left. The lock says that nobody uses it.
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
	said, _, err := s.update(ctx, from, m, to)
	m.close()
	if err != nil {
		return said, err
	}
	// Only a damaged mirror can be in the way.
	if err := os.Rename(dir, dir+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return said, err
	}
	if err := os.Rename(temp, dir); err != nil {
		return said, err
	}
	return said, os.RemoveAll(dir + ".old")
}

// rebuild replaces a damaged mirror. It stays as it is when the remote is away.
func (s *Syncer) rebuild(ctx context.Context, from remote, p place, dir string, got *fetched, why error) error {
	s.cfg.Logger.Warn("a mirror is damaged and is made anew", "url", p.shown, "dir", dir, "error", why)
	got.report.Rebuilt = true
	got.report.Command = s.command(p, false)
	said, err := s.clone(ctx, from, p, dir, got.after)
	got.report.Output = fmt.Sprintf("The mirror was damaged (%v); it was made anew.\n%s", why, said)
	if err != nil {
		return p.remoteFault(opFetch, err)
	}
	return nil
}

// repair rebuilds a mirror unless another did while we waited for the lock.
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

// resolve turns a branch into a commit, and mends the mirror once if that is
// what hinders it.
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
				"The mirror was damaged (%v); it was made anew.\n%s",
				why,
				got.report.Output,
			)
			rev, err = withMirror(dir, look)
		}
	}
	if f := (*fault.Error)(nil); err != nil && !errors.As(err, &f) {
		err = diskFault(opFetch, "the mirror of "+p.shown+" cannot be read", err)
	}
	return rev, err
}

// needsRepair reports whether an error says that the mirror is damaged, or
// went away since it was fetched into.
func needsRepair(err error) bool {
	return errors.Is(err, errCorrupt) || errors.Is(err, errNoMirror)
}

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

// revision finds the commit of a source among what the remote has.
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
		return intent.Revision{}, fault.New(opFetch, fault.Invalid, fmt.Sprintf("%s in %s is a tag of something that is no commit", printable(branch), p.shown)).
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
		Commit: c.Hash.String(), Branch: name, Author: provenance.Clean(c.Author.Name), Email: provenance.Clean(c.Author.Email),
		Subject: provenance.Clean(strings.TrimSpace(subject)), Time: c.Committer.When,
	}, nil
}

func branchFault(p place, branch string, at refSet) error {
	all := at.branches()
	if strings.HasPrefix(branch, rangePrefix) {
		return rangeFault(p, branch, at)
	}
	if plumbing.IsHash(branch) && p.depth > 0 {
		return fault.New(opFetch, fault.NotFound, fmt.Sprintf("commit %s is not among the newest %d of each branch of %s", short(branch), p.depth, p.shown)).
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
	return fault.New(opFetch, fault.NotFound, fmt.Sprintf("there is no branch or tag %q in %s", printable(branch), p.shown)).
		Hint(advice)
}

// forced finds the branches whose history was rewritten. It looks at a few
// only: a fetch that moves more is not one that a person reads line by line.
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

// describe adds what a person wants to know of one branch.
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

// Tip asks what commit a source's branch points to, without fetching anything.
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
	return from.peeled(full, at.refs[full]).String(), nil
}
