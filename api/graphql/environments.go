package graphql

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/api/graphql/schema"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// expertMode is a setting of a reference's extension; it counts where somebody set it.
const expertMode = "enable_lsm_expert_mode"

// visible returns the ids of the environments that the sender may see, and nil for all; only is the one that the query
// asks for, if it is not nil.
func (d *Door) visible(ctx context.Context, only *uuid.UUID) ([]uuid.UUID, error) {
	if access.Of(ctx).SeesAll() {
		if only == nil {
			return nil, nil
		}
		return []uuid.UUID{*only}, nil
	}
	all, err := d.cfg.Store.Environments(ctx)
	ids := []uuid.UUID{}
	for _, e := range access.Visible(ctx, all) {
		if only == nil || e.ID == *only {
			ids = append(ids, e.ID)
		}
	}
	return ids, err
}

// Environments answers the root environments.
func (r resolvers) Environments(
	ctx context.Context, first *int32, after *string, last *int32, before *string,
	filter *schema.EnvironmentFilter, orderBy []*schema.EnvironmentOrder,
) (*schema.EnvironmentConnection, error) {
	return read(ctx, func() (*schema.EnvironmentConnection, error) {
		if err := access.Check(ctx, access.ListEnvironments, access.Target{}, nil); err != nil {
			return nil, err
		}
		var by []order
		for _, o := range orderBy {
			by = append(by, order{o.Key, o.Order})
		}
		w, err := window(first, after, last, before, by)
		if err != nil {
			return nil, err
		}
		var only *uuid.UUID
		if filter != nil {
			only = filter.ID
		}
		ids, err := r.door.visible(ctx, only)
		if err != nil {
			return nil, err
		}
		found, err := r.door.cfg.Store.EnvironmentWindow(ctx, ids, w)
		if err != nil {
			return nil, err
		}
		out := &schema.EnvironmentConnection{Edges: []*schema.EnvironmentEdge{}}
		var cursors []string
		out.PageInfo, cursors = pageInfo(w, found)
		settings := selected(ctx, "edges", "node", "settings")
		for i, e := range found.Items {
			node, err := r.door.environment(ctx, e, settings)
			if err != nil {
				return nil, err
			}
			out.Edges = append(out.Edges, &schema.EnvironmentEdge{Cursor: cursors[i], Node: node})
		}
		out.TotalCount, err = total(ctx, func() (int, error) { return r.door.cfg.Store.CountEnvironments(ctx, ids) })
		return out, err
	})
}

func (d *Door) environment(
	ctx context.Context, e store.EnvironmentNow, settings bool,
) (*schema.Environment, error) {
	expert, _ := e.Settings[expertMode].(bool)
	out := &schema.Environment{
		ID: e.ID, Name: e.Name, Project: e.ProjectID, Halted: e.Halted, RepoURL: &e.Source.URL,
		RepoBranch: &e.Source.Branch, LastVersion: ptr(int32(e.LastVersion)), Description: &e.Description,
		Icon: &e.Icon, IsMarkedForDeletion: ptr(false), IsExpertMode: expert, IsCompiling: e.Compiling,
	}
	if settings {
		if err := d.cfg.Allow(ctx, access.SeeEnvironment, e.ID); err != nil {
			return nil, err
		}
		out.Settings = d.cfg.Settings(e.Environment)
	}
	return out, nil
}
