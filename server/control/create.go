package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/source"
)

// NewEnvironment describes an environment to create, with all that decides what is deployed in it: the source, the
// settings (which environment it follows, its gates, the signers that it trusts …), whether it is halted, and secrets.
type NewEnvironment struct {
	Environment intent.Environment // a zero ID is replaced by a new one
	// Secrets by name; the names are those of package source.
	Secrets map[string]string
}

// CreateEnvironment creates an environment and starts its keeper. Everything is checked first and then written in one
// step, so that the keeper never sees a part of it, and nothing is deployed that a setting given here forbids.
// Credentials in the source's URL are removed from it and sealed.
func (c *Control) CreateEnvironment(ctx context.Context, n NewEnvironment) (intent.Environment, error) {
	n, err := c.checkNew(ctx, n)
	e := n.Environment
	if err != nil {
		return e, err
	}
	sealed := make(map[string][]byte, len(n.Secrets))
	for name, value := range n.Secrets {
		if sealed[name], err = c.cfg.Sources.Seal(e.ID, name, value); err != nil {
			return e, err
		}
	}
	if e.Halted {
		by := c.actor(ctx)
		e.HaltedBy, e.HaltedAt = by.By, &by.At
	}
	if err := c.cfg.Store.CreateEnvironment(ctx, e, sealed); err != nil {
		return e, err
	}
	audit.Subject(ctx, "environment "+e.Name)
	audit.Change(ctx, nil, describedNew(n))
	c.publish(e.ID, bus.Environment, "")
	c.cfg.Keepers.Keep(e.ID)
	return e, nil
}

// CheckNewEnvironment reports whether CreateEnvironment would refuse an environment, as far as that can be told without
// writing anything.
func (c *Control) CheckNewEnvironment(ctx context.Context, n NewEnvironment) error {
	_, err := c.checkNew(ctx, n)
	return err
}

// checkNew checks a new environment, and returns it in the form in which it is stored.
func (c *Control) checkNew(ctx context.Context, n NewEnvironment) (NewEnvironment, error) {
	const op = "control.CreateEnvironment"
	e := &n.Environment
	e.Name = strings.TrimSpace(e.Name)
	if e.Name == "" {
		return n, fault.New(op, fault.Invalid, "an environment needs a name")
	}
	if len(e.Description) > 255 {
		return n, fault.New(op, fault.Invalid, "the description is longer than 255 characters")
	}
	if e.ID == uuid.Nil {
		e.ID = uuid.New()
	}
	e.Created = c.cfg.Now()
	n.Secrets = maps.Clone(n.Secrets)
	if n.Secrets == nil {
		n.Secrets = map[string]string{}
	}
	maps.DeleteFunc(n.Secrets, func(_, value string) bool { return value == "" })
	if err := splitSource(&e.Source, n.Secrets); err != nil {
		return n, err
	}
	for name, value := range n.Secrets {
		if err := source.CheckSecret(name, value); err != nil {
			return n, err
		}
	}
	if err := mayUse(ctx, e.Source.URL); err != nil {
		return n, err
	}
	if err := c.mayLend(ctx, *e, n.Secrets); err != nil {
		return n, err
	}
	if err := mayTag(ctx, *e); err != nil {
		return n, err
	}
	var err error
	if e.Tags, err = cleanTags(e.Tags); err != nil {
		return n, err
	}
	if e.Settings, err = convertSettings(e.Settings); err != nil {
		return n, err
	}
	for _, name := range []string{"forge_api", "git_proxy"} {
		if err := c.mayLendTo(ctx, *e, name, e.Settings[name], n.Secrets); err != nil {
			return n, err
		}
	}
	return n, c.mayFollow(ctx, *e, e.Settings["follow"])
}

// convertSettings checks settings, and converts each to its type. Those without a value are left out.
func convertSettings(given map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == nil {
			continue
		}
		value, err := keeper.ConvertSetting(name, given[name])
		if fault.Is(err, fault.NotFound) { // what is not found is a part of the request
			return nil, fault.Wrap("control.CreateEnvironment", fault.Invalid, err)
		}
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// mayTag lets only those tag a new environment who may tag all environments of its project: roles can be bound to tags.
func mayTag(ctx context.Context, e intent.Environment) error {
	p := access.Of(ctx)
	if len(e.Tags) == 0 || !p.Known() ||
		p.Decide(access.TagEnvironment, access.Target{Project: e.ProjectID}).Allowed {
		return nil
	}
	return fault.New("control.mayTag", fault.Forbidden,
		fmt.Sprintf("you may not create an environment with tags: that takes the verb %s in the project",
			access.TagEnvironment)).
		Hint("leave the tags out, or ask an administrator of the project")
}

// describedNew is what the audit trail keeps of a new environment.
func describedNew(n NewEnvironment) map[string]any {
	out := described(n.Environment)
	out["halted"], out["tags"], out["settings"] = n.Environment.Halted, n.Environment.Tags, n.Environment.Settings
	out["secrets"] = slices.Sorted(maps.Keys(n.Secrets))
	return out
}
