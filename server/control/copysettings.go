package control

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// SettingCopy is a setting that differs between two environments.
type SettingCopy struct {
	Setting intent.Setting
	Before  any // the value that the environment has
	After   any // the value that it would get
	// Default means that the other environment leaves the setting at its default.
	Default bool
	// Problem says why it cannot be copied; empty: it can.
	Problem string
}

// CompareSettings returns the settings in which an environment differs from another one, sorted by name. The sender
// must be allowed to see both.
func (c *Control) CompareSettings(ctx context.Context, to, from intent.EnvironmentID) ([]SettingCopy, error) {
	target, origin, err := c.copyEnds(ctx, to, from)
	if err != nil {
		return nil, err
	}
	var out []SettingCopy
	for _, def := range intent.Settings() {
		s := SettingCopy{Setting: def, Before: def.Value(target.Settings), After: def.Value(origin.Settings)}
		if reflect.DeepEqual(s.Before, s.After) {
			continue
		}
		_, set := origin.Settings[def.Name]
		s.Default = !set
		if err := c.mayCopy(ctx, target, def.Name, s.After); err != nil {
			if !isRefusal(err) {
				return nil, err
			}
			s.Problem = err.Error()
		}
		out = append(out, s)
	}
	return out, nil
}

// CopySettings sets settings of an environment to the values that they have in another one: those that are named, or
// all that differ and may be copied. Either all named are copied, or none.
func (c *Control) CopySettings(
	ctx context.Context, to, from intent.EnvironmentID, names []string,
) ([]SettingCopy, error) {
	const op = "control.CopySettings"
	all, err := c.CompareSettings(ctx, to, from)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, ok := intent.SettingNamed(name); !ok {
			return nil, fault.New(op, fault.Invalid, fmt.Sprintf("there is no setting %.80q", name)).
				Hint("`ordain settings list` lists all settings")
		}
	}
	var copied []SettingCopy
	values, before, after := map[string]any{}, map[string]any{}, map[string]any{}
	for _, s := range all {
		name := s.Setting.Name
		if named := slices.Contains(names, name); len(names) > 0 && !named || !named && s.Problem != "" {
			continue
		}
		if s.Problem != "" {
			return nil, fault.New(op, fault.Forbidden, "the setting "+name+" cannot be copied: "+s.Problem).
				Hint("leave it out; nothing was copied")
		}
		copied = append(copied, s)
		values[name], before[name], after[name] = s.After, s.Before, s.After
		if s.Default {
			values[name] = nil
		}
	}
	if len(copied) == 0 {
		return nil, nil
	}
	origin, err := c.cfg.Store.Environment(ctx, from)
	if err != nil {
		return nil, err
	}
	audit.Subject(ctx, "settings of "+origin.Name)
	audit.Change(ctx, before, after)
	if err := c.cfg.Store.Asking(to, intent.RequestLook, nil).SetSettings(ctx, to, values); err != nil {
		return nil, err
	}
	c.changed(ctx, to)
	return copied, nil
}

// copyEnds returns the two environments of a copy. One that the sender may not see does not exist for them.
func (c *Control) copyEnds(
	ctx context.Context, to, from intent.EnvironmentID,
) (target, origin intent.Environment, err error) {
	if target, err = c.cfg.Store.Environment(ctx, to); err != nil {
		return target, origin, err
	}
	origin, err = c.cfg.Store.Environment(ctx, from)
	p := access.Of(ctx)
	if fault.Is(err, fault.NotFound) || err == nil && p.Known() &&
		!p.Decide(access.SeeEnvironment, access.TargetOf(origin)).Allowed {
		err = fault.New("control.CopySettings", fault.NotFound, "there is no environment "+from.String())
	}
	return target, origin, err
}

// mayCopy checks what SetSetting checks.
func (c *Control) mayCopy(ctx context.Context, e intent.Environment, name string, value any) error {
	if by, ok := e.Protected[name]; ok {
		return fault.New("control.CopySettings", fault.Forbidden, by+" decides it in the environment's repository")
	}
	if err := mayTrust(ctx, e, name); err != nil {
		return err
	}
	if err := c.mayLendTo(ctx, e, name, value, nil); err != nil {
		return err
	}
	if name == "follow" {
		return c.mayFollow(ctx, e, value)
	}
	return nil
}

func isRefusal(err error) bool { return fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Invalid) }
