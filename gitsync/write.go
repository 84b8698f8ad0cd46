package gitsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
)

const opWrite = "gitsync.Write"

// ErrProtected means that the remote takes no direct commits on a branch. Faults of Write wrap it, and hold the reason
// that the remote gave.
var ErrProtected = errors.New("the branch is protected")

// maxWrites is how often Write tries when others push to the branch at the same time.
const maxWrites = 5

// Identity is a person or a program that a commit names.
type Identity struct {
	Name  string
	Email string
}

// Ordain is the committer of what the server writes.
var Ordain = Identity{Name: "Ordain", Email: "ordain@localhost"}

// FileChange is a file as a commit leaves it.
type FileChange struct {
	Path    string // relative to the top of the repository, with slashes
	Content []byte // the whole file; nil removes it, and an empty slice makes it empty
}

// Write is a commit that the server makes.
type Write struct {
	Branch string // to commit on; empty: the branch of the source
	// Base is the commit that the caller read, as a full hash; empty for none. Write fails with a Conflict when one of
	// Files has changed since.
	Base      string
	Files     []FileChange
	Author    Identity
	Committer Identity // empty: Ordain
	Message   string
	// NewBranch, when set, is a branch to make: it gets the commit, on top of Branch, which stays as it is.
	NewBranch string
}

// Write commits files on top of a branch, pushes the commit, and returns its hash. When somebody pushes at the same
// time, it makes the commit again on top of theirs. If the branch has all of these contents already, it makes no commit
// and no new branch, and returns the tip: therefore a call that failed may be repeated.
//
// The faults are: Conflict when a file changed since Base, when something is in the way of a file, when the source
// follows no branch, when NewBranch exists, and when others keep pushing; NotFound when the branch is gone; Forbidden
// when the credentials allow only reading, and, wrapping ErrProtected, when the remote refuses commits on the branch.
func (s *Syncer) Write(ctx context.Context, src Source, w Write) (commit string, err error) {
	if w.Branch != "" {
		src.Branch = w.Branch
	}
	if w, err = s.checked(w); err != nil {
		return "", err
	}
	p, err := src.locate()
	if err != nil {
		return "", err
	}
	p.branch = src.Branch
	ctx, cancel := context.WithTimeout(ctx, s.cfg.FetchTimeout)
	defer cancel()
	var stale *staleError
	for attempt := range maxWrites {
		if attempt > 0 {
			if err := pause(ctx, attempt); err != nil {
				return "", p.remoteFault(opWrite, err)
			}
		}
		commit, err := s.writeOnce(ctx, p, src.Branch, w)
		if !errors.As(err, &stale) {
			return commit, err
		}
	}
	return "", fault.New(opWrite, fault.Conflict, fmt.Sprintf("the commit could not be pushed to %s: others pushed to "+
		"the branch at the same time, %d times (%s)", p.shown, maxWrites, stale.why)).
		Hint("try again")
}

// pause waits a little before another attempt, so that writers on several servers do not stay in step.
func pause(ctx context.Context, attempt int) error {
	most := time.Duration(attempt) * 100 * time.Millisecond
	timer := time.NewTimer(most/4 + rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// staleError means that a branch moved, or is being moved, while a commit for it was made.
type staleError struct{ why string }

func (e *staleError) Error() string { return e.why }

// writeOnce makes the commit on top of the present tip and pushes it. The error is a staleError when the branch moved
// meanwhile.
//
// The lock of the mirror is held from looking at the tip until the commit is in the mirror: writers that share the
// mirrors, in one process or in several, wait for each other and do not have to try again.
func (s *Syncer) writeOnce(ctx context.Context, p place, branch string, w Write) (string, error) {
	got, err := s.share(ctx, p)
	if err != nil {
		return "", err
	}
	full, err := p.branchOf(got.after, branch)
	if err != nil {
		return "", err
	}
	dir := s.mirrorDir(p)
	unlock, err := lockMirror(ctx, dir)
	if err != nil {
		return "", diskFault(opWrite, "the mirror of "+p.shown+" is in use", err)
	}
	defer unlock()
	to, err := s.dialPush(p)
	if err != nil {
		return "", p.pushFault(err)
	}
	defer to.close()
	at, err := s.askPush(ctx, to)
	if err != nil {
		return "", p.pushFault(err)
	}
	tip, ok := at[full]
	if !ok {
		return "", &staleError{"the branch was removed"} // the next fetch says so, or finds it again
	}
	commit, err := withMirror(dir, func(m *mirror) (plumbing.Hash, error) {
		if !m.has(tip) {
			return plumbing.ZeroHash, &staleError{"the branch moved to " + short(tip.String())}
		}
		return s.commitOn(ctx, m, to, refChange{name: full, from: tip}, w)
	})
	switch {
	case errors.As(err, new(*staleError)):
		return "", err
	case errors.Is(err, errNoMirror), errors.Is(err, errCorrupt):
		return "", &staleError{err.Error()} // the next fetch makes it again
	case err == nil:
		return commit.String(), nil
	}
	if f := (*fault.Error)(nil); !errors.As(err, &f) {
		err = diskFault(opWrite, "the mirror of "+p.shown+" cannot be read", err)
	}
	return "", err
}

// commitOn makes the commit on top of a branch, pushes it, and adds it to the mirror. The mirror has the tip, which is
// change.from.
func (s *Syncer) commitOn(
	ctx context.Context, m *mirror, to *pusher, change refChange, w Write,
) (commit plumbing.Hash, err error) {
	p, tip := to.place, change.from
	made, err := m.draft(tip, w)
	if err != nil || len(made.objects) == 0 {
		return tip, err
	}
	change.to = made.commit
	if w.NewBranch != "" {
		change.name, change.from = "refs/heads/"+w.NewBranch, plumbing.ZeroHash
		if _, there := to.adv.References[change.name]; there {
			return tip, fault.New(opWrite, fault.Conflict,
				fmt.Sprintf("the branch %q exists already in %s", printable(w.NewBranch), p.shown)).
				Hint("choose another name, or remove the branch")
		}
	}
	pack, err := made.pack()
	if err != nil {
		return tip, err
	}
	if err := to.push(ctx, change, pack); err != nil {
		return tip, p.pushFault(err)
	}
	// It is done. If it does not get into the mirror, the next fetch brings it.
	if err := m.adopt(p, made, change); err != nil {
		s.cfg.Logger.Warn("a commit was pushed and could not be added to the mirror", "url", p.shown,
			"commit", short(made.commit.String()), "error", err)
	}
	return made.commit, nil
}

// adopt adds a commit that was pushed to the mirror.
func (m *mirror) adopt(p place, made *draft, change refChange) error {
	for _, o := range made.objects {
		if m.has(o.Hash()) {
			continue
		}
		if err := m.store.Put(o); err != nil {
			return err
		}
	}
	if _, known := m.refs.refs[change.name]; !known && p.only != "" {
		return m.retire([]plumbing.Hash{made.commit}) // the mirror does not have this branch
	}
	to := refSet{head: m.refs.head, refs: map[string]plumbing.Hash{}}
	for name, h := range m.refs.refs {
		to.refs[name] = h
	}
	to.refs[change.name] = made.commit
	return m.setRefs(to)
}
