package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type oneSetting struct {
	inEnvironment
	ID string `arg:"id,required"`
}

type setSetting struct {
	inEnvironment
	ID    string `arg:"id,required"`
	Value any    `arg:"value,required"`
}

type protectSettings struct {
	inEnvironment
	Settings map[string]any `arg:"settings,required"`
	By       string         `arg:"protected_by,required"`
}

func (s *server) settings(g *gin.Engine) {
	const many, one = "/environment_settings", "/environment_settings/{id}"
	call(s, g, http.MethodGet, "/api/v2"+many, func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
		values, definitions, err := s.settingValues(ctx, a.inEnvironment, "")
		if err != nil {
			return reply{}, err
		}
		return v2(map[string]any{"settings": values, "definition": definitions})
	})
	call(s, g, http.MethodGet, "/api/v1"+many, func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
		values, definitions, err := s.settingValues(ctx, a.inEnvironment, "")
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"settings": values, "metadata": definitions})
	})
	call(s, g, http.MethodGet, "/api/v2"+one, func(ctx context.Context, a oneSetting) (reply, error) {
		values, definitions, err := s.settingValues(ctx, a.inEnvironment, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(map[string]any{"settings": values, "definition": definitions})
	})
	call(s, g, http.MethodGet, "/api/v1"+one, func(ctx context.Context, a oneSetting) (reply, error) {
		values, definitions, err := s.settingValues(ctx, a.inEnvironment, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"value": values[a.ID], "metadata": definitions})
	})
	call(
		s,
		g,
		http.MethodPost,
		"/api/v2/protected_environment_settings",
		func(ctx context.Context, a protectSettings) (reply, error) {
			if a.By != intent.ProtectedByProject {
				return reply{}, invalid("protected_by is " + intent.ProtectedByProject)
			}
			if err := as500(s.control.ProtectSettings(ctx, a.Env, a.Settings, a.By), fault.Invalid); err != nil {
				return reply{}, err
			}
			return v2(nil)
		},
	)
	set := func(ctx context.Context, a setSetting) error {
		if a.Value == nil {
			return invalid("a setting needs a value; delete it to go back to its default")
		}
		return as500(s.control.SetSetting(ctx, a.Env, a.ID, a.Value), fault.Invalid)
	}
	call(s, g, http.MethodPost, "/api/v2"+one, func(ctx context.Context, a setSetting) (reply, error) {
		if err := set(ctx, a); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
	call(s, g, http.MethodPost, "/api/v1"+one, func(ctx context.Context, a setSetting) (reply, error) {
		if err := set(ctx, a); err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
	call(s, g, http.MethodDelete, "/api/v2"+one, func(ctx context.Context, a oneSetting) (reply, error) {
		if err := s.control.DeleteSetting(ctx, a.Env, a.ID); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
	call(s, g, http.MethodDelete, "/api/v1"+one, func(ctx context.Context, a oneSetting) (reply, error) {
		if err := s.control.DeleteSetting(ctx, a.Env, a.ID); err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
}

// settingValues gives the values in force, of one setting or of all, and the
// definitions of all.
func (s *server) settingValues(
	ctx context.Context,
	in inEnvironment,
	name string,
) (values, definitions map[string]any, err error) {
	e, err := s.environment(ctx, in.Env)
	if err != nil {
		return nil, nil, err
	}
	definitions = settingDefinitions(e)
	if name != "" {
		def, ok := intent.SettingNamed(name)
		if !ok {
			return nil, nil, fault.New("api", fault.NotFound, "there is no setting "+name)
		}
		return map[string]any{name: def.Value(e.Settings)}, definitions, nil
	}
	values = map[string]any{}
	for _, def := range intent.Settings() {
		values[def.Name] = def.Value(e.Settings)
	}
	return values, definitions, nil
}

// settingDefinitions describes every setting. None makes the server compile
// or restart anything by itself.
func settingDefinitions(e intent.Environment) map[string]any {
	out := map[string]any{}
	for _, def := range intent.Settings() {
		var by any
		owner, protected := e.Protected[def.Name]
		if protected {
			by = owner
		}
		var allowed any
		if len(def.Choices) > 0 {
			allowed = def.Choices
		}
		out[def.Name] = map[string]any{
			"name": def.Name, "type": def.Type, "default": def.Default, "doc": def.Doc,
			"recompile": false, "update_model": false, "agent_restart": false,
			"allowed_values": allowed, "section": "global settings", "protected": protected, "protected_by": by,
		}
	}
	return out
}
