package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// What clusters are made of belongs to a project, or is shared by all. Each call stands at two places: below
// sharedCatalogue, and below projectCatalogue for what a project may use, which is its own and what is shared. With
// either as the base of all paths, the calls are where Coopr has them.
const (
	sharedCatalogue  = "/api/v2/cluster"
	projectCatalogue = "/api/v2/cluster/project/{id}"
)

// inProject are the arguments of a call on a project's catalogue; A are those of the same call on the shared one.
type inProject[A any] struct {
	oneProject
	Args A `arg:",inline"`
}

// verbs are the verbs of a call on the catalogue of a project, and on the shared one.
type verbs struct{ own, shared access.Verb }

var (
	seeCatalogue    = verbs{access.SeeCatalogue, access.SeeSharedCatalogue}
	changeCatalogue = verbs{access.ChangeCatalogue, access.ChangeSharedCatalogue}
)

// inCatalogue declares a call at both places. handle gets the project, which is zero for the shared catalogue.
func inCatalogue[A, R any](
	c *calls, method, path, summary string, v verbs, handle func(context.Context, intent.ProjectID, A) (R, error),
	options ...option,
) {
	name := nameOf(handle)
	v2(c, method, sharedCatalogue+path, "Shared by all projects: "+summary, v.shared,
		func(ctx context.Context, a A) (R, error) { return handle(ctx, uuid.Nil, a) },
		append(slices.Clone(options), named(name+"Shared"))...)
	v2(c, method, projectCatalogue+path, "Of a project: "+summary, v.own,
		func(ctx context.Context, a inProject[A]) (R, error) { return handle(ctx, a.ID, a.Args) },
		append(slices.Clone(options), named(name))...)
}

// catalogueCalls are about what clusters are made of. A kind is one of providertypes, automatortypes, providers,
// hardwaretypes, imagetypes, services, partialtemplates and clustertemplates.
func (s *server) catalogueCalls(c *calls) {
	const all, one, version = "/{kind}", "/{kind}/{name}", "/{kind}/{name}/{version}"
	s.templateCalls(c) // before those with a kind, since their paths are more special
	s.moveCalls(c)
	inCatalogue(c, http.MethodGet, all, "list what there is of a kind.", seeCatalogue, s.listEntities)
	inCatalogue(c, http.MethodPost, all, "create an entity: the body is its JSON, as Coopr has it.", changeCatalogue,
		s.createEntity)
	inCatalogue(c, http.MethodGet, one, "show an entity.", seeCatalogue, s.getEntity)
	inCatalogue(c, http.MethodPut, one, "write a new version of an entity: the body is its JSON.", changeCatalogue,
		s.replaceEntity)
	inCatalogue(c, http.MethodDelete, one, "delete an entity that nothing uses.", changeCatalogue, s.deleteEntity)
	inCatalogue(c, http.MethodGet, one+"/versions", "list the versions of an entity, newest first.", seeCatalogue,
		s.listEntityVersions)
	inCatalogue(c, http.MethodGet, version, "show a version of an entity.", seeCatalogue, s.getEntityVersion)
	inCatalogue(c, http.MethodDelete, version, "delete an old version of an entity that no cluster uses.",
		changeCatalogue,
		s.deleteEntityVersion)
}

func (s *server) catalogueService() (*admin.Service, error) {
	if s.catalogue == nil {
		return nil, noClusters()
	}
	return s.catalogue, nil
}

// entity is an entity of the catalogue. Its content is the JSON of Coopr; a marker stands for secrets that are set.
type entity struct {
	Kind    string          `json:"kind"`
	Name    string          `json:"name"`
	Version int             `json:"version"` // 0: it is built in
	Project *uuid.UUID      `json:"project"` // null: it is shared
	BuiltIn bool            `json:"built_in"`
	Made    *timestamp      `json:"made"`
	MadeBy  *string         `json:"made_by"`
	Content json.RawMessage `json:"content"`
}

func entityOf(i admin.Item) entity {
	return entity{
		Kind: string(i.Kind), Name: i.Name, Version: i.Version, Project: orNull(i.Project), BuiltIn: i.BuiltIn,
		Made: unlessZero(i.Made), MadeBy: orNull(i.MadeBy), Content: i.Content,
	}
}

