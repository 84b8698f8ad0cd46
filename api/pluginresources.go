package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/store"
)

var uploadResources = verbs{access.UploadResource, access.UploadSharedResource}

// pluginResourceCalls are about the files that plug-ins use. The type is providertypes or automatortypes.
func (s *server) pluginResourceCalls(c *calls) {
	const all = "/plugins/{type}/{plugin}/{resource_type}"
	const one, version = all + "/{name}", all + "/{name}/versions/{version}"
	inCatalogue(c, http.MethodGet, "/plugins/resources", "list the files of plug-ins, the newest version of each "+
		"first.",
		seeCatalogue, s.listAllPluginResources)
	inCatalogue(c, http.MethodPost, "/plugins/sync", "activate the files that are staged, and retire those that are "+
		"recalled.", uploadResources, s.syncPluginResources)
	inCatalogue(c, http.MethodGet, all, "list the files of one type.", seeCatalogue, s.listPluginResources)
	inCatalogue(c, http.MethodGet, one, "list the versions of a file, newest first.", seeCatalogue,
		s.listPluginResourceVersions)
	inCatalogue(c, http.MethodPost, one, "upload a new version of a file, which is inactive: the body is its content.",
		uploadResources, s.uploadPluginResource)
	inCatalogue(c, http.MethodGet, version, "show a version of a file.", seeCatalogue, s.getPluginResource)
	inCatalogue(c, http.MethodDelete, version, "delete a version of a file that is inactive.", uploadResources,
		s.deletePluginResource)
	inCatalogue(c, http.MethodPost, version+"/stage", "have the next sync activate a version.", uploadResources,
		s.stagePluginResource)
	inCatalogue(c, http.MethodPost, version+"/recall", "have the next sync retire a version.", uploadResources,
		s.recallPluginResource)
	const content, summary = version + "/content", "download a version of a file."
	whole(c, http.MethodGet, sharedCatalogue+content, "Shared by all projects: "+summary, access.UploadSharedResource,
		s.downloadSharedPluginResource)
	whole(c, http.MethodGet, projectCatalogue+content, "Of a project: "+summary, access.DownloadResource,
		s.downloadPluginResource)
}

func (s *server) resourceService() (*resources.Service, error) {
	if s.resources == nil {
		return nil, noClusters()
	}
	return s.resources, nil
}

// pluginResource is a version of a file that plug-ins use.
type pluginResource struct {
	Type         string     `json:"type"`
	Plugin       string     `json:"plugin"`
	ResourceType string     `json:"resource_type"`
	Name         string     `json:"name"`
	Version      int        `json:"version"`
	Project      *uuid.UUID `json:"project"` // null: it is shared
	Status       string     `json:"status"`  // inactive, staged, active or recalled
	Size         int64      `json:"size"`
	Hash         string     `json:"sha256"`
	Made         timestamp  `json:"made"`
	MadeBy       string     `json:"made_by"`
}

func pluginResourceOf(r intent.ClusterResource) pluginResource {
	return pluginResource{
		Type: r.Kind, Plugin: r.Plugin, ResourceType: r.Type, Name: r.Name, Version: r.Version,
		Project: orNull(r.Project),
		Status:  string(r.Status()), Size: r.Size, Hash: r.Hash, Made: stamp(r.Made), MadeBy: r.MadeBy,
	}
}

type pluginResourceStatus struct {
	Status string `arg:"status"`
}

// filter lists those of a status; of a project also the shared ones.
func (a pluginResourceStatus) filter() (store.ClusterResourceFilter, error) {
	f := store.ClusterResourceFilter{Status: intent.ClusterResourceStatus(a.Status), Shared: true}
	if _, _, ok := f.Status.Flags(); !ok && a.Status != "" {
		return f, invalid("there is no status %.100q; there are inactive, staged, active and recalled", a.Status)
	}
	return f, nil
}

type oneResourceType struct {
	Type         string `arg:"type,required"`
	Plugin       string `arg:"plugin,required"`
	ResourceType string `arg:"resource_type,required"`
}

type resourcesOfType struct {
	oneResourceType
	pluginResourceStatus
}

type oneResourceName struct {
	oneResourceType
	Name string `arg:"name,required"`
}

type resourceVersions struct {
	oneResourceName
	pluginResourceStatus
}

type newResource struct {
	oneResourceName
	fileBody
}

type oneResourceVersion struct {
	oneResourceName
	Version int `arg:"version,required"`
}

func (a oneResourceName) ref(project intent.ProjectID) intent.ClusterResourceRef {
	return intent.ClusterResourceRef{
		Project: project, Kind: a.Type, Plugin: a.Plugin, Type: a.ResourceType, Name: a.Name,
	}
}

