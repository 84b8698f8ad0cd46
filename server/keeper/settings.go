package keeper

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"ordain.dev/ordain/gitsync/signers"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ConvertSetting checks the value of a setting and converts it to the setting's type. It
// returns NotFound if there is no such setting.
func ConvertSetting(name string, value any) (any, error) {
	const op = "keeper.SetSetting"
	def, ok := intent.SettingNamed(name)
	if !ok {
		return nil, fault.New(op, fault.NotFound, "there is no setting "+name).
			Hint("`ordain settings list` lists all settings")
	}
	converted, err := def.Convert(value)
	if err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err).Hint(def.Hint())
	}
	if name == "git_allowed_signers" {
		if _, err := signers.Parse(converted.(string)); err != nil {
			return nil, fault.Wrap(op, fault.Invalid, err).Say("git_allowed_signers").Hint(def.Hint())
		}
	}
	return converted, nil
}

// protectSettings sets settings of project.yml that only it may change from now on, until it leaves them out again.
// Either all are set, or none. It reports whether anything changed.
func (k *keeper) protectSettings(
	ctx context.Context, e intent.Environment, settings map[string]any,
) (changed bool, err error) {
	values, err := ConvertProtected(settings, intent.ProtectedByProject)
	if err != nil || Protects(e, intent.ProtectedByProject, values) {
		return false, err
	}
	if err := k.cfg.Store.ProtectSettings(ctx, e.ID, values, intent.ProtectedByProject); err != nil {
		return false, err
	}
	k.EnvironmentChanged(ctx, e.ID)
	return true, nil
}

// ConvertProtected checks settings that by decides, and converts each to its type.
func ConvertProtected(settings map[string]any, by string) (map[string]any, error) {
	const op = "keeper.ProtectSettings"
	values := make(map[string]any, len(settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		converted, err := ConvertSetting(name, settings[name])
		if err != nil {
			return nil, err
		}
		if def, _ := intent.SettingNamed(name); def.People && by == intent.ProtectedByProject {
			return nil, fault.New(op, fault.Forbidden, "the setting "+name+" cannot be decided in the repository").
				Hint("it decides whom the server trusts: set it with ordain settings set, and remove it from " +
					"environment_settings")
		}
		values[name] = converted
	}
	return values, nil
}

// Protects reports whether by protects exactly these settings of an environment already.
func Protects(e intent.Environment, by string, values map[string]any) bool {
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
