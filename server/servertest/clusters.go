package servertest

import (
	"context"
	"encoding/json"
	"io/fs"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/repository"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/cluster/resources/blob"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// openClusters makes the cluster service. No provisioner works: what is asked for stays as it was recorded, until a
// test calls Clusters.Reconcile, and takes and finishes tasks at the desk.
func (s *Server) openClusters(
	records *store.Store, key *secret.Key, folders *layout.Layout, syncer *gitsync.Syncer, sources *source.Opener,
) (err error) {
	if s.Catalogue, err = admin.New(admin.Config{Store: records, Key: key, Bus: s.Bus}); err != nil {
		return err
	}
	contents, err := blob.NewFolder(folders.Resources(), key)
	if err != nil {
		return err
	}
	if s.Resources, err = resources.New(resources.Config{
		Store: records, Catalogues: s.Catalogue, Blobs: contents, Bus: s.Bus, Logger: s.Log,
	}); err != nil {
		return err
	}
	s.Files, err = repository.New(repository.Config{Git: syncer, Sources: sources, Forge: s.Forge})
	if err != nil {
		return err
	}
	if s.Clusters, err = cluster.New(cluster.Config{
		Store: records, Catalogues: s.Catalogue, Repository: s.Files, Key: key, Bus: s.Bus, Logger: s.Log,
		Changed: func(env intent.EnvironmentID, why string) {
			s.Keepers.CompileForClusters(context.Background(), env, why)
		},
		Owns: func(intent.EnvironmentID) bool { return true },
	}); err != nil {
		return err
	}
	s.Desk, err = desk.New(desk.Config{
		Store: records, Catalogues: s.Catalogue, Resources: s.Resources, Key: key, Bus: s.Bus, Logger: s.Log,
	})
	return err
}

// clusterFiles reads cluster files for the keepers, which are made before the service that does it.
type clusterFiles struct{ s *Server }

func (c clusterFiles) Concerned(ctx context.Context, e intent.Environment, project fs.FS) (bool, error) {
	return c.s.Clusters.Concerned(ctx, e, project)
}

func (c clusterFiles) Read(
	ctx context.Context, e intent.Environment, project fs.FS, out func(string),
) (json.RawMessage, error) {
	return c.s.Clusters.Read(ctx, e, project, out)
}

func (c clusterFiles) View(
	ctx context.Context, env intent.EnvironmentID,
) (all map[string]json.RawMessage, digest string, err error) {
	return c.s.Clusters.View(ctx, env)
}

func (c clusterFiles) Busy(ctx context.Context, env intent.EnvironmentID) (bool, error) {
	return c.s.Clusters.Busy(ctx, env)
}
