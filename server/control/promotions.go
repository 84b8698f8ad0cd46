package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// An environment that follows another one compiles the commit that is deployed
// there, and no other:
//
//	staging ──deployed──▶ a promotion waits ──gates──▶ promoted, compile asked for ──▶ admit … release
//	                            ▲ looked at when something of staging moves, when
//	                            └ its soak ends, and after a start
//
// Whoever owns the environment that follows looks. What was found, and the
// promotion with its compile, is on record before anything else happens.

// promotionLook is how often it is looked without a reason: other processes
// change what is followed too, and say so to nobody here.
const promotionLook = 30 * time.Second

// promotionGap is the least time between two looks; where one takes long, for the
// environment is large, ten times that.
const promotionGap = 250 * time.Millisecond

// wakePromotions tells the keeper of an environment that it may follow otherwise.
func (c *Control) wakePromotions(env intent.EnvironmentID) {
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k != nil {
		select {
		case k.promote <- struct{}{}:
		default:
		}
	}
}

// keepPromotions looks after what waits to be promoted until ctx ends. It costs
// nothing while the environment follows none.
func (k *keeper) keepPromotions(ctx context.Context) {
	var moves *bus.Subscription
	var of intent.EnvironmentID
	forget := func() {
		if moves != nil {
			moves.Close()
			moves, of = nil, intent.EnvironmentID{}
		}
	}
	defer forget()
	for ctx.Err() == nil {
		began := time.Now()
		e, source, problem, err := k.control.followed(ctx, k.env)
		var events <-chan bus.Event
		switch {
		case err != nil:
		case e.Follows() == "":
			forget()
		case moves == nil || source != nil && source.ID != of:
			forget()
			if source != nil {
				of = source.ID
			}
			moves = k.control.cfg.Bus.Subscribe(about(of))
		}
		if moves != nil {
			events = moves.Events()
		}
		var next time.Duration
		if err == nil {
			next, err = k.control.lookAtPromotion(ctx, e, source, problem)
		}
		if err != nil {
			if ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
				k.log.Warn("what is followed cannot be looked at yet", "error", err)
			}
			next = ownRetry
		}
		took := time.Since(began)
		k.awaitPromotion(ctx, events, next)
		pause(ctx, max(promotionGap, 10*took)-time.Since(began)+took)
	}
}

