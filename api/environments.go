package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

type newEnvironmentV1 struct {
	ProjectID  uuid.UUID  `arg:"project_id,required"`
	Name       string     `arg:"name,required"`
	Repository string     `arg:"repository"`
	Branch     string     `arg:"branch"`
	ID         *uuid.UUID `arg:"environment_id"`
}

type newEnvironment struct {
	newEnvironmentV1
	Description string `arg:"description"`
	Icon        string `arg:"icon"`
}

type oneEnvironment struct {
	ID      uuid.UUID `arg:"id,required"`
	Details bool      `arg:"details"`
}

type justEnvironment struct {
	ID uuid.UUID `arg:"id,required"`
}

type modifyEnvironmentV1 struct {
	ID         uuid.UUID `arg:"id,required"`
	Name       string    `arg:"name,required"`
	Repository *string   `arg:"repository"`
	Branch     *string   `arg:"branch"`
}

type modifyEnvironment struct {
	modifyEnvironmentV1
	ProjectID   *uuid.UUID `arg:"project_id"`
	Description *string    `arg:"description"`
	Icon        *string    `arg:"icon"`
}

func (s *server) environments(g *gin.Engine) {
	call(s, g, http.MethodPut, "/api/v2/environment", func(ctx context.Context, a newEnvironment) (reply, error) {
		e, err := s.createEnvironment(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v2(environmentV2(e, true))
	})
	call(s, g, http.MethodPut, "/api/v1/environment", func(ctx context.Context, a newEnvironmentV1) (reply, error) {
		e, err := s.createEnvironment(ctx, newEnvironment{newEnvironmentV1: a})
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"environment": environmentV1(e)})
	})
	call(s, g, http.MethodGet, "/api/v2/environment", func(ctx context.Context, a details) (reply, error) {
		all, err := s.store.Environments(ctx)
		if err != nil {
			return reply{}, err
		}
		return v2(listed(all, func(e intent.Environment) any { return environmentV2(e, a.Details) }))
	})
	call(s, g, http.MethodGet, "/api/v1/environment", func(ctx context.Context, _ struct{}) (reply, error) {
		all, err := s.store.Environments(ctx)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"environments": listed(all, environmentV1)})
	})
	call(s, g, http.MethodGet, "/api/v2/environment/{id}", func(ctx context.Context, a oneEnvironment) (reply, error) {
		e, err := s.environment(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(environmentV2(e, a.Details))
	})
	// Clients of version 14 read one environment here, with what it last did.
	call(s, g, http.MethodGet, "/api/v1/environment/{id}", func(ctx context.Context, a struct {
		ID       uuid.UUID `arg:"id,required"`
		Versions *int      `arg:"versions"`
		Limit    *int      `arg:"resources"`
	}) (reply, error) {
		e, err := s.environment(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"environment": environmentV1(e)})
	})
	call(
		s,
		g,
		http.MethodPost,
		"/api/v2/environment/{id}",
		func(ctx context.Context, a modifyEnvironment) (reply, error) {
			e, err := s.modifyEnvironment(ctx, a)
			if err != nil {
				return reply{}, err
			}
			return v2(environmentV2(e, true))
		},
	)
	call(
		s,
		g,
		http.MethodPost,
		"/api/v1/environment/{id}",
		func(ctx context.Context, a modifyEnvironmentV1) (reply, error) {
			e, err := s.modifyEnvironment(ctx, modifyEnvironment{modifyEnvironmentV1: a})
			if err != nil {
				return reply{}, err
			}
			return v1(map[string]any{"environment": environmentV1(e)})
		},
	)
	s.environmentVerb(g, http.MethodDelete, "environment", s.control.DeleteEnvironment)
	s.environmentVerb(g, http.MethodDelete, "decommission", s.control.ClearEnvironment)
	for path, do := range map[string]func(context.Context, uuid.UUID) error{
		"/api/v2/actions/environment/halt": s.control.Halt, "/api/v2/actions/environment/resume": s.control.Resume,
	} {
		call(s, g, http.MethodPost, path, func(ctx context.Context, a struct {
			inEnvironment
			actor
		}) (reply, error) {
			if err := do(a.as(ctx), a.Env); err != nil {
				return reply{}, err
			}
			return nothing()
		})
	}
}

