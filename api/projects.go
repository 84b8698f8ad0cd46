package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

func (s *server) projectCalls(c *calls) {
	v2(c, http.MethodPut, "/api/v2/project", "Create a project.", access.CreateProject, s.createProject)
	whole(c, http.MethodPut, "/api/v1/project", "Create a project.", access.CreateProject, s.createProjectV1)
	v2(c, http.MethodGet, "/api/v2/project", "List the projects with their environments.",
		access.ListProjects, s.listProjects)
	whole(c, http.MethodGet, "/api/v1/project", "List the projects.", access.ListProjects, s.listProjectsV1)
	v2(c, http.MethodGet, "/api/v2/project/{id}", "Show a project.", access.SeeProject, s.getProject)
	whole(c, http.MethodGet, "/api/v1/project/{id}", "Show a project.", access.SeeProject, s.getProjectV1)
	v2(c, http.MethodPost, "/api/v2/project/{id}", "Rename a project.", access.RenameProject, s.renameProject)
	whole(c, http.MethodPost, "/api/v1/project/{id}", "Rename a project.", access.RenameProject, s.renameProjectV1)
	const remove = "Delete a project with all its environments."
	done[noBody](c, http.MethodDelete, "/api/v2/project/{id}", remove, access.DeleteProject, s.deleteProject)
	done[object](c, http.MethodDelete, "/api/v1/project/{id}", remove, access.DeleteProject, s.deleteProject)
}

// project is a project as version 2 shows it.
type project struct {
	ID           uuid.UUID     `json:"id"`
	Name         string        `json:"name"`
	Environments []environment `json:"environments"`
}

// projectV1 is a project as version 1 shows it.
type projectV1 struct {
	ID           uuid.UUID   `json:"id"`
	Name         string      `json:"name"`
	Environments []uuid.UUID `json:"environments"`
}

type projectEnvelope struct {
	Project projectV1 `json:"project"`
}

type projectsEnvelope struct {
	Projects []projectV1 `json:"projects"`
}

type newProject struct {
	Name string     `arg:"name,required"`
	ID   *uuid.UUID `arg:"project_id"`
}

type projectDetails struct {
	Details bool `arg:"environment_details"`
}

type oneProjectDetails struct {
	oneProject
	projectDetails
}

type oneProject struct {
	ID uuid.UUID `arg:"id,required"`
}

type newProjectName struct {
	oneProject
	Name string `arg:"name,required"`
}

func (s *server) createProject(ctx context.Context, a newProject) (project, error) {
	p := intent.Project{Name: a.Name}
	if a.ID != nil {
		p.ID = *a.ID
	}
	p, err := s.control.CreateProject(ctx, p)
	return projectOf(p, nil, false), as500(err, fault.Conflict)
}

func (s *server) createProjectV1(ctx context.Context, a newProject) (projectEnvelope, error) {
	p, err := s.createProject(ctx, a)
	return projectEnvelope{projectV1{ID: p.ID, Name: p.Name, Environments: []uuid.UUID{}}}, err
}

func (s *server) listProjects(ctx context.Context, a projectDetails) ([]project, error) {
	projects, inside, err := s.projects(ctx)
	return listed(projects, func(p intent.Project) project { return projectOf(p, inside[p.ID], a.Details) }), err
}

func (s *server) listProjectsV1(ctx context.Context, _ struct{}) (projectsEnvelope, error) {
	projects, inside, err := s.projects(ctx)
	return projectsEnvelope{listed(projects, func(p intent.Project) projectV1 {
		return projectV1Of(p, inside[p.ID])
	})}, err
}

func (s *server) getProject(ctx context.Context, a oneProjectDetails) (project, error) {
	p, inside, err := s.project(ctx, a.ID)
	return projectOf(p, inside, a.Details), err
}

func (s *server) getProjectV1(ctx context.Context, a oneProject) (projectEnvelope, error) {
	p, inside, err := s.project(ctx, a.ID)
	return projectEnvelope{projectV1Of(p, inside)}, err
}

func (s *server) renameProject(ctx context.Context, a newProjectName) (project, error) {
	if err := s.store.RenameProject(ctx, a.ID, a.Name); err != nil {
		return project{}, as500(err, fault.Conflict)
	}
	return s.getProject(ctx, oneProjectDetails{oneProject: a.oneProject})
}

func (s *server) renameProjectV1(ctx context.Context, a newProjectName) (projectEnvelope, error) {
	if err := s.store.RenameProject(ctx, a.ID, a.Name); err != nil {
		return projectEnvelope{}, as500(err, fault.Conflict)
	}
	return s.getProjectV1(ctx, a.oneProject)
}

func (s *server) deleteProject(ctx context.Context, a oneProject) error {
	return s.control.DeleteProject(ctx, a.ID)
}

// projects returns the projects that the sender may see, and such environments of each.
func (s *server) projects(ctx context.Context) ([]intent.Project, map[uuid.UUID][]intent.Environment, error) {
	projects, err := s.store.Projects(ctx)
	if err != nil {
		return nil, nil, err
	}
	environments, err := s.store.Environments(ctx)
	if err != nil {
		return nil, nil, err
	}
	projects = access.VisibleProjects(ctx, projects, environments)
	inside := map[uuid.UUID][]intent.Environment{}
	for _, e := range access.Visible(ctx, environments) {
		inside[e.ProjectID] = append(inside[e.ProjectID], e)
	}
	return projects, inside, nil
}

func (s *server) project(ctx context.Context, id uuid.UUID) (intent.Project, []intent.Environment, error) {
	p, err := s.store.Project(ctx, id)
	if err != nil {
		return p, nil, err
	}
	_, inside, err := s.projects(ctx)
	return p, inside[id], err
}

func projectOf(p intent.Project, inside []intent.Environment, details bool) project {
	return project{ID: p.ID, Name: p.Name, Environments: listed(inside, func(e intent.Environment) environment {
		return environmentOf(e, details)
	})}
}

func projectV1Of(p intent.Project, inside []intent.Environment) projectV1 {
	return projectV1{ID: p.ID, Name: p.Name, Environments: listed(inside, func(e intent.Environment) uuid.UUID {
		return e.ID
	})}
}