// about accepts what may open or close a gate: everything about an environment
// but its dry runs and webhooks, and that others were made or renamed.
func about(source intent.EnvironmentID) func(bus.Event) bool {
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

// awaitPromotion waits for a reason to look again; next is 0 when only a change
// of the environment is one.
func (k *keeper) awaitPromotion(ctx context.Context, events <-chan bus.Event, next time.Duration) {
	var due <-chan time.Time
	if next > 0 {
		timer := time.NewTimer(next)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-k.promote:
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

// lookAtPromotion judges what is deployed in the source, and gives when to look again.
func (c *Control) lookAtPromotion(
	ctx context.Context,
	e intent.Environment,
	source *intent.Environment,
	problem error,
) (time.Duration, error) {
	why := e.Name + " follows its branch"
	if problem != nil {
		why = problem.Error()
	}
	p, err := c.cfg.Store.JudgePromotion(ctx, e, source, why, c.now())
	if err != nil || e.Follows() == "" {
		return 0, err
	}
	next := promotionLook
	if p == nil {
		return next, c.fetchAgain(ctx, e)
	}
	if p.State == intent.PromotionPromoted {
		c.cfg.Logger.Info(
			"promoted",
			"environment",
			e.ID,
			"commit",
			p.Commit,
			"from",
			p.SourceName,
			"version",
			p.Version,
			"compile",
			p.Compile,
		)
		c.promoted(e.ID, *p)
		return next, nil
	}
	c.publish(e.ID, bus.Promotion, p.ID.String())
	if _, approval, _, until := intent.GatesHeld(p.Gates); approval {
		c.publish(e.ID, bus.Notification, "")
	} else if !until.IsZero() {
		next = min(next, max(until.Sub(c.cfg.Now()), time.Millisecond))
	}
	return next, nil
}

// judgeNow looks at once, for a person who waits for the answer; the keeper looks
// again for what is to come.
func (c *Control) judgeNow(ctx context.Context, env intent.EnvironmentID) error {
	e, source, problem, err := c.followed(ctx, env)
	if err == nil {
		_, err = c.lookAtPromotion(ctx, e, source, problem)
	}
	c.wakePromotions(env)
	return err
}

// fetchAgain asks once more for the commit that was promoted last, where its
// repository could not be fetched from: nobody looks at the branch who would notice
// that it can be again.
func (c *Control) fetchAgain(ctx context.Context, e intent.Environment) error {
	state, err := c.cfg.Store.GitState(ctx, e.ID)
	if err != nil || state == nil || state.Kind != intent.GitFailing {
		return err
	}
	interval := max(time.Duration(e.Int("git_poll_interval"))*time.Second, promotionLook)
	last, err := c.cfg.Store.LastPromoted(ctx, e.ID)
	if err != nil || last == nil || last.Made > 0 || last.Success == nil || *last.Success ||
		c.cfg.Now().Sub(state.Checked) < interval {
		return err
	}
	open, err := c.cfg.Store.OpenCompiles(ctx, e.ID)
	if err != nil || len(open) > 0 {
		return err
	}
	message := fmt.Sprintf("%s of %s once more: it could not be fetched", last.Short(), last.SourceName)
	_, _, err = c.RequestCompile(
		ctx,
		e.ID,
		CompileRequest{Update: true, Trigger: intent.Trigger{Type: intent.TriggerPromotion, Message: message}},
	)
	return err
}

// promoted tells pages and the compile loop.
func (c *Control) promoted(env intent.EnvironmentID, p intent.Promotion) {
	c.publish(env, bus.Promotion, p.ID.String())
	c.publish(env, bus.Compile, p.Compile.String())
	c.wake(env)
}

// now is the time as the place of record keeps it.
func (c *Control) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Microsecond) }

// followed gives an environment with the one that it follows. problem says why
// that cannot be followed, err that it could not be found out.
func (c *Control) followed(
	ctx context.Context,
	env intent.EnvironmentID,
) (e intent.Environment, source *intent.Environment, problem, err error) {
	if e, err = c.cfg.Store.Environment(ctx, env); err != nil || e.Follows() == "" {
		return e, nil, nil, err
	}
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return e, nil, nil, err
	}
	source, problem = intent.SourceOf(all, e)
	return e, source, problem, nil
}

// mayFollow refuses a value of the setting follow that could promote nothing.
func (c *Control) mayFollow(ctx context.Context, e intent.Environment, value any) error {
	name, _ := value.(string)
	if name == "" {
		return nil
	}
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	settings := map[string]any{"follow": name}
	for i := range all {
		if all[i].ID == e.ID {
			all[i].Settings = settings
		}
	}
	e.Settings = settings
	if _, err := intent.SourceOf(all, e); err != nil {
		return fault.Wrap("control.SetSetting", fault.Invalid, err).Say("setting follow").
			Hint("name another environment of the same project and repository")
	}
	return nil
}

// staysFollowed refuses a change of an environment after which it, or one that
// follows it, could not go on following. What did not work before may stay so.
func (c *Control) staysFollowed(ctx context.Context, now intent.Environment) error {
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	after := slices.Clone(all)
	i := slices.IndexFunc(all, func(e intent.Environment) bool { return e.ID == now.ID })
	if i < 0 {
		return nil // it is not there to be changed
	}
	old := all[i]
	now.Settings = old.Settings
	after[i] = now
	var concerned []int
	for n, e := range all {
		follows := e.ProjectID == old.ProjectID && e.Follows() == old.Name
		if follows { // it goes on under the new name
			after[n].Settings = map[string]any{"follow": now.Name}
		}
		if _, err := intent.SourceOf(all, e); err == nil && e.Follows() != "" && (follows || n == i) {
			concerned = append(concerned, n)
		}
	}
	for _, n := range concerned {
		if _, err := intent.SourceOf(after, after[n]); err != nil {
			return fault.Wrap("control.UpdateEnvironment", fault.Conflict, err).
				Say(all[n].Name + " follows " + all[n].Follows()).
				Hint("change or remove the setting follow of " + all[n].Name + " first")
		}
	}
	return nil
}