// environmentVerb declares a call that does something to one environment and
// answers nothing, in both versions.
func (s *server) environmentVerb(g *gin.Engine, method, what string, do func(context.Context, uuid.UUID) error) {
	for version, done := range map[string]func() (reply, error){
		"v1": func() (reply, error) { return v1(nil) },
		"v2": nothing,
	} {
		call(
			s,
			g,
			method,
			"/api/"+version+"/"+what+"/{id}",
			func(ctx context.Context, a justEnvironment) (reply, error) {
				if err := s.mustExist(ctx, a.ID); err != nil {
					return reply{}, err
				}
				if err := do(ctx, a.ID); err != nil {
					return reply{}, err
				}
				return done()
			},
		)
	}
}

func (s *server) environment(ctx context.Context, id uuid.UUID) (intent.Environment, error) {
	e, err := s.store.Environment(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return e, noEnvironment()
	}
	return e, err
}

func (s *server) createEnvironment(ctx context.Context, a newEnvironment) (intent.Environment, error) {
	if _, err := s.store.Project(ctx, a.ProjectID); err != nil {
		if fault.Is(err, fault.NotFound) {
			return intent.Environment{}, fault.New("api", fault.NotFound, "The project id provided does not exist.")
		}
		return intent.Environment{}, err
	}
	if (a.Repository == "") != (a.Branch == "") {
		return intent.Environment{}, invalid("Repository and branch should be set together.")
	}
	if err := checkIcon(a.Icon); err != nil {
		return intent.Environment{}, err
	}
	e := intent.Environment{
		ProjectID: a.ProjectID, Name: a.Name, Description: a.Description, Icon: a.Icon,
		Source: intent.Source{URL: a.Repository, Branch: a.Branch},
	}
	if a.ID != nil {
		e.ID = *a.ID
	}
	e, err := s.control.CreateEnvironment(ctx, control.NewEnvironment{Environment: e})
	return e, as500(err, fault.Conflict)
}

func (s *server) modifyEnvironment(ctx context.Context, a modifyEnvironment) (intent.Environment, error) {
	e, err := s.environment(ctx, a.ID)
	if err != nil {
		return e, err
	}
	e.Name = a.Name
	if a.Repository != nil {
		e.Source.URL = *a.Repository
	}
	if a.Branch != nil {
		e.Source.Branch = *a.Branch
	}
	if a.ProjectID != nil {
		if _, err := s.store.Project(ctx, *a.ProjectID); err != nil {
			return e, err
		}
		e.ProjectID = *a.ProjectID
	}
	if a.Description != nil {
		if len(*a.Description) > 255 {
			return e, invalid("the description is longer than 255 characters")
		}
		e.Description = *a.Description
	}
	if a.Icon != nil {
		if err := checkIcon(*a.Icon); err != nil {
			return e, err
		}
		e.Icon = *a.Icon
	}
	e, err = s.control.UpdateEnvironment(ctx, e)
	return e, as500(err, fault.Conflict)
}

// checkIcon wants mime;base64,… of a picture, up to 64 kB.
func checkIcon(icon string) error {
	if icon == "" {
		return nil
	}
	mime, content, ok := strings.Cut(icon, ";base64,")
	if !ok || !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/svg+xml"}, mime) {
		return invalid("the icon must be a picture in the form mime;base64,content")
	}
	if len(icon) > 64<<10 {
		return invalid("the icon is larger than 64 kB")
	}
	if _, err := base64.StdEncoding.DecodeString(content); err != nil {
		return invalid("the icon is not base64: %v", err)
	}
	return nil
}

func environmentV2(e intent.Environment, details bool) map[string]any {
	out := map[string]any{
		"id": e.ID, "name": e.Name, "project_id": e.ProjectID,
		"repo_url": e.Source.URL, "repo_branch": e.Source.Branch,
		"settings": settingsOf(
			e,
		), "halted": e.Halted, "halted_by": textOrNull(e.HaltedBy), "halted_at": maybe(e.HaltedAt), "is_marked_for_deletion": false,
	}
	if details {
		out["description"], out["icon"] = e.Description, e.Icon
	}
	return out
}

func environmentV1(e intent.Environment) map[string]any {
	return map[string]any{
		"id": e.ID, "name": e.Name, "project": e.ProjectID, "project_id": e.ProjectID,
		"repo_url": e.Source.URL, "repo_branch": e.Source.Branch,
		"settings": settingsOf(e), "halted": e.Halted,
	}
}

func settingsOf(e intent.Environment) map[string]any {
	if e.Settings == nil {
		return map[string]any{}
	}
	return e.Settings
}
