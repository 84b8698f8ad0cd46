package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/view"
	"ordain.dev/ordain/server/store"
)

// Catalogues are what projects offer. *admin.Service has them.
type Catalogues interface {
	// Catalogue returns what a project may use now.
	Catalogue(ctx context.Context, project intent.ProjectID) (*catalogue.Catalogue, error)
	// Pinned returns the same, but for those entities that are pinned, which have the versions of the pins. NotFound:
	// there is no such version.
	Pinned(
		ctx context.Context, project intent.ProjectID, pins map[catalogue.Kind]map[string]int,
	) (*catalogue.Catalogue, error)
}

// Repository is the Git repository of an environment.
type Repository interface {
	// Tip returns the newest commit of the environment's branch, and the content of a file in it; nil: there is no such
	// file. The path is below the folder of the project file.
	Tip(ctx context.Context, e intent.Environment, path string) (commit string, content []byte, err error)
	// Commit writes a file in the name of the person who asks, on the branch, or as a pull request where the branch is
	// protected. Conflict: the file was changed since the base.
	Commit(ctx context.Context, e intent.Environment, c Change) (Written, error)
}

// Change is a change of one file.
type Change struct {
	Path    string // below the folder of the project file
	Content []byte // nil: the file is deleted
	Base    string // commit that the caller has read
	Title   string
	Body    string
}

// Written says where a change was written.
type Written struct {
	Commit      string `json:"commit"`
	Branch      string `json:"branch,omitempty"`
	PullRequest string `json:"pull_request,omitempty"` // address of its page; empty: the commit is on the branch
}

// Config has what a Service needs; all of it is required, unless its comment says otherwise.
type Config struct {
	Store      *store.Store
	Catalogues Catalogues
	Repository Repository
	Key        *secret.Key // seals the sensitive fields of users
	Bus        *bus.Bus
	Logger     *slog.Logger
	// Owns reports whether this process owns an environment. Only then does it change its clusters.
	Owns func(intent.EnvironmentID) bool
	// Changed is called when machines or services of an environment's clusters may have changed: when a job has ended,
	// or another manifest was reached without one. why is for people. It must not wait for long; nil: nobody asks.
	Changed func(env intent.EnvironmentID, why string)
	// Sweep is the time between two looks at everything; 10 seconds when zero. Events make it look sooner.
	Sweep time.Duration
	Now   func() time.Time // nil: time.Now
}

// Service has the verbs, and reconciles the clusters of the environments that this process owns while it runs. It is
// safe for concurrent use.
type Service struct {
	c       Config
	running service.Runner
	tidied  time.Time // of the loop alone: when old jobs were forgotten last
	ended   sync.Map  // when the end of a cluster whose lease is over was asked for, by its id
}

var _ service.Service = (*Service)(nil)

// New makes a service.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Catalogues == nil || c.Repository == nil || c.Key == nil || c.Bus == nil ||
		c.Logger == nil ||
		c.Owns == nil {
		return nil, errors.New("cluster.New: a part of the configuration is missing")
	}
	if c.Sweep == 0 {
		c.Sweep = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c: c}, nil
}

// publish says that a cluster changed.
func (s *Service) publish(c intent.Cluster) {
	s.c.Bus.Publish(bus.Event{Environment: c.Environment, Topic: bus.Cluster, ID: c.ID.String()})
}

// changed says that what the model sees of a cluster may have changed.
func (s *Service) changed(c intent.Cluster, why string) {
	if s.c.Changed != nil {
		s.c.Changed(c.Environment, why)
	}
}

// View returns what the model of an environment may see of its clusters, by name, and what identifies it.
func (s *Service) View(
	ctx context.Context, env intent.EnvironmentID,
) (all map[string]json.RawMessage, digest string, err error) {
	clusters, err := s.c.Store.Clusters(ctx, env, false)
	if err != nil {
		return nil, "", err
	}
	var nodes []intent.ClusterNode
	if len(clusters) > 0 {
		ids := make([]uuid.UUID, len(clusters))
		for i, c := range clusters {
			ids[i] = c.ID
		}
		if nodes, err = s.c.Store.ClusterNodes(ctx, false, ids...); err != nil {
			return nil, "", err
		}
	}
	seen, err := view.Of(clusters, nodes)
	if err != nil {
		return nil, "", fault.Wrap("cluster.View", fault.Internal, err)
	}
	return seen, seen.Digest(), nil
}

// Busy reports whether a job runs for one of an environment's clusters.
func (s *Service) Busy(ctx context.Context, env intent.EnvironmentID) (bool, error) {
	clusters, err := s.c.Store.Clusters(ctx, env, false)
	for _, c := range clusters {
		jobs, err := s.c.Store.ClusterJobs(ctx, c.ID, 1)
		if err != nil || len(jobs) > 0 && jobs[0].State == intent.JobRunning {
			return err == nil, err
		}
	}
	return false, err
}

// decodeManifest reads a manifest from the record; nil stays nil.
func decodeManifest(raw json.RawMessage) (*manifest.Manifest, error) {
	if raw == nil {
		return nil, nil
	}
	return manifest.Decode(raw)
}

func encodeManifest(m *manifest.Manifest) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	return json.Marshal(m)
}
