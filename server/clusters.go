package server

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/repository"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/cluster/resources/blob"
	"ordain.dev/ordain/server/cluster/workers"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// Clusters are the parts of the cluster service.
type Clusters struct {
	Catalogue *admin.Service
	Resources *resources.Service
	Clusters  *cluster.Service
	Desk      *desk.Desk
	Workers   *workers.Service // the server's own provisioners; nil: none run in this process
	// Provisioners are those that run elsewhere.
	Provisioners *authority.Service
}

// openCatalogue makes what administrators offer, and the files of plug-ins.
func (s *Server) openCatalogue(records *store.Store, events *bus.Bus, key *secret.Key) (err error) {
	c := &s.clusters
	if c.Catalogue, err = admin.New(admin.Config{Store: records, Key: key, Bus: events}); err != nil {
		return err
	}
	contents, err := s.openContents(key)
	if err != nil {
		return err
	}
	o := s.cfg.Options
	c.Resources, err = resources.New(resources.Config{
		Store: records, Catalogues: c.Catalogue, Blobs: contents, Bus: events, Logger: s.log,
		MaxSize: int64(o.MaxResourceSize), MaxTotal: int64(o.MaxResourceTotal),
	})
	return err
}

// openContents opens the place of the contents of plug-in resources.
func (s *Server) openContents(key *secret.Key) (blob.Store, error) {
	switch o := s.cfg.Options; o.ResourceStore {
	case config.ResourcesS3:
		return blob.NewS3(blob.S3Config{
			Endpoint: o.S3Endpoint, Bucket: o.S3Bucket, Prefix: o.S3Prefix, Region: o.S3Region,
			AccessKey: o.S3AccessKey, SecretKey: o.S3SecretKey, Key: key, Spool: s.layout.Resources(),
		})
	case config.ResourcesFolder:
		folder := o.ResourceFolder
		if folder == "" {
			folder = s.layout.Resources()
		}
		return blob.NewFolder(folder, key)
	}
	return blob.Off{}, nil
}

// openClusters makes the verbs about clusters, and the desk that hands out their tasks.
func (s *Server) openClusters(
	records *store.Store, events *bus.Bus, key *secret.Key, syncer *gitsync.Syncer, sources *source.Opener,
) error {
	files, err := repository.New(repository.Config{Git: syncer, Sources: sources, Forge: s.forge})
	if err != nil {
		return err
	}
	c := &s.clusters
	if c.Clusters, err = cluster.New(cluster.Config{
		Store: records, Catalogues: c.Catalogue, Repository: files, Key: key, Bus: events, Logger: s.log,
		Owns: func(env intent.EnvironmentID) bool { return s.keepers != nil && s.keepers.Owns(env) },
	}); err != nil {
		return err
	}
	o := s.cfg.Options
	c.Desk, err = desk.New(desk.Config{
		Store: records, Catalogues: c.Catalogue, Resources: c.Resources, Key: key, Bus: events, Logger: s.log,
		Lease: o.ClusterLease, Backoff: o.ClusterBackoff,
	})
	return err
}

// openWorkers makes the server's own provisioners. Ansible needs the Python interpreter.
func (s *Server) openWorkers(records *store.Store, events *bus.Bus, confined *isolation.Config, python string) error {
	o := s.cfg.Options
	if !o.Has(config.RoleProcess) || o.ProvisionersMax == 0 {
		return nil
	}
	program := slices.Clone(s.cfg.Program)
	path, err := exec.LookPath(program[0])
	if err == nil {
		program[0], err = filepath.Abs(path)
	}
	if err != nil {
		return fault.Wrap("server.openWorkers", fault.Internal, err).Say("cannot find the program of provisioners")
	}
	var environ []string
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"} {
		if value, set := os.LookupEnv(name); set {
			environ = append(environ, name+"="+value)
		}
	}
	s.clusters.Workers, err = workers.New(workers.Config{
		Desk: s.clusters.Desk, Store: records, Layout: s.layout, Bus: events, Logger: s.log, Program: program,
		Plugins: o.ProvisionerPlugins, Environ: environ, Read: isolation.Interpreter(python), Isolation: confined,
		LastUser: config.UsersMax - 1, Max: o.ProvisionersMax, Idle: o.ProvisionerIdle,
	})
	return err
}

// clusterParts are what runs of the cluster service in this process.
func (s *Server) clusterParts() []service.Service {
	o, c := s.cfg.Options, s.clusters
	var parts []service.Service
	if o.Has(config.RoleProcess) || s.gateway != nil {
		parts = append(parts, c.Desk)
	}
	if o.Has(config.RoleProcess) {
		parts = append(parts, c.Resources, c.Clusters)
	}
	if c.Workers != nil {
		parts = append(parts, c.Workers)
	}
	return parts
}

// clusterFiles reads cluster files for the keepers, which are made before the service that does it.
type clusterFiles struct{ s *Server }

func (c *clusterFiles) Concerned(ctx context.Context, e intent.Environment, project fs.FS) (bool, error) {
	return c.s.clusters.Clusters.Concerned(ctx, e, project)
}

func (c *clusterFiles) Read(
	ctx context.Context, e intent.Environment, project fs.FS, out func(string),
) (json.RawMessage, error) {
	return c.s.clusters.Clusters.Read(ctx, e, project, out)
}

// clusterPlans plans what a version would do to clusters, for comments on pull requests.
func (s *Server) clusterPlans(ctx context.Context, e intent.Environment, version int) ([]string, error) {
	manifests, err := s.store.VersionClusters(ctx, e.ID, version)
	if err != nil {
		return nil, err
	}
	plans, err := s.clusters.Clusters.PreviewVersion(ctx, e, manifests)
	texts := make([]string, 0, len(plans))
	for _, p := range plans {
		texts = append(texts, p.String())
	}
	return texts, err
}

// Clusters returns the parts of the cluster service, once Start has returned.
func (s *Server) Clusters() Clusters { return s.clusters }
