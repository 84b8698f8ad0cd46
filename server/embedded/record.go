package embedded

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// patience is how long the record may fail before a run is given up. A server would wait for its database; here a
// person waits, and the database is ours.
const patience = 20 * time.Second

// record is the store as the deployer of one run sees it: agents that the run is not for are paused, breakers are
// closed, and what is recorded is told to the run.
type record struct {
	*store.Store
	chosen   func(agent string) bool
	finished func([]intent.FinishedAction)
	trouble  func(error) // the record has failed for longer than patience

	mu     sync.Mutex
	failed time.Time // since when it fails; zero: it does not
}

func (r *record) Agents(
	ctx context.Context, env intent.EnvironmentID, q intent.ListQuery,
) (intent.Page[intent.Agent], error) {
	page, err := r.Store.Agents(ctx, env, q)
	for i := range page.Items {
		page.Items[i].Breaker = intent.Breaker{}
		page.Items[i].Paused = !r.chosen(page.Items[i].Name)
	}
	return page, r.noted(err)
}

// OpenDryRuns leaves alone what an earlier run was asked for.
func (r *record) OpenDryRuns(context.Context, intent.EnvironmentID) ([]intent.DryRun, error) {
	return nil, nil
}

func (r *record) StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error {
	return r.noted(r.Store.StartActions(ctx, env, actions))
}

func (r *record) FinishActions(ctx context.Context, env intent.EnvironmentID, done []intent.FinishedAction) error {
	err := r.Store.FinishActions(ctx, env, done)
	if err == nil {
		r.finished(done)
	}
	return r.noted(err)
}

func (r *record) States(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceState, error) {
	states, err := r.Store.States(ctx, env)
	return states, r.noted(err)
}

func (r *record) AddDryRunDiffs(
	ctx context.Context, env intent.EnvironmentID, id intent.ActionID, diffs []intent.ResourceDiff,
) error {
	return r.noted(r.Store.AddDryRunDiffs(ctx, env, id, diffs))
}

// noted passes an error on, and reports it if the record has failed for too long.
func (r *record) noted(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.failed = time.Time{}
	case r.failed.IsZero():
		r.failed = time.Now()
	case time.Since(r.failed) > patience:
		r.trouble(err)
	}
	return err
}

// looking is the record of a dry run, in which nothing is deployed: the deployer finds no version that is the intent,
// nothing that was cut off, and no fact to ask for.
type looking struct{ *record }

func (looking) ActiveVersion(context.Context, intent.EnvironmentID) (*intent.Version, error) {
	return nil, nil
}

func (looking) States(context.Context, intent.EnvironmentID) ([]intent.ResourceState, error) {
	return nil, nil
}

func (looking) ResetDeploying(context.Context, intent.EnvironmentID, time.Time, bool) (int, error) {
	return 0, nil
}

func (looking) FactRequests(context.Context, intent.EnvironmentID) ([]intent.ResourceID, error) {
	return nil, nil
}

func (looking) FactsDue(context.Context, intent.EnvironmentID) ([]intent.FactsDue, error) {
	return nil, nil
}
