package control

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/keeper"
)

// SetSetting checks and stores a setting. It returns NotFound if there is no such
// setting, and Forbidden if project.yml decides it.
func (c *Control) SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error {
	converted, err := keeper.ConvertSetting(name, value)
	if err != nil {
		return err
	}
	return c.storeSetting(ctx, id, name, converted)
}

// DeleteSetting resets a setting to its default.
func (c *Control) DeleteSetting(ctx context.Context, id intent.EnvironmentID, name string) error {
	if _, ok := intent.SettingNamed(name); !ok {
		return fault.New("control.DeleteSetting", fault.NotFound, "there is no setting "+name)
	}
	return c.storeSetting(ctx, id, name, nil)
}

// mayTrust lets only those change a setting that decides whom the server trusts who may also change the source. Tokens
// of agents and compilers may set all other settings.
func mayTrust(ctx context.Context, e intent.Environment, name string) error {
	p := access.Of(ctx)
	def, _ := intent.SettingNamed(name)
	if !def.People || !p.Known() || p.Decide(access.ModifyEnvironment, access.TargetOf(e)).Allowed {
		return nil
	}
	return fault.New("control.SetSetting", fault.Forbidden,
		"the setting "+name+" decides whom the server trusts; it takes the verb "+string(access.ModifyEnvironment)).
		Hint("let a maintainer of the environment set it")
}

func (c *Control) storeSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if by, ok := e.Protected[name]; ok {
		return fault.New("control.SetSetting", fault.Forbidden,
			"the setting "+name+" is decided by "+by+" in the environment's repository").
			Hint("change it there, under environment_settings, and push")
	}
	if err := mayTrust(ctx, e, name); err != nil {
		return err
	}
	if err := c.mayLendTo(ctx, e, name, value, nil); err != nil {
		return err
	}
	if name == "follow" {
		if err := c.mayFollow(ctx, e, value); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.Asking(id, intent.RequestLook, nil).SetSetting(ctx, id, name, value); err != nil {
		return err
	}
	audit.Subject(ctx, "setting "+name)
	audit.Change(ctx, e.Settings[name], value)
	c.changed(ctx, id)
	return nil
}

// ProtectSettings sets settings that only by may change from now on, until by leaves
// them out again. Either all are set, or none.
func (c *Control) ProtectSettings(
	ctx context.Context,
	id intent.EnvironmentID,
	settings map[string]any,
	by string,
) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	audit.Change(ctx, nil, settings)
	values, err := keeper.ConvertProtected(settings, by)
	if err != nil || keeper.Protects(e, by, values) {
		return err
	}
	if err := c.cfg.Store.Asking(id, intent.RequestLook, nil).ProtectSettings(ctx, id, values, by); err != nil {
		return err
	}
	c.changed(ctx, id)
	return nil
}
