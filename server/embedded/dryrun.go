package embedded

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/deployer"
)

// Look is what a dry run found.
type Look struct {
	Version int
	// Diffs has each resource that was looked at, by id.
	Diffs []intent.ResourceDiff
	// Gone are resources that are deployed and that the version does not have. They would stay where they are.
	Gone    []intent.ResourceID
	Unknown int // resources of which it is unknown what would change
	Other   int // resources that were not looked at, of other agents
}

// DryRun finds out what deploying a version, which is a preview, would change. Nothing is released or deployed.
func (w *World) DryRun(ctx context.Context, o Order, watch Watch) (Look, error) {
	out := Look{Version: o.Version, Diffs: []intent.ResourceDiff{}, Gone: []intent.ResourceID{}}
	resources, err := w.store.VersionResources(ctx, w.env.ID, o.Version)
	if err != nil {
		return out, err
	}
	dry := intent.DryRun{ID: uuid.New(), Environment: w.env.ID, Version: o.Version, Date: now()}
	for _, r := range resources {
		if o.chosen(r.ID.Agent) {
			dry.Total++
			if !slices.Contains(dry.Filter.Agents, r.ID.Agent) {
				dry.Filter.Agents = append(dry.Filter.Agents, r.ID.Agent)
			}
		} else {
			out.Other++
		}
	}
	if dry.Todo = dry.Total; dry.Total == 0 {
		return out, nil
	}
	active, err := w.store.ActiveVersion(ctx, w.env.ID)
	if err != nil {
		return out, err
	}
	if active != nil {
		dry.Base = active.Number
		gone, err := w.store.GoneResources(ctx, w.env.ID, active.Number, o.Version)
		if err != nil {
			return out, err
		}
		out.Gone = append(out.Gone, gone...)
	}
	if err := w.store.CreateDryRun(ctx, dry); err != nil {
		return out, err
	}
	ongoing := &deployment{total: dry.Total, last: map[intent.ResourceID]intent.Action{}}
	if watch.Progress != nil {
		ongoing.watch.Progress = func(p Progress) {
			if at, _, err := w.store.DryRun(ctx, w.env.ID, dry.ID); err == nil {
				watch.Progress(Progress{Done: at.Total - at.Todo, Total: at.Total})
			}
		}
	}
	all := func(string) bool { return true }
	err = w.drive(ctx, ongoing, all, true, func(d *deployer.Deployer) { d.DryRun(dry.ID) })
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err != nil {
		_ = w.store.EndDryRun(late, w.env.ID, dry.ID, intent.DryRunCancelled, "interrupted", nil, time.Now())
		return out, err
	}
	ended, diffs, err := w.store.DryRun(late, w.env.ID, dry.ID)
	if err != nil {
		return out, err
	}
	if ended.Ended == nil {
		return out, fault.New("embedded.DryRun", fault.Internal, "the dry run did not end").
			Hint(w.layout.LogDir() + " says more")
	}
	out.Diffs, out.Unknown = diffs, ended.Unknown
	w.tidy(late)
	return out, nil
}
