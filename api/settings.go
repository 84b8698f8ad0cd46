package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

func (s *server) settingCalls(c *calls) {
	const many, one = "/environment_settings", "/environment_settings/{id}"
	v2(c, http.MethodGet, "/api/v2"+many, "List the settings with their values and definitions.",
		access.SeeEnvironment, s.listSettings)
	whole(c, http.MethodGet, "/api/v1"+many, "List the settings with their values and definitions.",
		access.SeeEnvironment, s.listSettingsV1)
	v2(c, http.MethodGet, "/api/v2"+one, "Show the value of a setting.", access.SeeEnvironment, s.getSetting)
	whole(c, http.MethodGet, "/api/v1"+one, "Show the value of a setting.", access.SeeEnvironment, s.getSettingV1)
	done[nullData](c, http.MethodPost, "/api/v2/protected_environment_settings",
		"Set the settings that project.yml decides; nobody else can change them from then on.",
		access.ProtectSettings, s.protectSettings)
	done[nullData](c, http.MethodPost, "/api/v2"+one, "Set a setting.", access.SetSetting, s.setSetting)
	done[object](c, http.MethodPost, "/api/v1"+one, "Set a setting.", access.SetSetting, s.setSetting)
	done[nullData](c, http.MethodDelete, "/api/v2"+one, "Set a setting back to its default.",
		access.SetSetting, s.deleteSetting)
	done[object](c, http.MethodDelete, "/api/v1"+one, "Set a setting back to its default.",
		access.SetSetting, s.deleteSetting)
}

// settings are the values in force, and the definitions of all settings.
type settings struct {
	Settings   map[string]any               `json:"settings"`
	Definition map[string]settingDefinition `json:"definition"`
}

type settingsV1 struct {
	Settings map[string]any               `json:"settings"`
	Metadata map[string]settingDefinition `json:"metadata"`
}

type settingV1 struct {
	Value    any                          `json:"value"`
	Metadata map[string]settingDefinition `json:"metadata"`
}

// settingDefinition describes a setting. None makes the server compile or restart anything by itself.
type settingDefinition struct {
	Name          string             `json:"name"`
	Type          intent.SettingType `json:"type"`
	Default       any                `json:"default"`
	Doc           string             `json:"doc"`
	Recompile     bool               `json:"recompile"`
	UpdateModel   bool               `json:"update_model"`
	AgentRestart  bool               `json:"agent_restart"`
	AllowedValues *[]string          `json:"allowed_values"`
	Section       string             `json:"section"`
	Protected     bool               `json:"protected"`
	ProtectedBy   *string            `json:"protected_by"`
	// Of Ordain: how forms show the setting. Unit is what a number counts; null: things.
	Group      intent.SettingGroup `json:"group"`
	GroupTitle string              `json:"group_title"`
	Title      string              `json:"title"`
	Unit       *string             `json:"unit"`
}

type oneSetting struct {
	inEnvironment
	ID string `arg:"id,required"`
}

type newSetting struct {
	oneSetting
	Value any `arg:"value,required"`
}

type protectedSettings struct {
	inEnvironment
	Settings map[string]any `arg:"settings,required"`
	By       string         `arg:"protected_by,required"`
}

func (s *server) listSettings(ctx context.Context, a inEnvironment) (settings, error) {
	e, err := s.environment(ctx, a.Env)
	return settings{settingsOf(e), settingDefinitions(e)}, err
}

func (s *server) listSettingsV1(ctx context.Context, a inEnvironment) (settingsV1, error) {
	all, err := s.listSettings(ctx, a)
	return settingsV1{all.Settings, all.Definition}, err
}

func (s *server) getSetting(ctx context.Context, a oneSetting) (settings, error) {
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return settings{}, err
	}
	def, ok := intent.SettingNamed(a.ID)
	if !ok {
		return settings{}, fault.New("api", fault.NotFound, "there is no setting "+a.ID)
	}
	return settings{map[string]any{a.ID: def.Value(e.Settings)}, settingDefinitions(e)}, nil
}

func (s *server) getSettingV1(ctx context.Context, a oneSetting) (settingV1, error) {
	one, err := s.getSetting(ctx, a)
	return settingV1{Value: one.Settings[a.ID], Metadata: one.Definition}, err
}

func (s *server) protectSettings(ctx context.Context, a protectedSettings) error {
	if a.By == "project_yml" { // inmanta's exporter sends the name of the choice
		a.By = intent.ProtectedByProject
	}
	if a.By != intent.ProtectedByProject {
		return invalid("protected_by must be " + intent.ProtectedByProject)
	}
	return as500(s.control.ProtectSettings(ctx, a.Env, a.Settings, a.By), fault.Invalid)
}

func (s *server) setSetting(ctx context.Context, a newSetting) error {
	if a.Value == nil {
		return invalid("a setting needs a value; delete it to go back to its default")
	}
	return as500(s.control.SetSetting(ctx, a.Env, a.ID, a.Value), fault.Invalid)
}

func (s *server) deleteSetting(ctx context.Context, a oneSetting) error {
	return s.control.DeleteSetting(ctx, a.Env, a.ID)
}

func settingDefinitions(e intent.Environment) map[string]settingDefinition {
	out := map[string]settingDefinition{}
	for _, def := range intent.Settings() {
		d := settingDefinition{
			Name: def.Name, Type: def.Type, Default: def.Default, Doc: def.Doc, Section: "global settings",
			Group: def.Group, GroupTitle: def.Group.Title(), Title: def.Title, Unit: orNull(string(def.Unit)),
		}
		if len(def.Choices) > 0 {
			d.AllowedValues = &def.Choices
		}
		if by, protected := e.Protected[def.Name]; protected {
			d.Protected, d.ProtectedBy = true, &by
		}
		out[def.Name] = d
	}
	return out
}