// followsInstead says why a move of the repository starts nothing.
func followsInstead(e intent.Environment) string {
	return "it follows the environment " + e.Follows() + ", not its branch: commits come from there"
}

// wanted is the commit that an environment compiles that follows another one.
type wanted struct {
	commit  string
	branch  string // that the source had it from, as its version has it
	follows string // the source's branch, as it is set there
	why     string
}

// wanted gives nil when the environment follows its branch.
func (c *Control) wanted(ctx context.Context, e intent.Environment) (*wanted, error) {
	if e.Follows() == "" {
		return nil, nil
	}
	p, err := c.cfg.Store.LastPromoted(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if p != nil {
		return &wanted{
			commit:  p.Commit,
			branch:  p.Branch,
			follows: p.Follows,
			why:     fmt.Sprintf("Promoted from %s, where it is version %d", p.SourceName, p.Version),
		}, nil
	}
	active, err := c.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if active == nil || active.Provenance.Commit == "" {
		return nil, fault.New("control.wanted", fault.Conflict, fmt.Sprintf("%s follows %s, and nothing was promoted from there yet", e.Name, e.Follows())).
			Hint("`ordain git promotions " + shellWord(e.Name) + "` says what it waits for")
	}
	return &wanted{
		commit: active.Provenance.Commit, branch: active.Provenance.Branch, follows: e.Source.Branch,
		why: fmt.Sprintf("Nothing was promoted from %s yet: this is what is deployed", e.Follows()),
	}, nil
}

// Following is how an environment follows another one.
type Following struct {
	Follows string // its name; empty: the environment follows its branch
	Source  *intent.Environment
	Problem string // why that cannot be followed
	Policy  intent.FollowPolicy
	Paused  *intent.Actor
	// Idle is why no promotion waits; empty when one does.
	Idle       string
	Promotions []intent.Promotion // newest first
	Followers  []string           // names of those that follow this one
}

// Waiting is the promotion that waits; nil when none does.
func (f Following) Waiting() *intent.Promotion {
	if len(f.Promotions) > 0 && f.Promotions[0].State == intent.PromotionWaiting {
		return &f.Promotions[0]
	}
	return nil
}

// shownPromotions is how many of the newest are listed.
const shownPromotions = 100

// Following tells what an environment follows, what waits to be promoted to it, and what was.
func (c *Control) Following(ctx context.Context, env intent.EnvironmentID) (f Following, err error) {
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return f, err
	}
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return f, err
	}
	f.Follows, f.Policy = e.Follows(), e.FollowPolicy()
	for _, other := range all {
		if other.ProjectID == e.ProjectID && other.ID != e.ID && other.Follows() == e.Name {
			f.Followers = append(f.Followers, other.Name)
		}
	}
	if f.Promotions, err = c.cfg.Store.Promotions(ctx, env, shownPromotions); err != nil || f.Follows == "" {
		return f, err
	}
	if f.Paused, err = c.cfg.Store.PromotionPause(ctx, env); err != nil {
		return f, err
	}
	source, problem := intent.SourceOf(all, e)
	if problem != nil {
		f.Problem, f.Idle = problem.Error(), problem.Error()
		return f, nil
	}
	f.Source = source
	if f.Waiting() != nil {
		return f, nil
	}
	d, err := c.cfg.Store.Followed(ctx, source.ID)
	if err != nil {
		return f, err
	}
	if f.Idle = d.Unfit(source.Name); f.Idle == "" {
		f.Idle = fmt.Sprintf(
			"%s, which is deployed in %s, is what was promoted last",
			short(d.Provenance.Commit),
			source.Name,
		)
		if w, err := c.wanted(ctx, e); err != nil || w.commit != d.Provenance.Commit {
			f.Idle = fmt.Sprintf(
				"%s, which is deployed in %s, is about to be looked at",
				short(d.Provenance.Commit),
				source.Name,
			)
		}
	}
	return f, nil
}

