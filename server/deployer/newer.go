package deployer

import (
	"context"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// readNewer reads a version for a deployer that knows the one before: only what differs. When nothing is known, it
// reads all of it.
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
	if len(resources) != total { // the known version was deleted from the record
		return d.readVersion(ctx, number)
	}
	return d.withCode(ctx, resources, number)
}

// renewed makes the resources of a version from those of an earlier one, both sorted by id. It does not change known,
// which running tasks use.
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
