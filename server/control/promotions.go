package control

import (
	"context"
	"fmt"
	"slices"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/promote"
)

// mayFollow rejects a value of the setting follow with which nothing could ever be promoted.
func (c *Control) mayFollow(ctx context.Context, e intent.Environment, value any) error {
	name, _ := value.(string)
	if name == "" {
		return nil
	}
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	// An error names only environments that the sender may know of.
	p := access.Of(ctx)
	all = slices.DeleteFunc(all, func(other intent.Environment) bool {
		return p.Known() && other.ProjectID != e.ProjectID && !p.Sees(access.TargetOf(other))
	})
	e.Settings = map[string]any{"follow": name}
	if i := slices.IndexFunc(all, func(other intent.Environment) bool { return other.ID == e.ID }); i >= 0 {
		all[i].Settings = e.Settings
	} else {
		all = append(all, e) // it is about to be created
	}
	if _, err := promote.Source(all, e); err != nil {
		return fault.Wrap("control.SetSetting", fault.Invalid, err).Say("setting follow").
			Hint("name another environment of the same project and repository")
	}
	return nil
}

// staysFollowed rejects a change to an environment after which it, or one of its
// followers, could no longer follow. Following that was broken before may stay broken.
func (c *Control) staysFollowed(ctx context.Context, now intent.Environment) error {
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	after := slices.Clone(all)
	i := slices.IndexFunc(all, func(e intent.Environment) bool { return e.ID == now.ID })
	if i < 0 {
		return nil // no such environment: the change itself fails
	}
	old := all[i]
	now.Settings = old.Settings
	after[i] = now
	var concerned []int
	for n, e := range all {
		follows := e.ProjectID == old.ProjectID && e.Follows() == old.Name
		if follows { // follows it under its new name
			after[n].Settings = map[string]any{"follow": now.Name}
		}
		if _, err := promote.Source(all, e); err == nil && e.Follows() != "" && (follows || n == i) {
			concerned = append(concerned, n)
		}
	}
	for _, n := range concerned {
		if _, err := promote.Source(after, after[n]); err != nil {
			return fault.Wrap("control.UpdateEnvironment", fault.Conflict, err).
				Say(all[n].Name + " follows " + all[n].Follows()).
				Hint("change or remove the setting follow of " + all[n].Name + " first")
		}
	}
	return nil
}

// Following describes how an environment follows another one.
type Following struct {
	Follows string // name of the followed environment; empty: this one follows its branch
	Source  *intent.Environment
	Problem string // why it cannot be followed
	Policy  intent.FollowPolicy
	Paused  *intent.Actor
	// Idle says why no promotion is waiting; empty if one is.
	Idle       string
	Promotions []intent.Promotion // newest first
	Followers  []string           // names of the environments that follow this one
}

// Waiting returns the promotion that is waiting, or nil.
func (f Following) Waiting() *intent.Promotion {
	if len(f.Promotions) > 0 && f.Promotions[0].State == intent.PromotionWaiting {
		return &f.Promotions[0]
	}
	return nil
}

// shownPromotions is how many promotions are listed.
const shownPromotions = 100

// Following reports which environment is followed, and the promotions from it.
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
	source, problem := promote.Source(all, e)
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
	if f.Idle = promote.Unfit(d, source.Name); f.Idle == "" {
		f.Idle = fmt.Sprintf("%s, which is deployed in %s, was promoted already", short(d.Provenance.Commit),
			source.Name)
		if w, err := c.cfg.Keepers.PromotedCommit(ctx, e); err != nil || w.Commit != d.Provenance.Commit {
			f.Idle = fmt.Sprintf("%s, which is deployed in %s, is about to be checked", short(d.Provenance.Commit),
				source.Name)
		}
	}
	return f, nil
}

// Promote promotes the waiting commit at once, in spite of its gates. commit may be
// abbreviated. Promote does not promote blocked commits, and nothing to an environment
// that is halted.
func (c *Control) Promote(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Promotion, error) {
	const op = "control.Promote"
	by, err := c.reasoned(ctx, op)
	if err != nil {
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
	c.cfg.Logger.Info("promoted by a person", "environment", env, "commit", p.Commit, "from", p.SourceName, "by", by.By,
		"reason", by.Reason)
	c.cfg.Keepers.Promoted(env, p)
	return p, nil
}

// ApprovePromotion approves the waiting commit, and no other. commit may be
// abbreviated. The commit is promoted once the other gates are open.
func (c *Control) ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string) error {
	const op = "control.ApprovePromotion"
	by, err := c.reasoned(ctx, op)
	if err != nil {
		return err
	}
	if _, _, err := c.follower(ctx, op, env); err != nil {
		return err
	}
	commit, err = c.wholeCommit(ctx, op, env, commit)
	if err == nil {
		err = c.cfg.Store.ApprovePromotion(ctx, env, commit, by)
	}
	if err != nil {
		return err
	}
	return c.cfg.Keepers.JudgePromotion(ctx, env)
}

// PausePromotions holds all promotions to an environment until they are resumed.
func (c *Control) PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool) error {
	const op = "control.PausePromotions"
	by, err := c.reasoned(ctx, op)
	if err != nil {
		return err
	}
	if _, _, err := c.follower(ctx, op, env); pause && err != nil {
		return err
	}
	if err := c.cfg.Store.PausePromotions(ctx, env, pause, by); err != nil {
		return err
	}
	c.publish(env, bus.Promotion, "")
	return c.cfg.Keepers.JudgePromotion(ctx, env)
}

// follower returns an environment and the one that it follows, or Conflict if it follows none.
func (c *Control) follower(
	ctx context.Context,
	op string,
	env intent.EnvironmentID,
) (e, source intent.Environment, err error) {
	e, from, problem, err := c.cfg.Keepers.Followed(ctx, env)
	switch {
	case err != nil:
		return e, source, err
	case problem != nil:
		return e, source, fault.Wrap(op, fault.Conflict, problem)
	case from == nil:
		return e, source, fault.New(op, fault.Conflict, "the environment "+e.Name+" follows no other environment").
			Hint("ordain settings set " + forge.ShellWord(e.Name) + " follow ENVIRONMENT")
	}
	return e, *from, nil
}

// wholeCommit expands an abbreviated hash of the waiting commit.
func (c *Control) wholeCommit(ctx context.Context, op string, env intent.EnvironmentID, commit string) (string, error) {
	audit.Subject(ctx, "commit "+commit)
	newest, err := c.cfg.Store.Promotions(ctx, env, 1)
	if err != nil {
		return "", err
	}
	if len(newest) > 0 && newest[0].State == intent.PromotionWaiting && abbreviates(commit, newest[0].Commit) {
		return newest[0].Commit, nil
	}
	if len(commit) < 7 {
		return "", fault.New(op, fault.Invalid, "name the commit by at least seven characters of its hash")
	}
	return commit, nil // the store refuses it, and names the commit that is waiting
}
