package keeper

import (
	"context"
	"sync"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// noticed is called by the watcher when the branch of an environment points to a
// different commit than before.
func (r *Registry) noticed(ctx context.Context, m gitsync.Move) error {
	e, err := r.cfg.Store.Environment(ctx, m.Environment)
	if err != nil || e.Follows() != "" { // since the source was looked at
		return err
	}
	_, err = r.sourceMoved(ctx, e, m.Commit, intent.Trigger{Type: m.Kind, Message: m.Message})
	return err
}

// sourceMoved requests a compile of the commit that the branch of an environment points
// to, unless a compile has it or will have it. Simultaneous moves of an environment are
// handled one after another.
func (r *Registry) sourceMoved(
	ctx context.Context,
	e intent.Environment,
	commit string,
	why intent.Trigger,
) (moveOutcome, error) {
	defer r.lockMoves(e.ID)()
	if m, found, err := r.whoCompiles(ctx, e, commit); found || err != nil {
		return m, err
	}
	return r.request(ctx, e, why, "of "+short(commit))
}

// moduleMoved requests a compile because of a push to a module's repository, unless a
// request is waiting.
func (r *Registry) moduleMoved(ctx context.Context, e intent.Environment, message string) (moveOutcome, error) {
	defer r.lockMoves(e.ID)()
	open, err := r.cfg.Store.OpenCompiles(ctx, e.ID)
	if err != nil {
		return moveOutcome{}, err
	}
	for _, o := range open {
		if o.Update && o.Started == nil {
			return moveOutcome{compile: &o.ID, reason: "a compile that already waits will include it"}, nil
		}
	}
	return r.request(ctx, e, intent.Trigger{Type: intent.TriggerModule, Message: message}, "of the newest modules")
}

func (r *Registry) lockMoves(env intent.EnvironmentID) (unlock func()) {
	lock, _ := r.moving.LoadOrStore(env, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

// request requests a compile and returns the outcome.
func (r *Registry) request(
	ctx context.Context,
	e intent.Environment,
	why intent.Trigger,
	what string,
) (moveOutcome, error) {
	id, warning, err := r.Enqueue(ctx, e, CompileRequest{Update: true, Trigger: why})
	switch {
	case fault.Is(err, fault.Invalid): // it is bound to no repository any more
		return moveOutcome{reason: err.Error()}, nil
	case err != nil:
		return moveOutcome{}, err
	case warning != "":
		return moveOutcome{reason: warning}, nil
	}
	return moveOutcome{started: true, compile: &id, reason: "a compile " + what + " was asked for"}, nil
}
