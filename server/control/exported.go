package control

import (
	"context"
	"maps"
	"slices"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// storeFiles puts the files that a document refers to into the place of
// record, those that are not there yet.
func (c *Control) storeFiles(ctx context.Context, doc *export.Document) error {
	hashes := slices.Sorted(maps.Keys(doc.Files))
	missing, err := c.cfg.Store.MissingFiles(ctx, hashes)
	if err != nil {
		return err
	}
	for _, hash := range missing {
		stored, err := c.cfg.Store.PutFile(ctx, doc.Files[hash])
		if err != nil {
			return err
		}
		if stored != hash {
			return fault.New(
				"control.storeFiles",
				fault.Invalid,
				"the compiler named a file "+hash+" whose content has the hash "+stored,
			)
		}
	}
	return nil
}

// newVersion makes what is stored from what the compiler exported.
func (r *run) newVersion(doc *export.Document) (intent.NewVersion, error) {
	v := intent.NewVersion{
		Environment: r.env,
		Provenance:  r.provenance(doc),
		Resources:   make([]intent.Resource, 0, len(doc.Resources)),
		Code:        doc.Code,
		Pip:         doc.Pip,
		Unknowns:    doc.Unknowns,
	}
	if doc.Partial {
		v.Partial = &intent.PartialChange{Removed: doc.RemovedSets}
	}
	if doc.Provenance != nil {
		packed, err := doc.Provenance.Pack()
		if err != nil {
			return v, fault.Wrap("control.newVersion", fault.Internal, err)
		}
		v.Origins = packed
	}
	seen := make(map[intent.ResourceID]bool, len(doc.Resources))
	for _, resource := range doc.Resources {
		if resource.ID.IsZero() || seen[resource.ID] {
			return v, fault.New(
				"control.newVersion",
				fault.Invalid,
				"the resource "+resource.ID.String()+" was exported twice",
			)
		}
		seen[resource.ID] = true
		v.Resources = append(v.Resources, resource.Intent(0))
	}
	return v, nil
}
