package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type newProject struct {
	Name string     `arg:"name,required"`
	ID   *uuid.UUID `arg:"project_id"`
}

type oneProject struct {
	ID      uuid.UUID `arg:"id,required"`
	Details bool      `arg:"environment_details"`
}

type oneProjectV1 struct {
	ID uuid.UUID `arg:"id,required"`
}

type renameProject struct {
	ID   uuid.UUID `arg:"id,required"`
	Name string    `arg:"name,required"`
}

type details struct {
	Details bool `arg:"details"`
}

type environmentDetails struct {
	Details bool `arg:"environment_details"`
}

func (s *server) projects(g *gin.Engine) {
	call(s, g, http.MethodPut, "/api/v2/project", func(ctx context.Context, a newProject) (reply, error) {
		p, err := s.createProject(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v2(map[string]any{"id": p.ID, "name": p.Name, "environments": []any{}})
	})
	call(s, g, http.MethodPut, "/api/v1/project", func(ctx context.Context, a newProject) (reply, error) {
		p, err := s.createProject(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"project": map[string]any{"id": p.ID, "name": p.Name}})
	})
	call(s, g, http.MethodGet, "/api/v2/project", func(ctx context.Context, a environmentDetails) (reply, error) {
		projects, inside, err := s.allProjects(ctx)
		if err != nil {
			return reply{}, err
		}
		return v2(listed(projects, func(p intent.Project) any { return projectV2(p, inside[p.ID], a.Details) }))
	})
	call(s, g, http.MethodGet, "/api/v1/project", func(ctx context.Context, _ struct{}) (reply, error) {
		projects, inside, err := s.allProjects(ctx)
		if err != nil {
			return reply{}, err
		}
		return v1(
			map[string]any{
				"projects": listed(projects, func(p intent.Project) any { return projectV1(p, inside[p.ID]) }),
			},
		)
	})
	call(s, g, http.MethodGet, "/api/v2/project/{id}", func(ctx context.Context, a oneProject) (reply, error) {
		p, inside, err := s.project(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(projectV2(p, inside, a.Details))
	})
	call(s, g, http.MethodGet, "/api/v1/project/{id}", func(ctx context.Context, a oneProjectV1) (reply, error) {
		p, inside, err := s.project(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"project": projectV1(p, inside)})
	})
	call(s, g, http.MethodPost, "/api/v2/project/{id}", func(ctx context.Context, a renameProject) (reply, error) {
		p, inside, err := s.renameProject(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v2(projectV2(p, inside, false))
	})
	call(s, g, http.MethodPost, "/api/v1/project/{id}", func(ctx context.Context, a renameProject) (reply, error) {
		p, inside, err := s.renameProject(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"project": projectV1(p, inside)})
	})
	call(s, g, http.MethodDelete, "/api/v2/project/{id}", func(ctx context.Context, a oneProjectV1) (reply, error) {
		if err := s.control.DeleteProject(ctx, a.ID); err != nil {
			return reply{}, err
		}
		return nothing()
	})
	call(s, g, http.MethodDelete, "/api/v1/project/{id}", func(ctx context.Context, a oneProjectV1) (reply, error) {
		if err := s.control.DeleteProject(ctx, a.ID); err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
}

func (s *server) createProject(ctx context.Context, a newProject) (intent.Project, error) {
	p := intent.Project{Name: a.Name}
	if a.ID != nil {
		p.ID = *a.ID
	}
	p, err := s.control.CreateProject(ctx, p)
	return p, as500(err, fault.Conflict)
}

func (s *server) renameProject(ctx context.Context, a renameProject) (intent.Project, []intent.Environment, error) {
	if err := s.store.RenameProject(ctx, a.ID, a.Name); err != nil {
		return intent.Project{}, nil, as500(err, fault.Conflict)
	}
	return s.project(ctx, a.ID)
}

// allProjects lists projects with the environments inside each.
func (s *server) allProjects(ctx context.Context) ([]intent.Project, map[uuid.UUID][]intent.Environment, error) {
	projects, err := s.store.Projects(ctx)
	if err != nil {
		return nil, nil, err
	}
	environments, err := s.store.Environments(ctx)
	if err != nil {
		return nil, nil, err
	}
	inside := map[uuid.UUID][]intent.Environment{}
	for _, e := range environments {
		inside[e.ProjectID] = append(inside[e.ProjectID], e)
	}
	return projects, inside, nil
}

func (s *server) project(ctx context.Context, id uuid.UUID) (intent.Project, []intent.Environment, error) {
	p, err := s.store.Project(ctx, id)
	if err != nil {
		return p, nil, err
	}
	_, inside, err := s.allProjects(ctx)
	return p, inside[id], err
}

func projectV2(p intent.Project, inside []intent.Environment, details bool) map[string]any {
	environments := []any{}
	for _, e := range inside {
		environments = append(environments, environmentV2(e, details))
	}
	return map[string]any{"id": p.ID, "name": p.Name, "environments": environments}
}

func projectV1(p intent.Project, inside []intent.Environment) map[string]any {
	ids := []uuid.UUID{}
	for _, e := range inside {
		ids = append(ids, e.ID)
	}
	return map[string]any{"id": p.ID, "name": p.Name, "environments": ids}
}
