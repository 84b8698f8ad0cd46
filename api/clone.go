package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/control"
)

// cloneCalls declares the calls that make an environment from another one; one is the path of an environment.
func (s *server) cloneCalls(c *calls, one string) {
	v2(c, http.MethodPost, one+"/clone",
		"Make an environment with the source and the settings of this one, and with its secrets and roles if asked to.",
		access.CloneEnvironment, s.cloneEnvironment)
	const path = "/copy_settings"
	v2(c, http.MethodGet, one+path, "Show what copying the settings of another environment would change.",
		access.SeeEnvironment, s.compareSettings)
	v2(c, http.MethodPost, one+path, "Copy settings from another environment: those that are named, or all.",
		access.SetSetting, s.copySettings)
}

type cloneArguments struct {
	oneEnvironment
	Name        string     `arg:"name,required"`
	ProjectID   *uuid.UUID `arg:"project_id"`
	Repository  *string    `arg:"repository"`
	Branch      *string    `arg:"branch"`
	Subdir      *string    `arg:"subdir"`
	Description *string    `arg:"description" max:"65536"`
	// Settings replace those of the original; null is the default.
	Settings    map[string]any `arg:"settings"`
	Halted      bool           `arg:"halted"`
	Tags        []string       `arg:"tags"`
	Secrets     map[string]any `arg:"secrets"`
	CopySecrets bool           `arg:"copy_secrets"`
	CopyRoles   bool           `arg:"copy_roles"`
}

func (s *server) cloneEnvironment(ctx context.Context, a cloneArguments) (environment, error) {
	from, err := s.environment(ctx, a.ID)
	if err != nil {
		return environment{}, err
	}
	how := control.Clone{
		Name: a.Name, Description: a.Description, Tags: a.Tags, Halted: a.Halted, Settings: a.Settings,
		WithSecrets: a.CopySecrets,
	}
	if a.ProjectID != nil {
		if err := s.allowInProject(ctx, access.CreateEnvironment, *a.ProjectID); err != nil {
			return environment{}, err
		}
		how.Project = *a.ProjectID
	}
	src := from.Source
	for to, given := range map[*string]*string{
		&src.URL: a.Repository, &src.Branch: a.Branch, &src.Subdir: a.Subdir,
	} {
		if given != nil {
			*to = *given
		}
	}
	how.Source = &src
	if how.Secrets, err = (newEnvironment{Secrets: a.Secrets}).secrets(); err != nil {
		return environment{}, err
	}
	if a.CopyRoles {
		how.Roles = func(ctx context.Context, clone intent.Environment) ([]string, error) {
			given, err := s.people.CopyGrants(ctx, access.TargetOf(from), access.TargetOf(clone))
			return people.RolesOf(given), err
		}
	}
	e, err := s.control.CloneEnvironment(ctx, from.ID, how)
	return environmentOf(e, true), err
}

type copiedSettings struct {
	oneEnvironment
	From     uuid.UUID `arg:"from,required"`
	Settings []string  `arg:"settings"`
}

type comparedSettings struct {
	oneEnvironment
	From uuid.UUID `arg:"from,required"`
}

// settingCopy is a setting that differs between two environments.
type settingCopy struct {
	Name   string              `json:"name"`
	Title  string              `json:"title"`
	Group  intent.SettingGroup `json:"group"`
	Before any                 `json:"before"`
	After  any                 `json:"after"`
	// Problem says why it cannot be copied.
	Problem *string `json:"problem"`
}

func settingCopyOf(c control.SettingCopy) settingCopy {
	return settingCopy{
		Name: c.Setting.Name, Title: c.Setting.Title, Group: c.Setting.Group, Before: c.Before, After: c.After,
		Problem: orNull(c.Problem),
	}
}

func (s *server) compareSettings(ctx context.Context, a comparedSettings) ([]settingCopy, error) {
	all, err := s.control.CompareSettings(ctx, a.ID, a.From)
	return listed(all, settingCopyOf), err
}

func (s *server) copySettings(ctx context.Context, a copiedSettings) ([]settingCopy, error) {
	all, err := s.control.CopySettings(ctx, a.ID, a.From, a.Settings)
	return listed(all, settingCopyOf), err
}
