package control

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// A dry run of a commit has a compile of its own, beside the environment's:
//
//	asked for ──▶ compile in <env>/preview ──▶ a version marked as preview ──▶ dry run of that version
//
// One runs at a time in an environment. The record says which are open, so one
// that a killed server left is compiled again, at the commit that it had chosen.

// previews is what a keeper knows of them; guarded by Control.mu.
type previews struct {
	wake    chan struct{}
	running intent.ActionID // the dry run whose commit is compiled
	cancel  context.CancelFunc
}

// startPreview records a dry run of a commit and lets its compile begin.
func (c *Control) startPreview(ctx context.Context, e intent.Environment, run intent.DryRun) (intent.ActionID, error) {
	const op = "control.StartDryRun"
	switch {
	case !e.Bool("server_compile"):
		return uuid.Nil, fault.New(op, fault.Conflict, "the environment "+e.Name+" is not compiled on the server").
			Hint("set server_compile, or store a version and dry-run that")
	case e.Source.URL == "":
		return uuid.Nil, fault.New(op, fault.Invalid, "the environment "+e.Name+" is not bound to a repository")
	case len(run.Commit) > 250 || strings.ContainsFunc(run.Commit, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return uuid.Nil, fault.New(op, fault.Invalid, "a commit is a hash, or the name of a branch or tag")
	}
	compile := uuid.New()
	run.Compile = &compile
	if err := c.cfg.Store.CreateDryRun(ctx, run); err != nil {
		return uuid.Nil, err
	}
	c.publish(run.Environment, bus.DryRun, run.ID.String())
	c.wakePreviews(run.Environment)
	return run.ID, nil
}

// wakePreviews tells the keeper of an environment that there is a commit to
// compile. Whoever else owns it finds that in the record.
func (c *Control) wakePreviews(env intent.EnvironmentID) {
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k != nil {
		select {
		case k.previews.wake <- struct{}{}:
		default:
		}
	}
}

// previewRetry is how often the record is asked for dry runs of commits: other
// replicas record them too.
const previewRetry = 30 * time.Second

// previewRetention is how long the checkout and the virtual environment of
// previews are kept for the next one.
const previewRetention = 7 * 24 * time.Hour

// keepPreviews compiles the commits of open dry runs, the oldest first.
func (k *keeper) keepPreviews(ctx context.Context) {
	for ctx.Err() == nil {
		open, err := k.control.cfg.Store.OpenDryRuns(ctx, k.env)
		if err != nil && ctx.Err() == nil {
			k.log.Warn("the dry runs that are open cannot be read yet", "error", err)
		}
		worked := false
		for _, run := range open {
			if run.Version == 0 && ctx.Err() == nil {
				k.preview(ctx, run)
				worked = true
			}
		}
		if worked {
			continue
		}
		if err := k.control.cfg.Workspace.RemovePreview(k.env, k.control.cfg.Now().Add(-previewRetention)); err != nil {
			k.log.Warn("the folder of previews cannot be removed", "error", err)
		}
		timer := time.NewTimer(previewRetry)
		select {
		case <-ctx.Done():
		case <-k.previews.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// preview compiles the commit of one dry run and hands its version on.
func (k *keeper) preview(ctx context.Context, d intent.DryRun) {
	c := k.control
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	k.previews.running, k.previews.cancel = d.ID, cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		k.previews.running, k.previews.cancel = uuid.Nil, nil
		c.mu.Unlock()
		c.publish(k.env, bus.DryRun, d.ID.String())
	}()
	version, err := k.compilePreview(ctx, own, d)
	if ctx.Err() != nil {
		return // another server goes on
	}
	total := 0
	if err == nil {
		total, err = c.countMatches(ctx, k.env, version, d.Filter)
	}
	done := k.persist(ctx, "record the version of a dry run", func() error {
		var stored error
		if err != nil {
			stored = c.cfg.Store.EndDryRun(ctx, k.env, d.ID, intent.DryRunFailed, err.Error(), nil, c.cfg.Now())
		} else {
			stored = c.cfg.Store.SetDryRunVersion(ctx, k.env, d.ID, version, total)
		}
		if fault.Is(stored, fault.Conflict) || fault.Is(stored, fault.NotFound) {
			return nil // it was cancelled, or cleared away
		}
		return stored
	})
	if done && err != nil {
		c.publish(k.env, bus.Notification, "")
	}
	if done && err == nil {
		if deployer := c.deployer(k.env); deployer != nil {
			deployer.DryRun(d.ID)
		}
	}
}

// compilePreview gives the version of a commit. ctx ends when the dry run is
// cancelled or with owned, the ownership of the environment; what the latter cuts
// off stays open, for the next owner.
func (k *keeper) compilePreview(owned, ctx context.Context, d intent.DryRun) (int, error) {
	c := k.control
	began := time.Now()
	c.arrivals.storm.over(ctx, began)
	turn, err := c.previewing.take(ctx, k.env)
	if err != nil {
		return 0, err
	}
	defer turn.release()
	e, err := c.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return 0, err
	}
	before, _, err := c.cfg.Store.Compile(ctx, *d.Compile)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return 0, err
	case before.Completed != nil && before.Version != nil:
		return *before.Version, nil
	case before.Completed != nil:
		return 0, fault.New(
			"control.preview",
			fault.Invalid,
			"the commit could not be compiled: its compile report tells why",
		)
	}
	message := "dry run of " + d.Commit
	compile := intent.Compile{
		ID: *d.Compile, Environment: k.env, Requested: d.Date, Update: true, Export: true, Revision: before.Revision,
		Trigger: intent.Trigger{
			Type:    "dryrun",
			Message: message,
		}, Metadata: map[string]any{"type": "dryrun", "message": message},
	}
	if err := k.patiently(ctx, "record the compile of a commit", func() error { return c.cfg.Store.StartPreview(ctx, compile) }); err != nil {
		return 0, err
	}
	dir := c.cfg.Workspace.PreviewDir(k.env)
	r := &run{keeper: k, e: e, compile: compile, began: began, preview: true}
	r.job = BuildJob{
		Environment: e,
		Compile:     compile,
		Dir:         dir,
		ProjectDir:  filepath.Join(dir, filepath.FromSlash(e.Source.Subdir)),
		Preview:     true,
	}
	r.log = k.log.With("compile", compile.ID, "dryrun", d.ID)
	k.moved(compile.ID)
	pull, err := c.cfg.Store.PullOfDryRun(ctx, k.env, d.ID)
	if err == nil {
		err = r.previewStages(ctx, d.Commit, pull)
	}
	if owned.Err() != nil {
		return 0, owned.Err()
	}
	if failed := k.patiently(owned, "record the end of a compile", func() error {
		return c.cfg.Store.FinishCompile(owned, compile.ID, intent.CompileEnd{Success: err == nil, Version: r.version, Diagnostics: r.diags, At: c.cfg.Now()})
	}); failed != nil {
		return 0, failed
	}
	k.moved(compile.ID)
	if err != nil {
		return 0, fmt.Errorf("the commit could not be compiled: %w", err)
	}
	return *r.version, nil
}

// previewStages goes through the stages of a compile for one commit, or for
// what merging a pull request would make.
func (r *run) previewStages(ctx context.Context, commit string, pull *intent.PullRequest) error {
	fetch := func(ctx context.Context) error { return r.fetchCommit(ctx, commit, pull) }
	for _, step := range []func(context.Context) error{r.init, fetch, r.checkout, r.venv, r.install, r.compileModel} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fetchCommit finds the commit that was asked for; a run that starts over keeps
// the one that it had found.
func (r *run) fetchCommit(ctx context.Context, commit string, pull *intent.PullRequest) error {
	err := r.patiently(ctx, "read the credentials", func() (err error) {
		r.source, err = r.control.gitSource(ctx, r.e)
		r.job.Credentials = r.source
		return err
	})
	if err != nil {
		return err
	}
	if pull != nil && (r.compile.Revision == nil || !pull.MayRun()) {
		return r.mergePull(ctx, *pull)
	}
	r.source.Branch, r.source.Abbreviated = commit, true
	if r.compile.Revision != nil {
		return nil
	}
	return r.stage(ctx, intent.StageFetch, func(out Output) (string, error) {
		rev, step, err := r.control.cfg.Git.Fetch(ctx, r.source)
		if step.Output != "" {
			out(step.Output, "")
		}
		if err != nil {
			return step.Command, err
		}
		out(fmt.Sprintf("%s is %s %q by %s\n", commit, rev.Short(), rev.Subject, rev.Author), "")
		return step.Command, r.choose(ctx, rev)
	})
}
