package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// A pull request is looked up at its forge whenever somebody says that it
// moved: a webhook, the clock or a person. What they say of it is not believed.
//
//	PullMoved ─▶ outbox ─▶ lookAtPull ─▶ may its code run? ─yes─▶ preview of the merge result ─▶ comment
//	                                             └─no──▶ comment: needs approval ─▶ ApprovePull

// PullMoved records that a pull request is to be looked up. It returns once
// that is stored; Conflict when the environment shows no previews.
func (c *Control) PullMoved(ctx context.Context, env intent.EnvironmentID, number int) error {
	const op = "control.PullMoved"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	if number <= 0 || number > 1<<31-1 {
		return fault.New(op, fault.Invalid, "a pull request has a number")
	}
	if err := previewsWanted(op, e); err != nil {
		return err
	}
	if err := c.cfg.Store.AskForge(ctx, env, number, c.cfg.Now()); err != nil {
		return err
	}
	c.wakeForges()
	return nil
}

func previewsWanted(op string, e intent.Environment) error {
	if e.Text("pull_previews") == "off" {
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" shows no previews of pull requests").
			Hint("set pull_previews to trusted")
	}
	return nil
}

// PullRequests lists those of an environment, open ones first.
func (c *Control) PullRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.PullRequest, error) {
	return c.cfg.Store.PullRequests(ctx, env)
}

// PullRequest gives one.
func (c *Control) PullRequest(ctx context.Context, env intent.EnvironmentID, number int) (intent.PullRequest, error) {
	return c.cfg.Store.PullRequest(ctx, env, number)
}

// ApprovePull lets the code of exactly one commit of a pull request run for a
// preview; it records who did.
func (c *Control) ApprovePull(ctx context.Context, env intent.EnvironmentID, number int, commit, by string) error {
	const op = "control.ApprovePull"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	by, commit = strings.TrimSpace(by), strings.TrimSpace(commit)
	switch {
	case by == "" || len(by) > 200:
		return fault.New(op, fault.Invalid, "say who approves, in at most 200 bytes")
	case commit == "":
		return fault.New(op, fault.Invalid, "say which commit is approved").
			Hint("the whole hash, as `ordain pull show` and the console have it")
	}
	if err := previewsWanted(op, e); err != nil {
		return err
	}
	actor := c.actor(ctx)
	actor.By = by
	if err := c.cfg.Store.ApprovePull(ctx, env, number, commit, actor); err != nil {
		return err
	}
	c.cfg.Logger.Info("a pull request was approved", "environment", env, "pull", number, "commit", commit, "by", by)
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if err != nil {
		return err
	}
	return c.startPull(ctx, e, p)
}

// PreviewPull computes the preview of a pull request again. One that is not
// known yet is looked up first.
func (c *Control) PreviewPull(ctx context.Context, env intent.EnvironmentID, number int) error {
	const op = "control.PreviewPull"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return err
	}
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if fault.Is(err, fault.NotFound) {
		return c.PullMoved(ctx, env, number)
	}
	if err != nil {
		return err
	}
	if err := previewsWanted(op, e); err != nil {
		return err
	}
	switch {
	case p.State != intent.PullIsOpen:
		return fault.New(op, fault.Conflict, fmt.Sprintf("pull request %d is %s", number, p.State))
	case !p.MayRun():
		return fault.New(op, fault.Conflict, fmt.Sprintf("the code of pull request %d does not run here before somebody approves it", number)).
			Hint(approveCommand(e, p))
	}
	return c.startPull(ctx, e, p)
}

func approveCommand(e intent.Environment, p intent.PullRequest) string {
	return fmt.Sprintf("ordain pull approve %s %d %s", shellWord(e.Name), p.Number, p.Head)
}

// shellWord makes a name safe to paste into a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// startPull records a new preview of a pull request; the one before is cancelled.
func (c *Control) startPull(ctx context.Context, e intent.Environment, p intent.PullRequest) error {
	const op = "control.StartPull"
	switch {
	case e.Halted:
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" is halted").Hint("resume it first")
	case !e.Bool("server_compile"):
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" is not compiled on the server")
	}
	compile := uuid.New()
	run := intent.DryRun{ID: uuid.New(), Environment: e.ID, Date: c.cfg.Now(), Commit: p.Head, Compile: &compile}
	active, err := c.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return err
	}
	if active != nil {
		run.Base = active.Number
	}
	before, err := c.cfg.Store.StartPullPreview(ctx, p.Number, run)
	if err != nil {
		return err
	}
	if err := c.dropPreview(ctx, e.ID, before); err != nil {
		c.cfg.Logger.Warn("an older preview was not removed", "environment", e.ID, "pull", p.Number, "error", err)
	}
	c.publish(e.ID, bus.DryRun, run.ID.String())
	c.publish(e.ID, bus.Pull, "")
	c.wakePreviews(e.ID)
	c.wakeForges()
	return nil
}

