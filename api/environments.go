package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
)

func (s *server) environmentCalls(c *calls) {
	const path, one, oneV1 = "/api/v2/environment", "/api/v2/environment/{id}", "/api/v1/environment/{id}"
	v2(c, http.MethodPut, path, "Create an environment, with all that decides what is deployed in it.",
		access.CreateEnvironment, s.createEnvironment)
	whole(c, http.MethodPut, "/api/v1/environment", "Create an environment.",
		access.CreateEnvironment, s.createEnvironmentV1)
	v2(c, http.MethodGet, path, "List the environments.", access.ListEnvironments, s.listEnvironments)
	whole(c, http.MethodGet, "/api/v1/environment", "List the environments.",
		access.ListEnvironments, s.listEnvironmentsV1)
	v2(c, http.MethodGet, one, "Show an environment.", access.SeeEnvironment, s.getEnvironment)
	whole(c, http.MethodGet, oneV1, "Show an environment. For clients of version 14.",
		access.SeeEnvironment, s.getEnvironmentV1)
	v2(c, http.MethodPost, one, "Change an environment.", access.ModifyEnvironment, s.modifyEnvironment)
	whole(c, http.MethodPost, oneV1, "Change an environment.", access.ModifyEnvironment, s.modifyEnvironmentV1)
	done[noBody](c, http.MethodDelete, one, "Delete an environment.", access.DeleteEnvironment, s.deleteEnvironment)
	s.cloneCalls(c, one)
	done[object](c, http.MethodDelete, oneV1, "Delete an environment.", access.DeleteEnvironment, s.deleteEnvironment)
	done[nullData](c, http.MethodPut, one+"/tags", "Set the tags of an environment, which roles can be bound to.",
		access.TagEnvironment, s.setTags)
	const clear = "Delete all that an environment has but its settings and secrets."
	done[noBody](c, http.MethodDelete, "/api/v2/decommission/{id}", clear, access.ClearEnvironment, s.clearEnvironment)
	done[object](c, http.MethodDelete, "/api/v1/decommission/{id}", clear, access.ClearEnvironment, s.clearEnvironment)
	const actions = "/api/v2/actions/environment/"
	done[noBody](c, http.MethodPost, actions+"halt", "Halt the environment: compile and deploy nothing.",
		access.Halt, s.halt)
	done[noBody](c, http.MethodPost, actions+"resume", "Resume an environment that was halted.",
		access.Resume, s.resume)
}

// environment is an environment as version 2 shows it.
type environment struct {
	ID                  uuid.UUID      `json:"id"`
	Name                string         `json:"name"`
	ProjectID           uuid.UUID      `json:"project_id"`
	RepoURL             string         `json:"repo_url"`
	RepoBranch          string         `json:"repo_branch"`
	Settings            map[string]any `json:"settings"`
	Halted              bool           `json:"halted"`
	HaltedBy            *string        `json:"halted_by"`
	HaltedAt            *timestamp     `json:"halted_at"`
	HaltedReason        *string        `json:"halted_reason"`
	IsMarkedForDeletion bool           `json:"is_marked_for_deletion"`
	// Description and Icon are empty unless details are asked for.
	Description string   `json:"description"`
	Icon        string   `json:"icon"`
	Tags        []string `json:"tags,omitempty"`
}

// environmentV1 is an environment as version 1 shows it.
type environmentV1 struct {
	ID                  uuid.UUID      `json:"id"`
	Name                string         `json:"name"`
	Project             uuid.UUID      `json:"project"`
	ProjectID           uuid.UUID      `json:"project_id"`
	RepoURL             string         `json:"repo_url"`
	RepoBranch          string         `json:"repo_branch"`
	Settings            map[string]any `json:"settings"`
	Halted              bool           `json:"halted"`
	IsMarkedForDeletion bool           `json:"is_marked_for_deletion"`
	Description         string         `json:"description"`
	Icon                string         `json:"icon"`
}

type environmentEnvelope struct {
	Environment environmentV1 `json:"environment"`
}