func (a oneResourceVersion) ref(project intent.ProjectID) intent.ClusterResourceRef {
	ref := a.oneResourceName.ref(project)
	ref.Version = a.Version
	return ref
}

func (s *server) findResources(
	ctx context.Context, project intent.ProjectID, f store.ClusterResourceFilter,
) ([]pluginResource, error) {
	service, err := s.resourceService()
	if err != nil {
		return nil, err
	}
	all, err := service.List(ctx, project, f)
	return listed(all, pluginResourceOf), err
}

func (s *server) listAllPluginResources(
	ctx context.Context, project intent.ProjectID, a pluginResourceStatus,
) ([]pluginResource, error) {
	f, err := a.filter()
	if err != nil {
		return nil, err
	}
	return s.findResources(ctx, project, f)
}

func (s *server) listPluginResources(
	ctx context.Context, project intent.ProjectID, a resourcesOfType,
) ([]pluginResource, error) {
	f, err := a.filter()
	if err != nil {
		return nil, err
	}
	f.Kind, f.Plugin, f.Type = a.Type, a.Plugin, a.ResourceType
	return s.findResources(ctx, project, f)
}

func (s *server) listPluginResourceVersions(
	ctx context.Context, project intent.ProjectID, a resourceVersions,
) ([]pluginResource, error) {
	f, err := a.filter()
	if err != nil {
		return nil, err
	}
	f.Kind, f.Plugin, f.Type, f.Name = a.Type, a.Plugin, a.ResourceType, a.Name
	return s.findResources(ctx, project, f)
}

func (s *server) uploadPluginResource(
	ctx context.Context, project intent.ProjectID, a newResource,
) (pluginResource, error) {
	service, err := s.resourceService()
	if err != nil {
		return pluginResource{}, err
	}
	r, err := service.Upload(ctx, a.ref(project), a.Content)
	return pluginResourceOf(r), err
}

func (s *server) getPluginResource(
	ctx context.Context, project intent.ProjectID, a oneResourceVersion,
) (pluginResource, error) {
	service, err := s.resourceService()
	if err != nil {
		return pluginResource{}, err
	}
	r, err := service.Get(ctx, a.ref(project))
	return pluginResourceOf(r), err
}

func (s *server) deletePluginResource(
	ctx context.Context, project intent.ProjectID, a oneResourceVersion,
) (gone, error) {
	service, err := s.resourceService()
	if err != nil {
		return nil, err
	}
	return nil, service.Delete(ctx, a.ref(project))
}

func (s *server) stagePluginResource(
	ctx context.Context, project intent.ProjectID, a oneResourceVersion,
) (pluginResource, error) {
	service, err := s.resourceService()
	if err != nil {
		return pluginResource{}, err
	}
	r, err := service.Stage(ctx, a.ref(project))
	return pluginResourceOf(r), err
}

func (s *server) recallPluginResource(
	ctx context.Context, project intent.ProjectID, a oneResourceVersion,
) (pluginResource, error) {
	service, err := s.resourceService()
	if err != nil {
		return pluginResource{}, err
	}
	r, err := service.Recall(ctx, a.ref(project))
	return pluginResourceOf(r), err
}

type noArguments struct{}

type syncedResources struct {
	Activated []pluginResource `json:"activated"`
	Retired   []pluginResource `json:"retired"`
}

func (s *server) syncPluginResources(
	ctx context.Context, project intent.ProjectID, _ noArguments,
) (syncedResources, error) {
	service, err := s.resourceService()
	if err != nil {
		return syncedResources{}, err
	}
	done, err := service.Sync(ctx, project)
	return syncedResources{
		Activated: listed(done.Activated, pluginResourceOf), Retired: listed(done.Retired, pluginResourceOf),
	}, err
}

func (s *server) downloadSharedPluginResource(ctx context.Context, a oneResourceVersion) (fileAnswer, error) {
	return s.download(ctx, a.ref(uuid.Nil))
}

func (s *server) downloadPluginResource(ctx context.Context, a inProject[oneResourceVersion]) (fileAnswer, error) {
	return s.download(ctx, a.Args.ref(a.ID))
}

func (s *server) download(ctx context.Context, ref intent.ClusterResourceRef) (fileAnswer, error) {
	service, err := s.resourceService()
	if err != nil {
		return fileAnswer{}, err
	}
	r, content, err := service.Open(ctx, ref)
	if err != nil {
		return fileAnswer{}, err
	}
	if content.ReadCloser == nil {
		return fileAnswer{}, fault.New("api", fault.Internal, "a file has no content")
	}
	return fileAnswer{content: content, size: content.Size, name: fmt.Sprintf("%s-%d", r.Name, r.Version)}, nil
}
