package keeper

import (
	"context"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/promote"
)

// An environment that follows another one compiles the commit that is deployed
// there, and no other:
//
//	staging ──deployed──▶ a promotion waits ──gates──▶ promoted, compile asked for ──▶ admit … release
//	                            ▲ looked at when something of staging moves, when
//	                            └ its soak ends, and after a start
//
// The keeper of the following environment does this. It records what it found, and the
// promotion with its compile, before anything else happens.

// promotionInterval is how often the keeper looks without a reason, because other
// processes may change the followed environment without an event in this process.
const promotionInterval = 30 * time.Second

// promotionGap is the shortest time between two looks. If a look takes long because the
// environment is large, the gap is ten times as long as the look.
const promotionGap = 250 * time.Millisecond

// keepPromotions handles promotions to the environment until ctx ends. It does nothing
// while the environment follows no other one.
func (k *keeper) keepPromotions(ctx context.Context) {
	var moves *bus.Subscription
	var of intent.EnvironmentID
	unsubscribe := func() {
		if moves != nil {
			moves.Close()
			moves, of = nil, intent.EnvironmentID{}
		}
	}
	defer unsubscribe()
	for ctx.Err() == nil {
		began := time.Now()
		e, source, problem, err := k.Followed(ctx, k.env)
		var events <-chan bus.Event
		switch {
		case err != nil:
		case e.Follows() == "":
			unsubscribe()
		case moves == nil || source != nil && source.ID != of:
			unsubscribe()
			if source != nil {
				of = source.ID
			}
			moves = k.cfg.Bus.Subscribe(mayOpenGates(of))
		}
		if moves != nil {
			events = moves.Events()
		}
		var next time.Duration
		if err == nil {
			next, err = k.lookAtPromotion(ctx, e, source, problem)
		}
		if err != nil {
			if ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
				k.log.Warn("cannot read the followed environment yet", "error", err)
			}
			next = ownRetry
		}
		took := time.Since(began)
		k.awaitPromotion(ctx, events, next)
		pause(ctx, max(promotionGap, 10*took)-time.Since(began)+took)
	}
}

// mayOpenGates selects the events that may open or close a gate: all events of an
// environment except those of dry runs and webhooks, and the creation or renaming of
// other environments.
func mayOpenGates(source intent.EnvironmentID) func(bus.Event) bool {
	return func(e bus.Event) bool {
		switch e.Topic {
		case bus.Environment, bus.Lagged:
			return true
		case bus.Version, bus.Resource:
			return e.Environment == source
		}
		return false
	}
}

// awaitPromotion waits for a reason to look again. If next is 0, only a change of the
// environment is one.
func (k *keeper) awaitPromotion(ctx context.Context, events <-chan bus.Event, next time.Duration) {
	var due <-chan time.Time
	if next > 0 {
		timer := time.NewTimer(next)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-k.promotionWakes:
	case <-events:
	case <-due:
	}
	for {
		select {
		case <-events: // they all mean: look
		default:
			return
		}
	}
}

// lookAtPromotion decides on the commit that is deployed in the source, and returns when to look again.
func (r *Registry) lookAtPromotion(
	ctx context.Context,
	e intent.Environment,
	source *intent.Environment,
	problem error,
) (time.Duration, error) {
	why := e.Name + " follows its branch"
	if problem != nil {
		why = problem.Error()
	}
	p, err := r.cfg.Store.JudgePromotion(ctx, e, source, why, r.now())
	if err != nil || e.Follows() == "" {
		return 0, err
	}
	next := promotionInterval
	if p == nil {
		return next, r.fetchAgain(ctx, e)
	}
	if p.State == intent.PromotionPromoted {
		r.cfg.Logger.Info("promoted", "environment", e.ID, "commit", p.Commit,
			"from", p.SourceName, "version", p.Version, "compile", p.Compile)
		r.Promoted(e.ID, *p)
		return next, nil
	}
	r.publish(e.ID, bus.Promotion, p.ID.String())
	if hold := promote.Held(p.Gates); hold.Approval {
		r.publish(e.ID, bus.Notification, "")
	} else if !hold.Next.IsZero() {
		next = min(next, max(hold.Next.Sub(r.cfg.Now()), time.Millisecond))
	}
	return next, nil
}