// renewAfter is how long a preview waits for the deployment of a new base: what
// is deployed meanwhile would show as a change of the pull request.
const renewAfter = 5 * time.Minute

// renewPull computes one preview again that was compared with another commit than
// the one that is deployed by now. The end of each lets the next begin.
func (c *Control) renewPull(ctx context.Context, env intent.EnvironmentID) {
	if c.deployer(env) == nil {
		return // somebody else keeps it
	}
	err := func() error {
		number, err := c.cfg.Store.StalePull(ctx, env, c.cfg.Now().Add(-renewAfter))
		if err != nil || number == 0 {
			return err
		}
		e, err := c.cfg.Store.Environment(ctx, env)
		if err != nil || e.Text("pull_previews") == "off" || e.Halted || !e.Bool("server_compile") {
			return err
		}
		p, err := c.cfg.Store.PullRequest(ctx, env, number)
		if err != nil {
			return err
		}
		return c.startPull(ctx, e, p)
	}()
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
		c.cfg.Logger.Warn("no preview is computed again yet", "environment", env, "error", err)
	}
}

// dropPreview cancels a preview and removes its version; nil: there is none.
func (c *Control) dropPreview(ctx context.Context, env intent.EnvironmentID, id *intent.ActionID) error {
	if id == nil {
		return nil
	}
	run, _, err := c.cfg.Store.DryRun(ctx, env, *id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if run.Ended == nil {
		if err := c.CancelDryRun(ctx, env, *id); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	if run.Version > 0 {
		v, err := c.cfg.Store.Version(ctx, env, run.Version)
		if err == nil && v.Preview {
			err = c.cfg.Store.DeleteVersion(ctx, env, run.Version)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// lookAtPull brings the record of a pull request to what its forge says, and
// starts its preview where its code may run.
func (c *Control) lookAtPull(ctx context.Context, e intent.Environment, f forge.Forge, number int) error {
	known, err := c.cfg.Store.PullRequest(ctx, e.ID, number)
	isKnown := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	found, err := f.Pull(ctx, number)
	if fault.Is(err, fault.NotFound) && isKnown {
		found, err = forge.Pull{
			Number: number,
			State:  intent.PullIsClosed,
			Title:  known.Title,
			URL:    known.URL,
			Author: known.Author,
			Base:   known.Base,
			Head:   known.Head,
		}, nil
	}
	if err != nil {
		return err
	}
	branch, err := c.pullBranch(ctx, e)
	if err != nil {
		return err
	}
	elsewhere := branch == "" || found.Base != branch
	if elsewhere && !isKnown || found.State != intent.PullIsOpen && !isKnown {
		return nil // it is not towards this environment, or it is over
	}
	if elsewhere && found.State == intent.PullIsOpen {
		found.State = intent.PullIsClosed // to this environment
	}
	p := known
	p.Environment, p.Number, p.State, p.Title, p.URL, p.Author = e.ID, number, found.State, found.Title, found.URL, found.Author
	p.Fork, p.Base, p.Head, p.Updated, p.Problem = found.Fork, found.Base, found.Head, c.cfg.Now(), ""
	mode := e.Text("pull_previews")
	p.Trusted = mode == "all" || mode == "trusted" && found.Trusted && !found.Fork
	if mode == "off" && !isKnown {
		return nil
	}
	if p.State != intent.PullIsOpen {
		return c.closePull(ctx, known, p)
	}
	fresh := !isKnown || known.Head != p.Head || known.State != p.State || known.MayRun() != p.MayRun()
	if !p.MayRun() {
		if err := c.cfg.Store.SavePull(ctx, p, fresh, c.cfg.Now()); err != nil {
			return err
		}
		if isKnown && known.Head != p.Head {
			return c.dropPreview(ctx, e.ID, known.DryRun) // it is of a commit that is no more
		}
		return nil
	}
	if err := c.cfg.Store.SavePull(ctx, p, false, c.cfg.Now()); err != nil {
		return err
	}
	if !fresh && p.PreviewOf == p.Head && p.Preview != nil && p.PreviewState() != intent.PreviewOld {
		return nil
	}
	err = c.startPull(ctx, e, p)
	if fault.Is(err, fault.Conflict) {
		p.Problem = err.Error()
		return c.cfg.Store.SavePull(ctx, p, fresh, c.cfg.Now())
	}
	return err
}

// closePull cleans up after a pull request that is none any more.
func (c *Control) closePull(ctx context.Context, known, now intent.PullRequest) error {
	fresh := known.State == intent.PullIsOpen
	if err := c.dropPreview(ctx, now.Environment, known.DryRun); err != nil {
		return err
	}
	return c.cfg.Store.SavePull(ctx, now, fresh && known.Comment != "", c.cfg.Now())
}

// pullBranch is the branch towards which pull requests concern an environment;
// empty when it follows no branch.
func (c *Control) pullBranch(ctx context.Context, e intent.Environment) (string, error) {
	if b := e.Source.Branch; b != "" {
		if strings.HasPrefix(b, "semver:") {
			return "", nil
		}
		return strings.TrimPrefix(b, "refs/heads/"), nil
	}
	last, err := c.cfg.Store.LastCompile(ctx, e.ID)
	if err != nil || last == nil {
		return "", err
	}
	return last.Revision.Branch, nil
}

// lookAtPulls compares what a forge has open with the record, and has looked
// up what differs.
func (c *Control) lookAtPulls(ctx context.Context, e intent.Environment, f forge.Forge) error {
	branch, err := c.pullBranch(ctx, e)
	if err != nil || branch == "" || e.Text("pull_previews") == "off" {
		return err
	}
	open, err := f.Pulls(ctx, branch)
	if err != nil {
		return err
	}
	known, err := c.cfg.Store.PullRequests(ctx, e.ID)
	if err != nil {
		return err
	}
	heads := map[int]string{}
	for _, p := range known {
		if p.State == intent.PullIsOpen {
			heads[p.Number] = p.Head
		}
	}
	var ask []int
	for _, p := range open {
		if heads[p.Number] != p.Head {
			ask = append(ask, p.Number)
		}
		delete(heads, p.Number)
	}
	for number := range heads {
		ask = append(ask, number)
	}
	for _, number := range ask {
		if err := c.cfg.Store.AskForge(ctx, e.ID, number, c.cfg.Now()); err != nil {
			return err
		}
	}
	return nil
}

// comment brings the comment on a pull request up to date.
func (c *Control) comment(ctx context.Context, e intent.Environment, f forge.Forge, number int) error {
	p, err := c.cfg.Store.PullRequest(ctx, e.ID, number)
	if fault.Is(err, fault.NotFound) || err == nil && !e.Bool("pull_comment") {
		return nil
	}
	if err != nil {
		return err
	}
	report, err := c.PullReport(ctx, e, p)
	if err != nil {
		return err
	}
	id, err := f.UpsertComment(
		ctx,
		forge.Comment{Number: number, ID: p.Comment, Marker: forge.Marker(e.ID), Body: report.Text()},
	)
	if err != nil {
		return err
	}
	if id != p.Comment {
		return c.cfg.Store.SetPullComment(ctx, e.ID, number, id)
	}
	return nil
}

// PullReport gathers what is known of the preview of a pull request.
func (c *Control) PullReport(ctx context.Context, e intent.Environment, p intent.PullRequest) (forge.Report, error) {
	r := forge.Report{
		Environment: e.Name,
		Pull:        p,
		Page:        c.page(fmt.Sprintf("/e/%s/pulls/%d", e.ID, p.Number)),
		Command:     approveCommand(e, p),
	}
	if err := c.refusal(ctx, e, p, &r); err != nil {
		return r, err
	}
	if p.Preview == nil || p.PreviewOf != p.Head {
		return r, nil
	}
	r.Version = p.Preview.Base
	switch p.PreviewState() {
	case intent.PreviewFailed:
		if p.Preview.Compile == nil {
			return r, nil
		}
		compile, _, err := c.cfg.Store.Compile(ctx, *p.Preview.Compile)
		if fault.Is(err, fault.NotFound) {
			return r, nil
		}
		r.Errors = modelErrors(compile.Diagnostics)
		return r, err
	case intent.PreviewDone:
	default:
		return r, nil
	}
	run, diffs, err := c.cfg.Store.DryRun(ctx, e.ID, p.Preview.ID)
	if err != nil {
		return r, err
	}
	r.Diffs = diffs
	if r.Gone, err = c.NoLongerManaged(ctx, run); err != nil {
		return r, err
	}
	if r.Hold, err = c.cfg.Store.JudgeVersion(ctx, e.ID, run.Version, c.cfg.Now()); err != nil {
		return r, err
	}
	r.Windows = c.waits(e, diffs)
	return r, nil
}

// refusal tells whether the environment's signatures are missing. A preview is
// made all the same: whose code may run is another question. That of the branch
// moving on is none here, nor is the branch: the merge is still to come.
func (c *Control) refusal(ctx context.Context, e intent.Environment, p intent.PullRequest, r *forge.Report) error {
	policy := e.GitPolicy()
	if p.State != intent.PullIsOpen || p.Head == "" || policy.Verify != "tip" && policy.Verify != "all" {
		return nil
	}
	active, err := c.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return err
	}
	if active != nil {
		policy.Base = active.Provenance.Commit
	}
	policy.Rewrites, policy.Refs = true, nil
	_, err = c.cfg.Git.Verify(ctx, plainSource(e), intent.Revision{Commit: p.Head}, policy)
	refusal := (*intent.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return nil // it is fine, or was not fetched yet
	}
	r.Refused = refusal.Message + "; " + refusal.Advice
	if policy.Verify == "tip" {
		r.Refused += " (or merge it with a commit that is signed)"
	}
	return nil
}

// PullText is what the comment on a pull request says, or would say.
func (c *Control) PullText(ctx context.Context, env intent.EnvironmentID, number int) (string, error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return "", err
	}
	p, err := c.cfg.Store.PullRequest(ctx, env, number)
	if err != nil {
		return "", err
	}
	report, err := c.PullReport(ctx, e, p)
	return report.Text(), err
}

// waits says how many changes would wait for windows and freezes.
func (c *Control) waits(e intent.Environment, diffs []intent.ResourceDiff) (out []string) {
	windows, err := e.Windows()
	if err != nil || len(windows) == 0 {
		return nil
	}
	counts, order := map[string]int{}, []string{}
	for _, d := range diffs {
		if d.Kind != intent.DiffAdded && d.Kind != intent.DiffModified && d.Kind != intent.DiffDeleted {
			continue
		}
		gate := windows.Gate(d.ID, c.cfg.Now())
		if !gate.Held() || intent.Overridden(e.Overrides, d.ID.Agent, c.cfg.Now()) != nil {
			continue
		}
		if counts[gate.String()]++; counts[gate.String()] == 1 {
			order = append(order, gate.String())
		}
	}
	for _, why := range order {
		out = append(out, fmt.Sprintf("%d of its changes: %s", counts[why], why))
	}
	return out
}

// mergePull finds the merge result of a pull request for its preview.
func (r *run) mergePull(ctx context.Context, p intent.PullRequest) error {
	return r.stage(ctx, intent.StageFetch, func(out Output) (string, error) {
		if !p.MayRun() || p.State != intent.PullIsOpen {
			return "", fault.New("control.preview", fault.Conflict, "the code of this pull request may not run here")
		}
		f, err := r.control.forgeOf(ctx, r.e)
		if errors.Is(err, errNoForge) {
			return "", fault.New(
				"control.preview",
				fault.Invalid,
				"the environment has no token for its forge any more",
			)
		}
		if err != nil {
			return "", err
		}
		head, merge := f.Refs(p.Number)
		rev, step, err := r.control.cfg.Git.MergePull(
			ctx,
			r.source,
			GitPull{Base: p.Base, Head: p.Head, HeadRef: head, MergeRef: merge},
		)
		if step.Output != "" {
			out(step.Output, "")
		}
		if err != nil {
			return step.Command, err
		}
		out(fmt.Sprintf("Pull request %d at %s, merged: %s\n", p.Number, p.Short(), rev.Short()), "")
		return step.Command, r.choose(ctx, rev)
	})
}
