package control

import (
	"context"
	"maps"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/source"
)

// Clone says how an environment differs from the one that it is a clone of. Parameters, versions and all else that the
// original did stay there.
type Clone struct {
	Name        string
	Project     intent.ProjectID // zero: that of the original
	Source      *intent.Source   // nil: that of the original
	Description *string          // nil: that of the original
	Tags        []string
	Halted      bool
	// Settings replace those of the original; nil as a value means the default.
	Settings map[string]any
	// WithSecrets copies the secrets of the original. The sender must have the right to set secrets in both projects,
	// since the owner of the new repository could then read them.
	WithSecrets bool
	// Secrets are set besides, and win.
	Secrets map[string]string
	// Roles copies the roles in the original that the sender may give in the clone, and returns what it copied, as
	// texts for the audit trail; nil: none are copied. It runs when the clone exists.
	Roles func(ctx context.Context, clone intent.Environment) ([]string, error)
}

// CloneEnvironment makes an environment with the settings and the source of another one. The sender must be allowed to
// create environments in the project of the clone. Settings that project.yml decides are left out: the clone's own
// project.yml decides them again.
func (c *Control) CloneEnvironment(
	ctx context.Context, id intent.EnvironmentID, how Clone,
) (intent.Environment, error) {
	n, err := c.cloneOf(ctx, id, how)
	if err != nil {
		return intent.Environment{}, err
	}
	e, err := c.CreateEnvironment(ctx, n)
	if err != nil || how.Roles == nil {
		return e, err
	}
	roles, err := how.Roles(audit.Aside(ctx), e)
	after := describedNew(n)
	after["roles"] = roles
	audit.Change(ctx, nil, after)
	return e, err
}

// CheckClone reports whether CloneEnvironment would refuse a clone, as far as that can be told without writing. It
// returns the clone as it would be made, with its secrets.
func (c *Control) CheckClone(ctx context.Context, id intent.EnvironmentID, how Clone) (NewEnvironment, error) {
	n, err := c.cloneOf(ctx, id, how)
	if err != nil {
		return n, err
	}
	return c.checkNew(ctx, n)
}

func (c *Control) cloneOf(ctx context.Context, id intent.EnvironmentID, how Clone) (NewEnvironment, error) {
	const op = "control.CloneEnvironment"
	from, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return NewEnvironment{}, err
	}
	e := intent.Environment{
		ProjectID: from.ProjectID, Name: how.Name, Source: from.Source, Description: from.Description, Icon: from.Icon,
		Tags: how.Tags, Halted: how.Halted, Settings: map[string]any{},
	}
	if how.Project != uuid.Nil {
		e.ProjectID = how.Project
	}
	if how.Source != nil {
		e.Source = *how.Source
	}
	if how.Description != nil {
		e.Description = *how.Description
	}
	p := access.Of(ctx)
	if p.Known() && !p.Decide(access.CreateEnvironment, access.Target{Project: e.ProjectID}).Allowed {
		return NewEnvironment{}, fault.New(op, fault.Forbidden, "you may not make environments in that project").
			Hint("ask an administrator for the role maintainer in it")
	}
	for name, value := range from.Settings {
		moved := e.ProjectID != from.ProjectID && name == "follow" // it names an environment of the other project
		if _, known := intent.SettingNamed(name); known && from.Protected[name] == "" && !moved {
			e.Settings[name] = value
		}
	}
	maps.Copy(e.Settings, how.Settings)
	n := NewEnvironment{Environment: e, Secrets: map[string]string{}}
	if how.WithSecrets {
		if n.Secrets, err = c.copySecrets(ctx, from, e); err != nil {
			return n, err
		}
	}
	maps.Copy(n.Secrets, how.Secrets)
	return n, nil
}

// copySecrets opens the secrets of an environment for its clone.
func (c *Control) copySecrets(
	ctx context.Context, from, to intent.Environment,
) (map[string]string, error) {
	if !c.maySetSecrets(ctx, from) || !c.maySetSecrets(ctx, to) {
		return nil, fault.New("control.CloneEnvironment", fault.Forbidden,
			"you may not copy the secrets of "+from.Name+": that takes the verb "+string(access.SetProjectSecret)+
				" in both projects").
			Hint("clone it without its secrets, or ask an administrator of the project")
	}
	sealed, err := c.cfg.Store.Secrets(ctx, from.ID)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(sealed))
	for name, text := range sealed {
		if name == source.SecretWebhookPrevious {
			continue
		}
		plain, err := c.cfg.Sources.Open(from.ID, name, text)
		if err != nil {
			return nil, fault.Wrap("control.CloneEnvironment", fault.Internal, err).
				Say("the secret " + name + " of " + from.Name + " cannot be opened").
				Hint("set it again there; the key file of the state directory was replaced")
		}
		out[name] = string(plain)
	}
	return out, nil
}
