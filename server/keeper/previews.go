package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/store"
)

// A dry run of a commit has a compile of its own, in parallel to the environment's:
//
//	asked for ──▶ compile in <env>/preview ──▶ a version marked as preview ──▶ dry run of that version
//
// An environment runs one at a time. Open dry runs are on record, so one that a killed
// server left is compiled again, at the commit that it chose before.

// CancelDryRun ends a dry run. A handler that is running for it finishes, but its
// result is not recorded. CancelDryRun returns Conflict if the dry run has ended.
func (r *Registry) CancelDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) error {
	err := r.cfg.Store.Asking(env, intent.RequestCancelDryRun, id).
		EndDryRun(ctx, env, id, intent.DryRunCancelled, "", nil, r.cfg.Now())
	if err != nil {
		return err
	}
	r.Attend(ctx, env)
	r.publish(env, bus.DryRun, id.String())
	return nil
}

// cancelPreview ends the compile of a dry run, if it is under way.
func (k *keeper) cancelPreview(id intent.ActionID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dryRun == id && k.cancel != nil {
		k.cancel()
	}
}

// previewInterval is how often the record is read for dry runs of commits that other
// processes recorded.
const previewInterval = 30 * time.Second

// previewRetention is how long the checkout and the virtual environment of
// previews are kept for the next one.
const previewRetention = 7 * 24 * time.Hour

// keepPreviews compiles the commits of open dry runs, the oldest first, until ctx ends.
func (k *keeper) keepPreviews(ctx context.Context) {
	for ctx.Err() == nil {
		open, err := k.cfg.Store.OpenDryRuns(ctx, k.env)
		if err != nil && ctx.Err() == nil {
			k.log.Warn("cannot read the open dry runs yet", "error", err)
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
		if err := k.Folders.removePreview(k.env, k.cfg.Now().Add(-previewRetention)); err != nil {
			k.log.Warn("cannot remove the folder of previews", "error", err)
		}
		timer := time.NewTimer(previewInterval)
		select {
		case <-ctx.Done():
		case <-k.previewWakes:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// preview compiles the commit of one dry run and passes its version to the deployer.
func (k *keeper) preview(ctx context.Context, d intent.DryRun) {
	k.compiling.Add(1)
	defer k.compiling.Add(-1)
	version, err := k.cancellablePreview(ctx, d)
	if ctx.Err() != nil {
		return // another server continues
	}
	total := 0
	if err == nil {
		total, err = CountMatches(ctx, k.cfg.Store, k.env, version, d.Filter)
	}
	recorded := k.persist(ctx, "record the version of a dry run", func() error {
		var stored error
		if err != nil {
			stored = k.cfg.Store.EndDryRun(ctx, k.env, d.ID, intent.DryRunFailed, err.Error(), nil, k.cfg.Now())
		} else {
			stored = k.cfg.Store.SetDryRunVersion(ctx, k.env, d.ID, version, total)
		}
		if fault.Is(stored, fault.Conflict) || fault.Is(stored, fault.NotFound) {
			return nil // it was cancelled or deleted
		}
		return stored
	})
	switch {
	case !recorded:
	case err != nil:
		k.publish(k.env, bus.Notification, "")
	default:
		if deployer := k.currentDeployer(); deployer != nil {
			deployer.DryRun(d.ID)
		}
	}
	k.publish(k.env, bus.DryRun, d.ID.String())
}

// cancellablePreview compiles the commit of a dry run; CancelDryRun can end the compile.
func (k *keeper) cancellablePreview(ctx context.Context, d intent.DryRun) (int, error) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	set := func(id intent.ActionID, cancel context.CancelFunc) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.dryRun, k.cancel = id, cancel
	}
	set(d.ID, cancel)
	defer set(uuid.Nil, nil)
	return k.compilePreview(ctx, own, d)
}

// compilePreview returns the version of a commit. ctx ends when the dry run is cancelled
// or when owned ends, which means that the ownership of the environment was lost; then
// the dry run stays open for the next owner.
func (k *keeper) compilePreview(owned, ctx context.Context, d intent.DryRun) (int, error) {
	turn, err := k.takeTurn(ctx, k.previewing)
	if err != nil {
		return 0, err
	}
	defer turn.release()
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return 0, err
	}
	before, _, err := k.cfg.Store.Compile(ctx, *d.Compile)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return 0, err
	case before.Completed != nil && before.Version != nil:
		return *before.Version, nil
	case before.Completed != nil:
		return 0, fault.New("keeper.preview", fault.Invalid,
			"the commit could not be compiled: its compile report tells why")
	}
	message := "dry run of " + d.Commit
	compile := intent.Compile{
		ID: *d.Compile, Environment: k.env, Requested: d.Date, Update: true, Export: true, Revision: before.Revision,
		Trigger:  intent.Trigger{Type: "dryrun", Message: message},
		Metadata: map[string]any{"type": "dryrun", "message": message},
	}
	if err := k.patiently(ctx, "record the compile of a commit", func() error {
		return k.cfg.Store.StartPreview(ctx, compile)
	}); err != nil {
		return 0, err
	}
	c := k.newCompilation(e, compile, k.Folders.previewDir(k.env))
	c.preview, c.job.Preview = true, true
	c.log = c.log.With("dryrun", d.ID)
	k.publishCompile(compile.ID)
	pull, err := k.cfg.Store.PullOfDryRun(ctx, k.env, d.ID)
	if err == nil {
		err = c.runPreview(ctx, d.Commit, pull)
	}
	if owned.Err() != nil {
		return 0, owned.Err()
	}
	if failed := k.patiently(owned, "record the end of a compile", func() error {
		return k.cfg.Store.FinishCompile(owned, compile.ID, intent.CompileEnd{
			Success: err == nil, Version: c.version, Diagnostics: c.maskedDiagnostics(), At: k.cfg.Now(),
			Cancelled: err != nil && ctx.Err() != nil,
		})
	}); failed != nil {
		return 0, failed
	}
	k.publishCompile(compile.ID)
	if err != nil {
		return 0, fmt.Errorf("the commit could not be compiled: %w", err)
	}
	return *c.version, nil
}

