package resources

import (
	"context"
	"io"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/resources/blob"
	"ordain.dev/ordain/server/cluster/task"
)

// Active lists what a plug-in has for a project, by type and name. How the files are laid out is for the plug-in's type
// as it is now; resources of types that it no longer has are left out.
func (s *Service) Active(ctx context.Context, project intent.ProjectID, kind, plugin string) ([]task.Resource, error) {
	all, err := s.c.Catalogues.Catalogue(ctx, project)
	if err != nil {
		return nil, err
	}
	found, _ := all.Get(catalogue.Kind(kind), plugin).(*catalogue.PluginType)
	if found == nil || len(found.ResourceTypes) == 0 {
		return nil, nil // most plug-ins: the record is not asked
	}
	live, err := s.c.Store.LiveClusterResources(ctx, project, kind, plugin)
	if err != nil {
		return nil, err
	}
	var out []task.Resource
	for _, r := range live {
		t, ok := found.ResourceTypes[r.Type]
		if !ok {
			continue
		}
		out = append(out, task.Resource{
			Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name, Version: r.Version, Format: t.Format,
			Permissions: t.Permissions, Hash: r.Hash, Size: r.Size,
		})
	}
	return out, nil
}

// OpenHash returns a content and its size, if a version with it is active or recalled: of this project, or shared. So a
// provisioner reads nothing of other projects, even if it knows a hash. The caller closes the content. NotFound: there
// is none.
func (s *Service) OpenHash(
	ctx context.Context, project intent.ProjectID, hash string,
) (io.ReadCloser, int64, error) {
	if !blob.IsHash(hash) {
		return nil, 0, fault.New("resources.OpenHash", fault.Invalid, "that is not the SHA-256 of a content")
	}
	if _, err := s.c.Store.LiveClusterContent(ctx, project, hash); err != nil {
		return nil, 0, err
	}
	content, err := s.c.Blobs.Open(ctx, hash)
	if err != nil {
		return nil, 0, err
	}
	return content, content.Size, nil
}
