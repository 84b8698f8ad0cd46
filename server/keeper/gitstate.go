package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// gitHealth is what a keeper knows of the environment's repository. It saves a read of
// the database at every look.
type gitHealth struct {
	mu    sync.Mutex
	known bool
	state intent.GitState
	// asked is the reason for which a compile was asked for last, to find out how the
	// repository is; tries how often in a row it was, and next when it may be again.
	asked string
	tries int
	next  time.Time
}

func (g *gitHealth) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.asked, g.tries, g.next = false, "", 0, time.Time{}
}

func (g *gitHealth) set(s intent.GitState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state, g.known = s, true
}

// gitState returns the state of the repository as it was recorded last.
func (k *keeper) gitState(ctx context.Context) (intent.GitState, error) {
	k.git.mu.Lock()
	defer k.git.mu.Unlock()
	if k.git.known {
		return k.git.state, nil
	}
	s, err := k.cfg.Store.GitState(ctx, k.env)
	if err != nil {
		return intent.GitState{}, err
	}
	if k.git.known = true; s != nil {
		k.git.state = *s
	} else {
		k.git.state = intent.GitState{}
	}
	return k.git.state, nil
}

// recordGitState records the state of an environment's repository, and logs an error if
// it cannot.
func (k *keeper) recordGitState(ctx context.Context, s intent.GitState) {
	s.Checked = k.cfg.Now()
	if before, err := k.gitState(ctx); err == nil && before.Kind == s.Kind && before.Commit == s.Commit {
		s.Since = before.Since
	} else {
		s.Since = s.Checked
	}
	if k.persist(ctx, "record the state of Git", func() error { return k.cfg.Store.SetGitState(ctx, k.env, s) }) {
		k.git.set(s)
	}
	k.publish(k.env, bus.Environment, "")
}

// recordGitFailure records why a repository could not be fetched from, and reports
// whether it could not be before, for the same reason.
func (k *keeper) recordGitFailure(ctx context.Context, err error) (same bool) {
	before, readErr := k.gitState(ctx)
	s := intent.GitState{Kind: intent.GitFailing, Message: err.Error(), Reason: reasonOf(err)}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Advice != "" {
		whole := *f
		whole.Advice = ""
		s.Message, s.Advice = whole.Error(), f.Advice
	}
	k.recordGitState(ctx, s)
	return readErr == nil && before.Kind == intent.GitFailing && before.Reason == s.Reason
}

// recordReadable records that the repository could be fetched from. When that was not
// so before, it returns since when.
func (k *keeper) recordReadable(ctx context.Context) (unreadableSince *time.Time) {
	before, err := k.gitState(ctx)
	if err != nil || before.Kind != intent.GitFailing {
		return nil
	}
	k.recordGitState(ctx, intent.GitState{Kind: intent.GitOK})
	since := before.Since.UTC()
	return &since
}

// outage is the reason of all failures that are likely to pass by themselves.
const outage = "outage"

// outageLooks is how many looks in a row have to fail before people hear of an outage.
const outageLooks = 3

// reasonOf returns what makes a failure differ from another one, for people. The cause
// does not count: it may hold ports and times.
func reasonOf(err error) string {
	f := (*fault.Error)(nil)
	switch {
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Exhausted):
		return outage
	case errors.As(err, &f) && f.Message != "":
		return f.Message
	}
	return err.Error()
}

// looked is called after each look at the source of an environment. failures counts
// the looks in a row that failed, this one included.
func (r *Registry) looked(ctx context.Context, env intent.EnvironmentID, failures int, failed error) {
	k := r.keeper(env)
	switch {
	case k == nil:
	case failed != nil:
		k.unreadable(ctx, failures, failed)
	default:
		k.readable(ctx)
	}
}

// isNew reports whether the environment has no version yet.
func (k *keeper) isNew(ctx context.Context) bool {
	v, err := k.cfg.Store.ActiveVersion(ctx, k.env)
	return err == nil && v == nil
}

// unreadable asks for a compile when the source cannot be read for a reason that people
// have not heard of: the compile fails at fetching it, and so leaves a report, a
// notification and the state of the repository.
func (k *keeper) unreadable(ctx context.Context, failures int, failed error) {
	if gitsync.IsEmpty(failed) && k.isNew(ctx) {
		return // a new repository waits for its first commit; that is no failure
	}
	reason := reasonOf(failed)
	if reason == outage && failures < outageLooks {
		return
	}
	state, err := k.gitState(ctx)
	if err == nil && (state.Kind != intent.GitFailing || state.Reason != reason) {
		err = k.fetchToSee(ctx, reason, "the repository cannot be read")
	}
	if err != nil && ctx.Err() == nil {
		k.log.Error("nobody could be told that the source cannot be read", "error", err, "source", failed)
	}
}

// readable asks for a compile when the source can be read, and could not be fetched
// from before. It compiles what was missed, or has nothing to do.
func (k *keeper) readable(ctx context.Context) {
	state, err := k.gitState(ctx)
	if err == nil {
		if state.Kind != intent.GitFailing {
			k.git.mu.Lock()
			k.git.asked = ""
			k.git.mu.Unlock()
			return
		}
		err = k.fetchToSee(ctx, "readable", "the repository can be read again")
	}
	if err != nil && ctx.Err() == nil {
		k.log.Error("the source can be read again, and no compile could be asked for", "error", err)
	}
}

// The pauses between compiles that are asked for to see how the same matter goes on. A
// look at a repository may succeed where fetching fails, and the other way round.
const (
	seeAgainMin = time.Minute
	seeAgainMax = time.Hour
)

// fetchToSee asks for a compile that fetches, unless one is about to.
func (k *keeper) fetchToSee(ctx context.Context, reason, message string) error {
	defer k.lockMoves(k.env)()
	open, err := k.cfg.Store.OpenCompiles(ctx, k.env)
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.Update && o.Revision == nil {
			return nil
		}
	}
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return err
	}
	now := k.cfg.Now()
	k.git.mu.Lock()
	defer k.git.mu.Unlock()
	if k.git.asked != reason {
		k.git.asked, k.git.tries, k.git.next = reason, 0, time.Time{}
	}
	if now.Before(k.git.next) {
		return nil
	}
	trigger := intent.Trigger{Type: intent.TriggerSource, Message: message}
	if _, _, err := k.Enqueue(ctx, e, CompileRequest{Update: true, Trigger: trigger}); err != nil {
		return err
	}
	k.git.next = now.Add(min(seeAgainMin<<min(k.git.tries, 10), seeAgainMax))
	k.git.tries++
	return nil
}

// Blocked is the refusal of a commit that a person rolled back.
func Blocked(b intent.Block) *intent.Refusal {
	return &intent.Refusal{
		Kind: intent.GitBlocked, Commit: b.Commit,
		Message: fmt.Sprintf("%s is blocked: %s took it back: %s", short(b.Commit), b.By, b.Reason),
		Advice:  "push a fix: a newer commit is deployed as usual; or unblock this one with `ordain git unblock`",
	}
}
