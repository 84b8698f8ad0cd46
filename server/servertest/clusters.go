package servertest

import (
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
	files, err := repository.New(repository.Config{Git: syncer, Sources: sources, Forge: s.Forge})
	if err != nil {
		return err
	}
	if s.Clusters, err = cluster.New(cluster.Config{
		Store: records, Catalogues: s.Catalogue, Repository: files, Key: key, Bus: s.Bus, Logger: s.Log,
		Owns: func(intent.EnvironmentID) bool { return true },
	}); err != nil {
		return err
	}
	s.Desk, err = desk.New(desk.Config{
		Store: records, Catalogues: s.Catalogue, Resources: s.Resources, Key: key, Bus: s.Bus, Logger: s.Log,
	})
	return err
}
