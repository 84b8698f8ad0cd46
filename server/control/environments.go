package control

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// CreateProject makes a project; a zero id gets a fresh one. Conflict when the name is taken.
func (c *Control) CreateProject(ctx context.Context, p intent.Project) (intent.Project, error) {
	p.Name = strings.TrimSpace(p.Name)
	if p.Name == "" {
		return p, fault.New("control.CreateProject", fault.Invalid, "a project needs a name")
	}
	if p.ID == uuid.Nil {
		p.ID = uuid.New()
	}
	return p, c.cfg.Store.CreateProject(ctx, p)
}

// Projects lists all projects by name.
func (c *Control) Projects(ctx context.Context) ([]intent.Project, error) {
	return c.cfg.Store.Projects(ctx)
}

// Project finds one.
func (c *Control) Project(ctx context.Context, id intent.ProjectID) (intent.Project, error) {
	return c.cfg.Store.Project(ctx, id)
}

// RenameProject gives it another name.
func (c *Control) RenameProject(ctx context.Context, id intent.ProjectID, name string) error {
	return c.cfg.Store.RenameProject(ctx, id, name)
}

// DeleteProject deletes it with its environments; Forbidden when one of them is protected.
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

// NewEnvironment is what a client gives to make an environment.
type NewEnvironment struct {
	Environment intent.Environment // a zero ID gets a fresh one
	// Secrets by name: SecretWebhook, SecretGitUser, SecretGitPassword.
	Secrets map[string]string
}

// Names of an environment's secrets.
const (
	SecretWebhook = "webhook"
	// SecretWebhookPrevious is the webhook's secret before the last change; it is valid, too.
	SecretWebhookPrevious = "webhook-previous"
	SecretGitUser         = "git-username"
	SecretGitPassword     = "git-password"
	// SecretSSHKey is a private key, SecretSSHPassphrase what it was sealed with.
	SecretSSHKey        = "git-ssh-key"
	SecretSSHPassphrase = "git-ssh-passphrase"
	// SecretGitProxy is the URL of a proxy with a password; it comes before the setting.
	SecretGitProxy = "git-proxy"
)

// CreateEnvironment makes an environment and starts to keep it. Credentials
// in the source's URL are taken out of it and sealed.
func (c *Control) CreateEnvironment(ctx context.Context, n NewEnvironment) (intent.Environment, error) {
	e := n.Environment
	e.Name = strings.TrimSpace(e.Name)
	if e.Name == "" {
		return e, fault.New("control.CreateEnvironment", fault.Invalid, "an environment needs a name")
	}
	if len(e.Description) > 255 {
		return e, fault.New("control.CreateEnvironment", fault.Invalid, "the description is longer than 255 characters")
	}
	if e.ID == uuid.Nil {
		e.ID = uuid.New()
	}
	e.Created = c.cfg.Now()
	secrets := map[string]string{}
	for name, value := range n.Secrets {
		secrets[name] = value
	}
	if err := c.splitSource(&e.Source, secrets); err != nil {
		return e, err
	}
	if err := c.cfg.Store.CreateEnvironment(ctx, e); err != nil {
		return e, err
	}
	for name, value := range secrets {
		if err := c.SetSecret(ctx, e.ID, name, value); err != nil {
			return e, err
		}
	}
	c.publish(e.ID, bus.Environment, "")
	return e, c.keep(ctx, e.ID)
}

// Environments lists all environments by project and name.
func (c *Control) Environments(ctx context.Context) ([]intent.Environment, error) {
	return c.cfg.Store.Environments(ctx)
}

// Environment finds one.
func (c *Control) Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error) {
	return c.cfg.Store.Environment(ctx, id)
}

// UpdateEnvironment writes name, project, source, description and icon. A
// changed source is synced anew at the next compile.
func (c *Control) UpdateEnvironment(ctx context.Context, e intent.Environment) (intent.Environment, error) {
	secrets := map[string]string{}
	if err := c.splitSource(&e.Source, secrets); err != nil {
		return e, err
	}
	if err := c.staysFollowed(ctx, e); err != nil {
		return e, err
	}
	if err := c.cfg.Store.UpdateEnvironment(ctx, e); err != nil {
		return e, err
	}
	for name, value := range secrets {
		if err := c.SetSecret(ctx, e.ID, name, value); err != nil {
			return e, err
		}
	}
	c.environmentChanged(ctx, e.ID)
	return c.cfg.Store.Environment(ctx, e.ID)
}

