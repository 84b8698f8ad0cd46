package keeper

import (
	"context"
	"maps"
	"slices"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// StoreFiles stores those files of a document that the store does not have yet, for a project.
func StoreFiles(ctx context.Context, records *store.Store, project intent.ProjectID, doc *export.Document) error {
	hashes := slices.Sorted(maps.Keys(doc.Files))
	missing, err := records.MissingFiles(ctx, hashes)
	if err != nil {
		return err
	}
	if len(missing) < len(hashes) { // others may have stored them
		present := slices.DeleteFunc(hashes, func(hash string) bool { return slices.Contains(missing, hash) })
		if err := records.ShareFiles(ctx, present, project); err != nil {
			return err
		}
	}
	for _, hash := range missing {
		stored, err := records.PutFile(ctx, doc.Files[hash], project)
		if err != nil {
			return err
		}
		if stored != hash {
			return fault.New("keeper.storeFiles", fault.Invalid,
				"the compiler named a file "+hash+" whose content has the hash "+stored)
		}
	}
	return nil
}

// NewVersion converts an exported document to the version to store.
func NewVersion(
	env intent.EnvironmentID, origin intent.Provenance, doc *export.Document,
) (intent.NewVersion, error) {
	const op = "keeper.newVersion"
	v := intent.NewVersion{
		Environment: env,
		Provenance:  origin,
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
			return v, fault.Wrap(op, fault.Internal, err)
		}
		v.Origins = packed
	}
	seen := make(map[intent.ResourceID]bool, len(doc.Resources))
	for _, resource := range doc.Resources {
		if resource.ID.IsZero() || seen[resource.ID] {
			return v, fault.New(op, fault.Invalid, "the resource "+resource.ID.String()+" was exported twice")
		}
		seen[resource.ID] = true
		v.Resources = append(v.Resources, resource.Intent(0))
	}
	return v, nil
}
