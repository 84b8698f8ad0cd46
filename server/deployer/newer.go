package deployer

import (
	"context"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// readNewer reads a version as a deployer that knows the one before: only what
// differs. All of it is read when nothing is known.
func (d *Deployer) readNewer(
	ctx context.Context,
	from int,
	known []intent.Resource,
	number int,
) ([]intent.Resource, *versionCode, error) {
	if len(known) == 0 {
		return d.readVersion(ctx, number)
	}
	var purged []intent.ResourceID
	for i := range known {
		if known[i].Purged {
			purged = append(purged, known[i].ID)
		}
	}
	changed, total, err := d.cfg.Store.VersionChanges(ctx, d.env, from, number, purged)
	if err != nil {
		return nil, nil, err
	}
	resources := renewed(known, changed, nil, number)
	if len(resources) != total {
		gone, err := d.cfg.Store.GoneResources(ctx, d.env, from, number)
		if err != nil {
			return nil, nil, err
		}
		resources = renewed(known, changed, gone, number)
	}
	if len(resources) != total { // the version that was known is in the record no more
		return d.readVersion(ctx, number)
	}
	return d.withCode(ctx, resources, number)
}

// A release takes the database about as long as reading the version does. Neither
// needs the other, so the version is read meanwhile:
//
//	Releasing(n) ─▶ read n ────────▶┐
//	release n ──────▶ VersionReleased(n) ─▶ adopt n

// earlyRead is a version that is read while it is being released. Its number and what
// it is read on top of do not change; the rest is there when done is closed.
type earlyRead struct {
	number, from int
	done         chan struct{}
	resources    []intent.Resource
	code         *versionCode
	err          error
}

// Releasing says that a version is about to be released, so that it is read
// already; 0 says that nothing came of it. It promises nothing: VersionReleased does.
func (d *Deployer) Releasing(number int) {
	d.post(func() {
		d.coming = nil
		if d.sched == nil || d.loading || d.stopping || number <= d.sched.Version() || anyPurged(d.resources) {
			return
		}
		e := &earlyRead{number: number, from: d.sched.Version(), done: make(chan struct{})}
		known := d.resources
		d.coming = e
		go func() {
			defer close(e.done)
			e.resources, e.code, e.err = d.readNewer(d.tasks, e.from, known, number)
		}()
	})
}

// readReleased reads a version that was released, unless that was done early.
func (d *Deployer) readReleased(
	ctx context.Context,
	e *earlyRead,
	from int,
	known []intent.Resource,
	number int,
) ([]intent.Resource, *versionCode, error) {
	if e != nil && e.number == number && e.from == from {
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		// What purged resources required when they were kept is known since the release.
		if e.err == nil && !anyPurged(e.resources) {
			return e.resources, e.code, nil
		}
	}
	return d.readNewer(ctx, from, known, number)
}

func anyPurged(resources []intent.Resource) bool {
	return slices.ContainsFunc(resources, func(r intent.Resource) bool { return r.Purged })
}

// renewed makes the resources of a version from those of one before, both sorted
// by id. Nothing of known is changed: tasks that run have it.
func renewed(known, changed []intent.Resource, gone []intent.ResourceID, number int) []intent.Resource {
	slices.SortFunc(changed, func(a, b intent.Resource) int { return a.ID.Compare(b.ID) })
	left := make(map[intent.ResourceID]bool, len(gone))
	for _, id := range gone {
		left[id] = true
	}
	out := make([]intent.Resource, 0, len(known)+len(changed))
	for i := range known {
		for len(changed) > 0 && changed[0].ID.Compare(known[i].ID) < 0 {
			out, changed = append(out, changed[0]), changed[1:]
		}
		switch {
		case len(changed) > 0 && changed[0].ID == known[i].ID:
			out, changed = append(out, changed[0]), changed[1:]
		case !left[known[i].ID]:
			out = append(out, known[i])
			out[len(out)-1].Version = number
		}
	}
	return append(out, changed...)
}