// problem is something wrong with an entity, with the path of the field that has it.
type problem struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

func problemsOf(all []catalogue.Problem) []problem {
	return listed(all, func(p catalogue.Problem) problem { return problem(p) })
}

type entityVersion struct {
	Version int       `json:"version"`
	Deleted bool      `json:"deleted"` // the entity was deleted then
	Made    timestamp `json:"made"`
	MadeBy  string    `json:"made_by"`
}

type oneKind struct {
	Kind string `arg:"kind,required"`
}

type newEntity struct {
	oneKind
	jsonBody
}

type oneEntity struct {
	oneKind
	Name string `arg:"name,required"`
}

type changedEntity struct {
	oneEntity
	jsonBody
}

type oneEntityVersion struct {
	oneEntity
	Version int `arg:"version,required"`
}

// kind returns a kind of the catalogue by its name in paths.
func (k oneKind) kind() (catalogue.Kind, error) {
	kind := catalogue.Kind(k.Kind)
	if slices.Contains(catalogue.Kinds, kind) {
		return kind, nil
	}
	names := listed(catalogue.Kinds, func(k catalogue.Kind) string { return string(k) })
	return "", fault.New("api", fault.NotFound, "the catalogue has no such kind; it has "+listWords(names))
}

// ofKind finds the service and the kind that a call is about.
func (s *server) ofKind(k oneKind) (*admin.Service, catalogue.Kind, error) {
	service, err := s.catalogueService()
	if err != nil {
		return nil, "", err
	}
	kind, err := k.kind()
	return service, kind, err
}

func (s *server) listEntities(ctx context.Context, project intent.ProjectID, a oneKind) ([]entity, error) {
	service, kind, err := s.ofKind(a)
	if err != nil {
		return nil, err
	}
	all, err := service.List(ctx, project, kind)
	return listed(all, entityOf), err
}

func (s *server) createEntity(ctx context.Context, project intent.ProjectID, a newEntity) (entity, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return entity{}, err
	}
	i, err := service.Create(ctx, project, kind, a.Text)
	return entityOf(i), err
}

func (s *server) getEntity(ctx context.Context, project intent.ProjectID, a oneEntity) (entity, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return entity{}, err
	}
	i, err := service.Get(ctx, project, kind, a.Name)
	return entityOf(i), err
}

func (s *server) replaceEntity(ctx context.Context, project intent.ProjectID, a changedEntity) (entity, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return entity{}, err
	}
	i, err := service.Replace(ctx, project, kind, a.Name, a.Text)
	return entityOf(i), err
}

// gone is the answer of a call that deletes: {"data": null}.
type gone = *struct{}

func (s *server) deleteEntity(ctx context.Context, project intent.ProjectID, a oneEntity) (gone, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return nil, err
	}
	return nil, service.Delete(ctx, project, kind, a.Name)
}

func (s *server) listEntityVersions(
	ctx context.Context, project intent.ProjectID, a oneEntity,
) ([]entityVersion, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return nil, err
	}
	all, err := service.Versions(ctx, project, kind, a.Name)
	if err == nil && len(all) == 0 { // there may be a shared or a built-in one, of which the project has no versions
		_, err = service.Get(ctx, project, kind, a.Name)
	}
	return listed(all, func(v admin.Version) entityVersion {
		return entityVersion{Version: v.Version, Deleted: v.Deleted, Made: stamp(v.Made), MadeBy: v.MadeBy}
	}), err
}

func (s *server) getEntityVersion(ctx context.Context, project intent.ProjectID, a oneEntityVersion) (entity, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return entity{}, err
	}
	i, err := service.GetVersion(ctx, project, kind, a.Name, a.Version)
	return entityOf(i), err
}

func (s *server) deleteEntityVersion(ctx context.Context, project intent.ProjectID, a oneEntityVersion) (gone, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return nil, err
	}
	return nil, service.DeleteVersion(ctx, project, kind, a.Name, a.Version)
}