// runPreview goes through the stages of a compile for one commit, or for the merge
// result of a pull request.
func (c *compilation) runPreview(ctx context.Context, commit string, pull *intent.PullRequest) error {
	fetch := func(ctx context.Context) error { return c.fetchPreview(ctx, commit, pull) }
	stages := []func(context.Context) error{
		c.prepare, fetch, c.checkout, c.readClusters, c.makeVenv, c.install, c.compileModel, c.storeVersion,
	}
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fetchPreview finds the requested commit. A compilation that starts over keeps the
// commit that it found before.
func (c *compilation) fetchPreview(ctx context.Context, commit string, pull *intent.PullRequest) error {
	err := c.patiently(ctx, "read the credentials", func() (err error) {
		c.source, err = c.cfg.Sources.Of(ctx, c.e)
		c.job.Source = c.source
		return err
	})
	if err != nil {
		return err
	}
	if pull != nil && (c.compile.Revision == nil || !pull.MayRun()) {
		return c.stage(ctx, intent.StageFetch, func(out build.Output) (string, error) {
			return c.mergePull(ctx, *pull, out)
		})
	}
	c.source.Branch, c.source.Abbreviated = commit, true
	if c.compile.Revision != nil {
		return nil
	}
	return c.stage(ctx, intent.StageFetch, func(out build.Output) (string, error) {
		rev, report, err := c.cfg.Git.Fetch(ctx, c.source)
		print(out, report.Output)
		if err != nil {
			return report.Command, err
		}
		out(fmt.Sprintf("%s is %s %q by %s\n", commit, rev.Short(), rev.Subject, rev.Author), "")
		return report.Command, c.choose(ctx, rev)
	})
}

// mergePull finds the merge result of a pull request for its preview.
func (c *compilation) mergePull(ctx context.Context, p intent.PullRequest, out build.Output) (string, error) {
	const op = "keeper.preview"
	if !p.MayRun() || p.State != intent.PullIsOpen {
		return "", fault.New(op, fault.Conflict, "the code of this pull request may not run here")
	}
	f, err := c.cfg.Forges.Open(ctx, c.e)
	if errors.Is(err, forge.ErrNoForge) {
		return "", fault.New(op, fault.Invalid, "the environment no longer has a token for its forge")
	}
	if err != nil {
		return "", err
	}
	head, merge := f.Refs(p.Number)
	rev, report, err := c.cfg.Git.MergePull(ctx, c.source, gitsync.PullRequest{
		Base: p.Base, Head: p.Head, HeadRef: head, MergeRef: merge,
	})
	print(out, report.Output)
	if err != nil {
		return report.Command, err
	}
	out(fmt.Sprintf("Pull request %d at %s, merged: %s\n", p.Number, p.Short(), rev.Short()), "")
	return report.Command, c.choose(ctx, rev)
}

// CountMatches counts the resources of a version that match the filter of a dry run. It
// returns an error if none matches, or if the filter names a resource that the version
// does not have.
func CountMatches(
	ctx context.Context,
	records *store.Store,
	env intent.EnvironmentID,
	version int,
	f intent.DryRunFilter,
) (int, error) {
	const op = "keeper.StartDryRun"
	if f.IsZero() {
		v, err := records.Version(ctx, env, version)
		return v.Total, err
	}
	resources, err := records.VersionResources(ctx, env, version)
	if err != nil {
		return 0, err
	}
	n, there := 0, make(map[intent.ResourceID]bool)
	for _, r := range resources {
		there[r.ID] = true
		if f.Match(r.ID) {
			n++
		}
	}
	for _, id := range f.Resources {
		if !there[id] {
			return 0, fault.New(op, fault.NotFound, fmt.Sprintf("version %d has no resource %s", version, id))
		}
	}
	if n == 0 {
		return 0, fault.New(op, fault.NotFound, fmt.Sprintf("version %d has no resource that matches", version)).
			Hint("check the agents and types; * matches any text")
	}
	return n, nil
}
