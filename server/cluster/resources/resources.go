// Package resources keeps the files that plug-ins use: private keys, scripts, cookbooks.
// A plug-in type declares its types of resources (catalogue.ResourceType); here are their
// contents, in versions.
//
//	Upload ─▶ inactive ──Stage──▶ staged ──Sync──▶ active ──Recall──▶ recalled ──Sync──▶ inactive ─▶ Delete
//	             ▲                  │                 ▲                   │
//	             └──────Recall──────┘                 └───────Stage───────┘
//
//	desk ◀─ Active: what a plug-in has for a project ◀─ records ─ hash ─▶ contents (package blob)
//	desk ◀─ OpenHash: a content, if it is active for the project ◀────────────┘
//
// Staging and recalling only say what the next Sync does, so that several files change at
// one moment. Of a name, one version is active and one is to be. What a project has of its
// own hides what is shared by all; a zero project stands for what is shared.
//
// Contents are put before they are recorded, and deleted after their last record, so a
// record without content cannot be. Contents without a record, of a crash, go with Tidy.
// Who may call a verb is for the callers.
//
//	resources.go  the service, and the verbs on versions
//	upload.go     a stream ─▶ a content that is known to be right ─▶ a new version
//	serve.go      what plug-ins get
//	tidy.go       contents that no version has
package resources

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/resources/blob"
	"ordain.dev/ordain/server/store"
)

// The limits, unless the configuration has others.
const (
	DefaultMaxSize     = 256 << 20
	DefaultMaxVersions = 10_000
)

// Catalogues says which plug-ins a project may use. With a zero project these are the shared ones.
type Catalogues interface {
	Catalogue(ctx context.Context, project intent.ProjectID) (*catalogue.Catalogue, error)
}

// Config has what a Service needs. What has a default may be zero; all else is required.
type Config struct {
	Store      *store.Store
	Catalogues Catalogues
	Blobs      blob.Store
	Bus        *bus.Bus
	Logger     *slog.Logger

	MaxSize     int64         // bytes of one content; DefaultMaxSize when zero
	MaxTotal    int64         // bytes of all versions of a project, or of the shared ones; no limit when zero
	MaxVersions int64         // of a project, or shared; DefaultMaxVersions when zero
	TidyEvery   time.Duration // an hour when zero
	TidyAge     time.Duration // of a content that may be deleted as nobody's; an hour when zero
	Now         func() time.Time
}

// Service has the verbs, and tidies while it runs. It is safe for concurrent use, also by several processes with one
// database and one blob.Store.
type Service struct {
	c       Config
	running service.Runner
}

var _ service.Service = (*Service)(nil)

// New makes a Service.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Catalogues == nil || c.Blobs == nil || c.Bus == nil || c.Logger == nil {
		return nil, errors.New("resources.New: a part of the configuration is missing")
	}
	if c.MaxSize < 0 || c.MaxTotal < 0 || c.MaxVersions < 0 || c.TidyEvery < 0 || c.TidyAge < 0 {
		return nil, errors.New("resources.New: a limit is negative")
	}
	if c.MaxSize == 0 {
		c.MaxSize = DefaultMaxSize
	}
	if c.MaxVersions == 0 {
		c.MaxVersions = DefaultMaxVersions
	}
	if c.TidyEvery == 0 {
		c.TidyEvery = time.Hour
	}
	if c.TidyAge == 0 {
		c.TidyAge = time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c: c}, nil
}

// List lists versions by name, the newest first.
func (s *Service) List(
	ctx context.Context, project intent.ProjectID, f store.ClusterResourceFilter,
) ([]intent.ClusterResource, error) {
	if _, _, known := f.Status.Flags(); f.Status != "" && !known {
		return nil, fault.New("resources.List", fault.Invalid, "there is no such status of a resource").
			Hint("the statuses are inactive, staged, active and recalled")
	}
	return s.c.Store.ClusterResources(ctx, project, f)
}

// Get returns a version.
func (s *Service) Get(ctx context.Context, ref intent.ClusterResourceRef) (intent.ClusterResource, error) {
	return s.c.Store.ClusterResource(ctx, ref)
}

// Stage makes the next Sync activate a version, in place of any other one of its name. A version that was recalled is
// active again. To stage a version twice changes nothing.
func (s *Service) Stage(ctx context.Context, ref intent.ClusterResourceRef) (intent.ClusterResource, error) {
	r, err := s.c.Store.ClusterResource(ctx, ref)
	if err != nil {
		return r, err
	}
	// Nobody is told to use what is not there: the folder may have been lost, or be that of another machine.
	if _, err := s.c.Blobs.Stat(ctx, r.Hash); err != nil {
		return intent.ClusterResource{}, err
	}
	return s.slate(ctx, ref, true)
}

// Recall makes the next Sync deactivate a version. One that was only staged is inactive again.
func (s *Service) Recall(ctx context.Context, ref intent.ClusterResourceRef) (intent.ClusterResource, error) {
	return s.slate(ctx, ref, false)
}

func (s *Service) slate(
	ctx context.Context, ref intent.ClusterResourceRef, slated bool,
) (intent.ClusterResource, error) {
	r, err := s.c.Store.SlateClusterResource(ctx, ref, slated)
	if err == nil {
		s.publish()
	}
	return r, err
}

// Changes is what a Sync did.
type Changes struct {
	Activated []intent.ClusterResource
	Retired   []intent.ClusterResource // they are inactive now
}

// Sync activates what is staged, and deactivates what is recalled, all at one moment. Tasks that are taken afterwards
// have the new versions; machines keep what earlier ones brought there.
func (s *Service) Sync(ctx context.Context, project intent.ProjectID) (Changes, error) {
	activated, retired, err := s.c.Store.SyncClusterResources(ctx, project)
	if err != nil {
		return Changes{}, err
	}
	if len(activated)+len(retired) > 0 {
		s.publish()
	}
	return Changes{Activated: activated, Retired: retired}, nil
}

// Delete deletes a version. Conflict: it is not inactive.
func (s *Service) Delete(ctx context.Context, ref intent.ClusterResourceRef) error {
	r, err := s.c.Store.DeleteClusterResource(ctx, ref)
	if err != nil {
		return err
	}
	s.publish()
	// The version is gone in any case. If its content cannot be deleted now, Tidy will.
	if _, err := s.c.Store.ForgetClusterContent(ctx, r.Hash, func(ctx context.Context) error {
		return s.c.Blobs.Delete(ctx, r.Hash)
	}); err != nil {
		s.c.Logger.Warn("The content of a deleted resource could not be deleted; it is tried again later",
			"resource", r.Name, "version", r.Version, "hash", r.Hash, "error", err)
	}
	return nil
}

// Open returns a version with its content, whatever its status. It is for people: plug-ins use OpenHash. The caller
// closes the content.
func (s *Service) Open(
	ctx context.Context, ref intent.ClusterResourceRef,
) (intent.ClusterResource, blob.Content, error) {
	r, err := s.c.Store.ClusterResource(ctx, ref)
	if err != nil {
		return r, blob.Content{}, err
	}
	content, err := s.c.Blobs.Open(ctx, r.Hash)
	return r, content, err
}

// publish says that resources changed.
func (s *Service) publish() { s.c.Bus.Publish(bus.Event{Topic: bus.Cluster}) }