// JudgePromotion evaluates the waiting promotion of an environment at once, for a person
// who waits for the answer. The keeper evaluates it again later.
func (r *Registry) JudgePromotion(ctx context.Context, env intent.EnvironmentID) error {
	e, source, problem, err := r.Followed(ctx, env)
	if err == nil {
		_, err = r.lookAtPromotion(ctx, e, source, problem)
	}
	r.nudge(env)
	return err
}

// Promoted notifies pages and the compile loop of a promotion.
func (r *Registry) Promoted(env intent.EnvironmentID, p intent.Promotion) {
	r.publish(env, bus.Promotion, p.ID.String())
	r.Enqueued(env, *p.Compile)
}

// fetchAgain requests another compile of the last promoted commit if its repository could
// not be fetched. The watcher does not watch the branch of an environment that follows
// another one, so it would not notice that the repository is back.
func (r *Registry) fetchAgain(ctx context.Context, e intent.Environment) error {
	state, err := r.cfg.Store.GitState(ctx, e.ID)
	if err != nil || state == nil || state.Kind != intent.GitFailing {
		return err
	}
	interval := max(time.Duration(e.Int("git_poll_interval"))*time.Second, promotionInterval)
	last, err := r.cfg.Store.LastPromoted(ctx, e.ID)
	if err != nil || last == nil || last.Made > 0 || last.Success == nil || *last.Success ||
		r.cfg.Now().Sub(state.Checked) < interval {
		return err
	}
	open, err := r.cfg.Store.OpenCompiles(ctx, e.ID)
	if err != nil || len(open) > 0 {
		return err
	}
	message := fmt.Sprintf("%s of %s once more: it could not be fetched", last.Short(), last.SourceName)
	_, _, err = r.Enqueue(ctx, e, CompileRequest{
		Update: true, Trigger: intent.Trigger{Type: intent.TriggerPromotion, Message: message},
	})
	return err
}

// Followed returns an environment with the one that it follows, if it follows one.
// problem says why it cannot be followed; err means that this could not be determined.
func (r *Registry) Followed(
	ctx context.Context,
	env intent.EnvironmentID,
) (e intent.Environment, source *intent.Environment, problem, err error) {
	if e, err = r.cfg.Store.Environment(ctx, env); err != nil || e.Follows() == "" {
		return e, nil, nil, err
	}
	all, err := r.cfg.Store.Environments(ctx)
	if err != nil {
		return e, nil, nil, err
	}
	source, problem = promote.Source(all, e)
	return e, source, problem, nil
}

// followsInstead returns why a move of the repository starts no compile.
func followsInstead(e intent.Environment) string {
	return "it follows the environment " + e.Follows() + ", not its branch: commits come from there"
}

// PromotedCommit is the commit that an environment compiles if it follows another one.
type PromotedCommit struct {
	Commit  string
	Branch  string // the branch of the source's version
	Follows string // the branch setting of the source
	Why     string
}

// PromotedCommit returns the commit that an environment compiles because it follows
// another one, or nil if it follows its branch.
func (r *Registry) PromotedCommit(ctx context.Context, e intent.Environment) (*PromotedCommit, error) {
	if e.Follows() == "" {
		return nil, nil
	}
	p, err := r.cfg.Store.LastPromoted(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if p != nil {
		return &PromotedCommit{
			Commit: p.Commit, Branch: p.Branch, Follows: p.Follows,
			Why: fmt.Sprintf("Promoted from %s, where it is version %d", p.SourceName, p.Version),
		}, nil
	}
	active, err := r.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if active == nil || active.Provenance.Commit == "" {
		return nil, fault.New("keeper.PromotedCommit", fault.Conflict,
			fmt.Sprintf("%s follows %s, and nothing was promoted from there yet", e.Name, e.Follows())).
			Hint("`ordain git promotions " + forge.ShellWord(e.Name) + "` shows what it is waiting for")
	}
	return &PromotedCommit{
		Commit: active.Provenance.Commit, Branch: active.Provenance.Branch, Follows: e.Source.Branch,
		Why: fmt.Sprintf("Nothing was promoted from %s yet: this is what is deployed", e.Follows()),
	}, nil
}