type environmentsEnvelope struct {
	Environments []environmentV1 `json:"environments"`
}

type newEnvironmentV1 struct {
	ProjectID  uuid.UUID  `arg:"project_id,required"`
	Name       string     `arg:"name,required"`
	Repository string     `arg:"repository"`
	Branch     string     `arg:"branch"`
	ID         *uuid.UUID `arg:"environment_id"`
}

type newEnvironment struct {
	newEnvironmentV1
	Description string `arg:"description" max:"65536"`
	Icon        string `arg:"icon" max:"131072"`
	// What follows decides what is deployed. Inmanta's clients set it later; given here, it holds from the beginning.
	Subdir   string         `arg:"subdir"`
	Settings map[string]any `arg:"settings"`
	Halted   bool           `arg:"halted"`
	Tags     []string       `arg:"tags"`
	Secrets  map[string]any `arg:"secrets"`
}

// maxSecret is the length in bytes of the longest secret, as in the call that sets one.
const maxSecret = 65536

// secrets returns the secrets of a new environment. An error names no value.
func (a newEnvironment) secrets() (map[string]string, error) {
	out := make(map[string]string, len(a.Secrets))
	for name, value := range a.Secrets {
		text, ok := value.(string)
		if !ok {
			return nil, invalid("the secret %s must be a text", name)
		}
		if len(text) > maxSecret {
			return nil, invalid("the secret %s is longer than %d bytes", name, maxSecret)
		}
		out[name] = text
	}
	return out, nil
}

type details struct {
	Details bool `arg:"details"`
}

type oneEnvironment struct {
	ID uuid.UUID `arg:"id,required"`
}

type oneEnvironmentDetails struct {
	oneEnvironment
	details
}

// oldEnvironment has what clients of version 14 send, which asks for what an environment last did.
type oldEnvironment struct {
	oneEnvironment
	Versions *int `arg:"versions"`
	Limit    *int `arg:"resources"`
}

type changedEnvironmentV1 struct {
	oneEnvironment
	Name       string  `arg:"name,required"`
	Repository *string `arg:"repository"`
	Branch     *string `arg:"branch"`
}

type changedEnvironment struct {
	changedEnvironmentV1
	ProjectID   *uuid.UUID `arg:"project_id"`
	Description *string    `arg:"description" max:"65536"`
	Icon        *string    `arg:"icon" max:"131072"`
}

func (s *server) createEnvironment(ctx context.Context, a newEnvironment) (environment, error) {
	e, err := s.newEnvironment(ctx, a)
	return environmentOf(e, true), err
}

func (s *server) createEnvironmentV1(ctx context.Context, a newEnvironmentV1) (environmentEnvelope, error) {
	e, err := s.newEnvironment(ctx, newEnvironment{newEnvironmentV1: a})
	return environmentEnvelope{environmentV1Of(e)}, err
}

func (s *server) listEnvironments(ctx context.Context, a details) ([]environment, error) {
	all, err := s.store.Environments(ctx)
	return listed(access.Visible(ctx, all), func(e intent.Environment) environment {
		return environmentOf(e, a.Details)
	}), err
}

func (s *server) listEnvironmentsV1(ctx context.Context, _ struct{}) (environmentsEnvelope, error) {
	all, err := s.store.Environments(ctx)
	return environmentsEnvelope{listed(access.Visible(ctx, all), environmentV1Of)}, err
}

func (s *server) getEnvironment(ctx context.Context, a oneEnvironmentDetails) (environment, error) {
	e, err := s.environment(ctx, a.ID)
	return environmentOf(e, a.Details), err
}

func (s *server) getEnvironmentV1(ctx context.Context, a oldEnvironment) (environmentEnvelope, error) {
	e, err := s.environment(ctx, a.ID)
	return environmentEnvelope{environmentV1Of(e)}, err
}

func (s *server) modifyEnvironment(ctx context.Context, a changedEnvironment) (environment, error) {
	e, err := s.changeEnvironment(ctx, a)
	return environmentOf(e, true), err
}

