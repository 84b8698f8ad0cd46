package control

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// SetSetting checks and stores a setting; NotFound when there is no such one,
// Forbidden when project.yml decides it.
func (c *Control) SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error {
	converted, err := c.convertSetting(name, value)
	if err != nil {
		return err
	}
	return c.storeSetting(ctx, id, name, converted)
}

func (c *Control) convertSetting(name string, value any) (any, error) {
	def, ok := intent.SettingNamed(name)
	if !ok {
		return nil, fault.New("control.SetSetting", fault.NotFound, "there is no setting "+name).
			Hint("`ordain settings list` names them all")
	}
	converted, err := def.Convert(value)
	if err != nil {
		return nil, fault.Wrap("control.SetSetting", fault.Invalid, err)
	}
	if name == "git_allowed_signers" {
		if err := c.cfg.Git.CheckSigners(converted.(string)); err != nil {
			return nil, fault.Wrap("control.SetSetting", fault.Invalid, err).Say("git_allowed_signers")
		}
	}
	return converted, nil
}

// DeleteSetting goes back to the default.
func (c *Control) DeleteSetting(ctx context.Context, id intent.EnvironmentID, name string) error {
	if _, ok := intent.SettingNamed(name); !ok {
		return fault.New("control.DeleteSetting", fault.NotFound, "there is no setting "+name)
	}
	return c.storeSetting(ctx, id, name, nil)
}

func (c *Control) storeSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if by, ok := e.Protected[name]; ok {
		return fault.New("control.SetSetting", fault.Forbidden, "the setting "+name+" is decided by "+by+" in the environment's repository").
			Hint("change it there, under environment_settings, and push")
	}
	if name == "follow" {
		if err := c.mayFollow(ctx, e, value); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.SetSetting(ctx, id, name, value); err != nil {
		return err
	}
	c.environmentChanged(ctx, id)
	return nil
}

// ProtectSettings sets settings that by decides from now on; nobody else can
// change them before by leaves them out again. All are set, or none.
func (c *Control) ProtectSettings(
	ctx context.Context,
	id intent.EnvironmentID,
	settings map[string]any,
	by string,
) error {
	values := make(map[string]any, len(settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		converted, err := c.convertSetting(name, settings[name])
		if err != nil {
			return err
		}
		if def, _ := intent.SettingNamed(name); def.People && by == intent.ProtectedByProject {
			return fault.New("control.ProtectSettings", fault.Forbidden, "the setting "+name+" cannot be decided in the repository").
				Hint("it says whom the server trusts: set it with ordain settings set, and remove it from environment_settings")
		}
		values[name] = converted
	}
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if decided(e, by, values) {
		return nil
	}
	if err := c.cfg.Store.ProtectSettings(ctx, id, values, by); err != nil {
		return err
	}
	c.environmentChanged(ctx, id)
	return nil
}

// decided tells whether an environment is as by wants it already.
func decided(e intent.Environment, by string, values map[string]any) bool {
	for name, owner := range e.Protected {
		if _, wanted := values[name]; owner == by && !wanted {
			return false
		}
	}
	for name, value := range values {
		def, _ := intent.SettingNamed(name)
		if _, set := e.Settings[name]; !set || e.Protected[name] != by ||
			!reflect.DeepEqual(def.Value(e.Settings), value) {
			return false
		}
	}
	return true
}

// projectSettings applies the environment_settings of project.yml, before the
// version is stored: they decide whether it is released.
func (r *run) projectSettings(ctx context.Context, settings map[string]any) error {
	err := r.patiently(ctx, "set the settings of project.yml", func() error {
		return r.control.ProtectSettings(ctx, r.env, settings, intent.ProtectedByProject)
	})
	if err != nil {
		return fault.Wrap("control.projectSettings", fault.KindOf(err), err).
			Say("environment_settings of project.yml cannot be set")
	}
	return r.patiently(ctx, "read the settings", func() error {
		e, err := r.control.cfg.Store.Environment(ctx, r.env)
		if err == nil {
			r.e = e
		}
		return err
	})
}