// DeleteEnvironment stops, deletes and removes it from disk. Forbidden when protected.
func (c *Control) DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if e.Bool("protected_environment") {
		return protected(e)
	}
	c.release(id)
	if err := c.cfg.Store.DeleteEnvironment(ctx, id); err != nil {
		return err
	}
	c.publish(id, bus.Environment, "")
	return c.cfg.Workspace.Remove(id)
}

// ClearEnvironment drops versions, resources, compiles and files but keeps
// the environment with its settings. Forbidden when protected.
func (c *Control) ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if e.Bool("protected_environment") {
		return protected(e)
	}
	c.release(id)
	if err := c.cfg.Store.ClearEnvironment(ctx, id); err != nil {
		return err
	}
	if err := c.cfg.Workspace.Remove(id); err != nil {
		return err
	}
	c.publish(id, bus.Environment, "")
	return c.keep(ctx, id)
}

// Halt stops compiles and deployments of an environment; what runs is finished.
func (c *Control) Halt(ctx context.Context, id intent.EnvironmentID) error {
	return c.setHalted(ctx, id, true)
}

// Resume undoes Halt. What was removed from the environment's folder meanwhile
// is there again first.
func (c *Control) Resume(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if err := c.cfg.Workspace.Prepare(e); err != nil {
		return err
	}
	return c.setHalted(ctx, id, false)
}

func (c *Control) setHalted(ctx context.Context, id intent.EnvironmentID, halted bool) error {
	if err := c.cfg.Store.SetHalted(ctx, id, halted, c.actor(ctx)); err != nil {
		return err
	}
	c.environmentChanged(ctx, id)
	return nil
}

// SetSecret seals and stores a secret of an environment; empty deletes it.
func (c *Control) SetSecret(ctx context.Context, id intent.EnvironmentID, name, value string) error {
	if err := checkSecret(name, value); err != nil {
		return err
	}
	var sealed []byte
	if value != "" {
		var err error
		if sealed, err = c.cfg.Vault.Seal([]byte(value), secretContext(id, name)); err != nil {
			return err
		}
	}
	if name == SecretWebhook {
		if err := c.keepPrevious(ctx, id, value); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.SetSecret(ctx, id, name, sealed); err != nil {
		return err
	}
	c.environmentChanged(ctx, id)
	return nil
}

// keepPrevious lets the webhook's secret that was valid so far be valid still,
// until the next change, so that forges can be changed one after another. When
// the secret is removed so is that one.
func (c *Control) keepPrevious(ctx context.Context, id intent.EnvironmentID, value string) error {
	if value == "" {
		return c.cfg.Store.SetSecret(ctx, id, SecretWebhookPrevious, nil)
	}
	now, err := c.secrets(ctx, id)
	if err != nil || now[SecretWebhook] == "" || now[SecretWebhook] == value {
		return nil // what cannot be opened verifies nothing either
	}
	sealed, err := c.cfg.Vault.Seal([]byte(now[SecretWebhook]), secretContext(id, SecretWebhookPrevious))
	if err != nil {
		return err
	}
	return c.cfg.Store.SetSecret(ctx, id, SecretWebhookPrevious, sealed)
}

// secrets opens all secrets of an environment: its own, and where it has none
// of a name that of its project.
func (c *Control) secrets(ctx context.Context, id intent.EnvironmentID) (map[string]string, error) {
	sealed, err := c.cfg.Store.Secrets(ctx, id)
	if err != nil {
		return nil, err
	}
	own, err := c.open(sealed, "environment", func(name string) string { return secretContext(id, name) })
	if err != nil {
		return nil, err
	}
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := c.projectSecrets(ctx, e.ProjectID)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, own)
	return all, nil
}

// open opens sealed secrets of something.
func (c *Control) open(sealed map[string][]byte, of string, place func(name string) string) (map[string]string, error) {
	plain := make(map[string]string, len(sealed))
	for name, bytes := range sealed {
		text, err := c.cfg.Vault.Open(bytes, place(name))
		if err != nil {
			return nil, fault.Wrap("control.secrets", fault.Internal, err).
				Say("the secret " + name + " of this " + of + " cannot be opened").
				Hint("set it again; the key file of the state directory was replaced")
		}
		plain[name] = string(text)
	}
	return plain, nil
}

func secretContext(id intent.EnvironmentID, name string) string { return id.String() + "/" + name }

func protected(e intent.Environment) error {
	return fault.New("control.protected", fault.Forbidden, "the environment "+e.Name+" is protected").
		Hint("switch its setting protected_environment off first")
}