func (s *server) modifyEnvironmentV1(ctx context.Context, a changedEnvironmentV1) (environmentEnvelope, error) {
	e, err := s.changeEnvironment(ctx, changedEnvironment{changedEnvironmentV1: a})
	return environmentEnvelope{environmentV1Of(e)}, err
}

type environmentTags struct {
	oneEnvironment
	Tags []string `arg:"tags,required"`
}

func (s *server) setTags(ctx context.Context, a environmentTags) error {
	return s.control.SetTags(ctx, a.ID, a.Tags)
}

func (s *server) deleteEnvironment(ctx context.Context, a oneEnvironment) error {
	return s.control.DeleteEnvironment(ctx, a.ID)
}

func (s *server) clearEnvironment(ctx context.Context, a oneEnvironment) error {
	return s.control.ClearEnvironment(ctx, a.ID)
}

// byActor are the arguments of calls in an environment that record who asked for them.
type byActor struct {
	inEnvironment
	actor
}

func (s *server) halt(ctx context.Context, a byActor) error { return s.control.Halt(a.as(ctx), a.Env) }

func (s *server) resume(ctx context.Context, a byActor) error {
	return s.control.Resume(a.as(ctx), a.Env)
}

// environment returns an environment, or an error in the words that clients know.
func (s *server) environment(ctx context.Context, id uuid.UUID) (intent.Environment, error) {
	e, err := s.store.Environment(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return e, noEnvironment()
	}
	return e, err
}

func (s *server) newEnvironment(ctx context.Context, a newEnvironment) (intent.Environment, error) {
	if (a.Repository == "") != (a.Branch == "") {
		return intent.Environment{}, invalid("Repository and branch should be set together.")
	}
	if err := checkIcon(a.Icon); err != nil {
		return intent.Environment{}, err
	}
	e := intent.Environment{
		ProjectID: a.ProjectID, Name: a.Name, Description: a.Description, Icon: a.Icon,
		Source: intent.Source{URL: a.Repository, Branch: a.Branch, Subdir: a.Subdir},
		Halted: a.Halted, Tags: a.Tags, Settings: a.Settings,
	}
	secrets, err := a.secrets()
	if err != nil {
		return e, err
	}
	if a.ID != nil {
		e.ID = *a.ID
	}
	e, err = s.control.CreateEnvironment(ctx, control.NewEnvironment{Environment: e, Secrets: secrets})
	return e, as400(err, fault.Conflict)
}

func (s *server) changeEnvironment(ctx context.Context, a changedEnvironment) (intent.Environment, error) {
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
		if err := s.allowInProject(ctx, access.CreateEnvironment, *a.ProjectID); err != nil {
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
	return e, as400(err, fault.Conflict)
}

// checkIcon requires a picture of up to 64 kB, as mime;base64,content.
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

func environmentOf(e intent.Environment, details bool) environment {
	out := environment{
		ID: e.ID, Name: e.Name, ProjectID: e.ProjectID, RepoURL: e.Source.URL, RepoBranch: e.Source.Branch,
		Settings: settingsOf(e), Halted: e.Halted, HaltedBy: orNull(e.HaltedBy), HaltedAt: maybe(e.HaltedAt),
		HaltedReason: orNull(e.HaltedReason),
	}
	if details {
		out.Description, out.Icon = e.Description, e.Icon
		out.Tags = e.Tags
	}
	return out
}

func environmentV1Of(e intent.Environment) environmentV1 {
	return environmentV1{
		ID: e.ID, Name: e.Name, Project: e.ProjectID, ProjectID: e.ProjectID, RepoURL: e.Source.URL,
		RepoBranch: e.Source.Branch, Settings: settingsOf(e), Halted: e.Halted,
		Description: e.Description, Icon: e.Icon,
	}
}

// settingsOf returns the values of all settings that hold in an environment, also of those that nobody set.
func settingsOf(e intent.Environment) map[string]any {
	values := map[string]any{}
	for _, def := range intent.Settings() {
		values[def.Name] = def.Value(e.Settings)
	}
	return values
}
