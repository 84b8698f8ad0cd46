package keeper

import (
	"context"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// This file alone decides whether a commit is compiled already. The watcher and webhooks
// only report where a branch is. The decision is made twice: when a branch has moved, to
// avoid a needless request, and when the requested compile has fetched, because the
// branch may have moved back while the request waited.

// isCompiled reports whether last, the newest compile that had a commit, compiled this
// commit in full. It does not matter whether that compile failed: the same commit is
// compiled again only on request.
func isCompiled(last *intent.Compile, commit string) bool {
	return last != nil && last.Revision != nil && last.Revision.Commit == commit && !last.Partial
}

// repeats reports whether a compilation that was requested only because a branch moved,
// or because of a look at the repository, would repeat the last one, which succeeded.
func (c *compilation) repeats(ctx context.Context, commit string) bool {
	switch why := c.compile.Trigger.Type; {
	case why == intent.TriggerSource:
	case why == intent.TriggerPromotion, !c.compile.Moved():
		return false
	}
	last, err := c.cfg.Store.LastCompile(ctx, c.env)
	return err == nil && isCompiled(last, commit) && last.Success != nil && *last.Success
}

// moveOutcome says what a moved source led to.
type moveOutcome struct {
	started bool              // a compile was requested
	compile *intent.CompileID // that one, or the one that has the commit already
	reason  string            // for people
}

// whoCompiles finds the compile that has a commit of an environment, or will have it:
// one in the queue, the running one, or the last one. It returns false if a compile has
// to be requested. A commit that changes nothing relevant to the environment counts as
// compiled.
func (r *Registry) whoCompiles(ctx context.Context, e intent.Environment, commit string) (moveOutcome, bool, error) {
	if m, found, err := r.openCompile(ctx, e.ID, commit); found || err != nil {
		return m, found, err
	}
	last, err := r.cfg.Store.LastCompile(ctx, e.ID)
	if err != nil {
		return moveOutcome{}, false, err
	}
	if isCompiled(last, commit) {
		return moveOutcome{compile: &last.ID, reason: short(commit) + " is compiled already"}, true, nil
	}
	if last != nil && last.Revision != nil && last.Revision.Commit != commit {
		if why := r.untouched(ctx, e, last.Revision.Commit, commit); why != "" {
			return moveOutcome{reason: why}, true, nil
		}
	}
	return moveOutcome{}, false, nil
}

// choosing is how long a move waits for a compile to choose its commit.
const choosing = 30 * time.Second

// openCompile finds the open request that has a commit, or will have it. It waits for a
// compile that is still fetching, to see which commit that chooses.
func (r *Registry) openCompile(
	ctx context.Context,
	env intent.EnvironmentID,
	commit string,
) (m moveOutcome, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, choosing)
	defer cancel()
	moves := r.cfg.Bus.Subscribe(func(e bus.Event) bool { return e.Environment == env && e.Topic == bus.Compile })
	defer moves.Close()
	for {
		open, err := r.cfg.Store.OpenCompiles(ctx, env)
		if err != nil {
			return moveOutcome{}, false, err
		}
		fetching := false
		for _, o := range open {
			switch {
			case !o.Update || o.Substitute != nil:
			case o.Started == nil:
				return moveOutcome{compile: &o.ID, reason: "a compile that already waits will include it"}, true, nil
			case o.Revision == nil:
				fetching = true
			case o.Revision.Commit == commit:
				return moveOutcome{compile: &o.ID, reason: short(commit) + " is being compiled"}, true, nil
			}
		}
		if !fetching {
			return moveOutcome{}, false, nil
		}
		select {
		case <-moves.Events():
		case <-ctx.Done():
			return moveOutcome{}, false, nil // it takes long: an additional request does no harm
		}
	}
}

// untouched returns why a move does not concern the environment; empty if it may.
func (r *Registry) untouched(ctx context.Context, e intent.Environment, from, to string) string {
	scope, err := intent.ScopeOf(e)
	if err != nil || scope.Everything() {
		return ""
	}
	src, err := r.cfg.Sources.Of(ctx, e)
	if err != nil {
		return ""
	}
	if _, _, err := r.cfg.Git.Fetch(ctx, src); err != nil {
		return "" // the compile will report what is wrong
	}
	others, touched := 0, false
	err = r.cfg.Git.Changed(ctx, src, from, to, func(path string) bool {
		if touched = scope.Has(path); !touched {
			others++
		}
		return !touched
	})
	if err != nil || touched {
		return "" // history was rewritten: the commits cannot be compared, so compile
	}
	files := "files"
	if others == 1 {
		files = "file"
	}
	return fmt.Sprintf("nothing of %s changed between %s and %s; %d %s elsewhere did",
		scope, short(from), short(to), others, files)
}

func short(commit string) string { return commit[:min(7, len(commit))] }
