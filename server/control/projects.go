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
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/source"
)

// CreateProject creates a project; a zero id is replaced by a new one. It returns
// Conflict if the name is taken.
func (c *Control) CreateProject(ctx context.Context, p intent.Project) (intent.Project, error) {
	p.Name = strings.TrimSpace(p.Name)
	if p.Name == "" {
		return p, fault.New("control.CreateProject", fault.Invalid, "a project needs a name")
	}
	if p.ID == uuid.Nil {
		p.ID = uuid.New()
	}
	audit.OnProject(ctx, p)
	return p, c.cfg.Store.CreateProject(ctx, p)
}

// DeleteProject deletes a project with its environments. It returns Forbidden if one
// of them is protected.
func (c *Control) DeleteProject(ctx context.Context, id intent.ProjectID) error {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range envs {
		if e.ProjectID == id && e.Bool("protected_environment") {
			return protected(e)
		}
	}
	for _, e := range envs {
		if e.ProjectID == id {
			if err := c.DeleteEnvironment(ctx, e.ID); err != nil {
				return err
			}
		}
	}
	return c.cfg.Store.DeleteProject(ctx, id)
}

// ProjectQuota returns how much a project may use, and how much it uses.
func (c *Control) ProjectQuota(ctx context.Context, id intent.ProjectID) (intent.Quota, intent.Usage, error) {
	if _, err := c.cfg.Store.Project(ctx, id); err != nil {
		return nil, nil, err
	}
	quota, err := c.cfg.Store.Quota(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	use, err := c.cfg.Keepers.ProjectUse(ctx, id)
	return quota, use, err
}

// SetQuota replaces how much a project may use. What it has already stays, also when that is more.
func (c *Control) SetQuota(ctx context.Context, id intent.ProjectID, q intent.Quota) error {
	const op = "control.SetQuota"
	project, err := c.cfg.Store.Project(ctx, id)
	if err != nil {
		return err
	}
	for kind, most := range q {
		if !slices.Contains(intent.QuotaKinds, kind) {
			return fault.New(op, fault.Invalid, fmt.Sprintf("there is no quota of %.40q", string(kind)))
		}
		if most < 0 {
			return fault.New(op, fault.Invalid, fmt.Sprintf("the quota of %s cannot be %d", kind, most)).
				Hint("leave it out for no limit")
		}
	}
	before, err := c.cfg.Store.Quota(ctx, id)
	if err != nil {
		return err
	}
	audit.OnProject(ctx, project)
	audit.Subject(ctx, "quota of "+project.Name)
	audit.Change(ctx, before, q)
	if err := c.cfg.Store.SetQuota(ctx, id, q); err != nil {
		return err
	}
	return c.cfg.Keepers.QuotaChanged(ctx, id, q)
}

// SetProjectSecret seals and stores a secret of a project. Environments use it if they
// have none of that name. An empty value deletes it.
func (c *Control) SetProjectSecret(ctx context.Context, id intent.ProjectID, name, value string) error {
	audit.Subject(ctx, "secret "+name+" of the project")
	audit.Change(ctx, nil, setOrRemoved(value))
	if err := source.CheckProjectSecret(name, value); err != nil {
		return err
	}
	if _, err := c.cfg.Store.Project(ctx, id); err != nil {
		return err
	}
	if name == source.SecretWebhook {
		if err := c.keepProjectPrevious(ctx, id, value); err != nil {
			return err
		}
	}
	sealed, err := c.cfg.Sources.SealForProject(id, name, value)
	if err != nil {
		return err
	}
	if err := c.cfg.Store.SetProjectSecret(ctx, id, name, sealed); err != nil {
		return err
	}
	return c.projectChanged(ctx, id)
}

// keepProjectPrevious keeps the present webhook secret valid, as keepPrevious does for
// an environment.
func (c *Control) keepProjectPrevious(ctx context.Context, id intent.ProjectID, value string) error {
	if value == "" {
		return c.cfg.Store.SetProjectSecret(ctx, id, source.SecretWebhookPrevious, nil)
	}
	all, err := c.cfg.Sources.ProjectSecrets(ctx, id)
	now := all[source.SecretWebhook]
	if err != nil || now == "" || now == value {
		return nil // a secret that cannot be opened verifies nothing
	}
	sealed, err := c.cfg.Sources.SealForProject(id, source.SecretWebhookPrevious, now)
	if err != nil {
		return err
	}
	return c.cfg.Store.SetProjectSecret(ctx, id, source.SecretWebhookPrevious, sealed)
}

// ProjectSecretNames lists the names of a project's secrets. Their values are never returned.
func (c *Control) ProjectSecretNames(ctx context.Context, id intent.ProjectID) ([]string, error) {
	if _, err := c.cfg.Store.Project(ctx, id); err != nil {
		return nil, err
	}
	sealed, err := c.cfg.Store.ProjectSecrets(ctx, id)
	return slices.Sorted(maps.Keys(sealed)), err
}

// projectChanged makes the environments of a project read their sources again.
func (c *Control) projectChanged(ctx context.Context, id intent.ProjectID) error {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range envs {
		if e.ProjectID == id {
			if err := c.ask(ctx, e.ID, intent.RequestLook, nil); err != nil {
				return err
			}
			c.publish(e.ID, bus.Environment, "")
		}
	}
	return nil
}

// SetKnownHosts replaces the known SSH host keys of a project.
func (c *Control) SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error {
	lines = strings.ReplaceAll(lines, "\r\n", "\n")
	if err := intent.CheckKnownHosts(lines); err != nil {
		return fault.Wrap("control.SetKnownHosts", fault.Invalid, err).Hint("paste lines as ssh-keyscan prints them")
	}
	if lines != "" && !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	if err := c.cfg.Store.SetKnownHosts(ctx, id, lines); err != nil {
		return err
	}
	return c.projectChanged(ctx, id)
}

// LearnHostKey remembers the key of an SSH server for a project, for an environment
// that accepts new keys.
func (c *Control) LearnHostKey(ctx context.Context, id intent.ProjectID, line string) error {
	if err := intent.CheckKnownHosts(line); err != nil {
		return err
	}
	c.cfg.Logger.Info("accepted and remembered the key of an SSH server", "project", id, "line", line)
	return c.cfg.Store.AddKnownHost(ctx, id, line)
}

// SecretNames lists the names of an environment's secrets. Their values are never returned.
func (c *Control) SecretNames(ctx context.Context, id intent.EnvironmentID) ([]string, error) {
	sealed, err := c.cfg.Store.Secrets(ctx, id)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(sealed)), nil
}
