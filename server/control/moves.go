package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// move is what came of a source that moved.
type move struct {
	started bool              // a compile was asked for
	compile *intent.CompileID // that one, or the one that has the commit already
	reason  string            // for people
}

// SourceMoved is told by the watcher that the branch of an environment points
// to another commit.
func (c *Control) SourceMoved(ctx context.Context, env intent.EnvironmentID, commit, kind, message string) error {
	_, err := c.sourceMoved(ctx, env, commit, kind, message)
	return err
}

// sourceMoved asks for a compile of what an environment follows, unless there
// is one: a request that waits already takes the commit along, a run that
// compiles it already needs no other, and neither does a commit that changed
// nothing of the environment's. Those who notice the same move come one after another.
func (c *Control) sourceMoved(
	ctx context.Context,
	env intent.EnvironmentID,
	commit, kind, message string,
) (move, error) {
	unlock := c.oneMove(env)
	defer unlock()
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return move{}, err
	}
	if e.Follows() != "" { // since the source was looked at
		return move{reason: followsInstead(e)}, nil
	}
	if m, ok, err := c.takenAlong(ctx, env, commit); ok || err != nil {
		return m, err
	}
	last, err := c.cfg.Store.LastCompile(ctx, env)
	if err != nil {
		return move{}, err
	}
	if last != nil && last.Revision != nil {
		if last.Revision.Commit == commit {
			return move{compile: &last.ID, reason: short(commit) + " is compiled already"}, nil
		}
		if why := c.untouched(ctx, e, last.Revision.Commit, commit); why != "" {
			return move{reason: why}, nil
		}
	}
	return c.request(
		ctx,
		env,
		CompileRequest{Update: true, Trigger: intent.Trigger{Type: kind, Message: message}},
		"of "+short(commit),
	)
}

// choosing is how long a move waits for a run to choose its commit.
const choosing = 30 * time.Second

// takenAlong finds the open request that has a commit, or will have it. A run
// that is still fetching is waited for: which commit it chose decides.
func (c *Control) takenAlong(
	ctx context.Context,
	env intent.EnvironmentID,
	commit string,
) (m move, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, choosing)
	defer cancel()
	moves := c.cfg.Bus.Subscribe(func(e bus.Event) bool { return e.Environment == env && e.Topic == bus.Compile })
	defer moves.Close()
	for {
		open, err := c.cfg.Store.OpenCompiles(ctx, env)
		if err != nil {
			return move{}, false, err
		}
		fetching := false
		for _, o := range open {
			switch {
			case !o.Update || o.Substitute != nil:
			case o.Started == nil:
				return move{compile: &o.ID, reason: "a compile waits that takes it along"}, true, nil
			case o.Revision == nil:
				fetching = true
			case o.Revision.Commit == commit:
				return move{compile: &o.ID, reason: short(commit) + " is being compiled"}, true, nil
			}
		}
		if !fetching {
			return move{}, false, nil
		}
		select {
		case <-moves.Events():
		case <-ctx.Done():
			return move{}, false, nil // it takes its time: a request of its own loses nothing
		}
	}
}

// moduleMoved asks for a compile because a module's repository was pushed to,
// unless one waits.
func (c *Control) moduleMoved(ctx context.Context, env intent.EnvironmentID, message string) (move, error) {
	unlock := c.oneMove(env)
	defer unlock()
	open, err := c.cfg.Store.OpenCompiles(ctx, env)
	if err != nil {
		return move{}, err
	}
	for _, o := range open {
		if o.Update && o.Started == nil {
			return move{compile: &o.ID, reason: "a compile waits that takes it along"}, nil
		}
	}
	return c.request(
		ctx,
		env,
		CompileRequest{Update: true, Trigger: intent.Trigger{Type: intent.TriggerModule, Message: message}},
		"of the newest modules",
	)
}

// oneMove lets those who notice moves of an environment's repositories act one after another.
func (c *Control) oneMove(env intent.EnvironmentID) (unlock func()) {
	lock, _ := c.moving.LoadOrStore(env, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

// request asks for a compile and says what came of it.
func (c *Control) request(ctx context.Context, env intent.EnvironmentID, r CompileRequest, what string) (move, error) {
	id, warning, err := c.RequestCompile(ctx, env, r)
	switch {
	case fault.Is(err, fault.Invalid): // it is bound to no repository any more
		return move{reason: err.Error()}, nil
	case err != nil:
		return move{}, err
	case warning != "":
		return move{reason: warning}, nil
	}
	return move{started: true, compile: &id, reason: "a compile " + what + " was asked for"}, nil
}

func short(commit string) string {
	if len(commit) > 7 {
		return commit[:7]
	}
	return commit
}

// untouched says why a move concerns nothing of the environment; empty when it may.
func (c *Control) untouched(ctx context.Context, e intent.Environment, from, to string) string {
	scope, err := intent.ScopeOf(e)
	if err != nil || scope.Everything() {
		return ""
	}
	source, err := c.gitSource(ctx, e)
	if err != nil {
		return ""
	}
	if _, _, err := c.cfg.Git.Fetch(ctx, source); err != nil {
		return "" // the compile says what is wrong
	}
	others, touched := 0, false
	err = c.cfg.Git.Changed(ctx, source, from, to, func(path string) bool {
		if touched = scope.Has(path); !touched {
			others++
		}
		return !touched
	})
	if err != nil || touched {
		return "" // what cannot be compared, for history was rewritten, is compiled
	}
	return fmt.Sprintf(
		"nothing of %s changed between %s and %s; %s elsewhere did",
		scope,
		short(from),
		short(to),
		counted(others, "file", "files"),
	)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// modulesKnown records the repositories of a project's modules: pushes to them
// concern the environment from now on.
func (r *run) modulesKnown(ctx context.Context, urls map[string]string) {
	if err := r.control.cfg.Store.SetModules(ctx, r.env, urls); err != nil {
		r.log.Warn("the repositories of modules could not be recorded; webhooks about them start nothing", "error", err)
		return
	}
	r.control.hookGeneration.Add(1)
}