// Promote promotes the commit that waits at once, in spite of its gates; commit
// may be shortened. What is blocked stays so, and nothing is promoted to an
// environment that is halted.
func (c *Control) Promote(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Promotion, error) {
	const op = "control.Promote"
	by := c.actor(ctx)
	if err := saidWhy(op, by); err != nil {
		return intent.Promotion{}, err
	}
	e, source, err := c.follower(ctx, op, env)
	if err != nil {
		return intent.Promotion{}, err
	}
	if commit, err = c.wholeCommit(ctx, op, env, commit); err != nil {
		return intent.Promotion{}, err
	}
	p, err := c.cfg.Store.Promote(ctx, e, source, commit, by)
	if err != nil {
		return p, err
	}
	c.cfg.Logger.Info(
		"promoted by a person",
		"environment",
		env,
		"commit",
		p.Commit,
		"from",
		p.SourceName,
		"by",
		by.By,
		"reason",
		by.Reason,
	)
	c.promoted(env, p)
	return p, nil
}

// ApprovePromotion approves the commit that waits, and no other; commit may be
// shortened. It is promoted once the other gates are open.
func (c *Control) ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string) error {
	const op = "control.ApprovePromotion"
	by := c.actor(ctx)
	if err := saidWhy(op, by); err != nil {
		return err
	}
	if _, _, err := c.follower(ctx, op, env); err != nil {
		return err
	}
	commit, err := c.wholeCommit(ctx, op, env, commit)
	if err == nil {
		err = c.cfg.Store.ApprovePromotion(ctx, env, commit, by)
	}
	if err != nil {
		return err
	}
	return c.judgeNow(ctx, env)
}

// PausePromotions holds all promotions to an environment until they are resumed.
func (c *Control) PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool) error {
	const op = "control.PausePromotions"
	by := c.actor(ctx)
	if err := saidWhy(op, by); err != nil {
		return err
	}
	if _, _, err := c.follower(ctx, op, env); pause && err != nil {
		return err
	}
	if err := c.cfg.Store.PausePromotions(ctx, env, pause, by); err != nil {
		return err
	}
	c.publish(env, bus.Promotion, "")
	return c.judgeNow(ctx, env)
}

// follower gives an environment with the one that it follows, or says that it follows none.
func (c *Control) follower(
	ctx context.Context,
	op string,
	env intent.EnvironmentID,
) (e, source intent.Environment, err error) {
	e, from, problem, err := c.followed(ctx, env)
	switch {
	case err != nil:
		return e, source, err
	case problem != nil:
		return e, source, fault.Wrap(op, fault.Conflict, problem)
	case from == nil:
		return e, source, fault.New(op, fault.Conflict, "the environment "+e.Name+" follows no other one").
			Hint("ordain settings set " + shellWord(e.Name) + " follow ENVIRONMENT")
	}
	return e, *from, nil
}

// wholeCommit gives the commit that waits when that is what is meant.
func (c *Control) wholeCommit(ctx context.Context, op string, env intent.EnvironmentID, commit string) (string, error) {
	newest, err := c.cfg.Store.Promotions(ctx, env, 1)
	if err != nil {
		return "", err
	}
	if len(newest) > 0 && newest[0].State == intent.PromotionWaiting && abbreviates(commit, newest[0].Commit) {
		return newest[0].Commit, nil
	}
	if len(commit) < 7 {
		return "", fault.New(op, fault.Invalid, "name the commit by seven or more of its digits")
	}
	return commit, nil // refused with what waits instead
}
