package control

import (
	"context"
	"encoding/pem"
	"maps"
	"net/url"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// sharedSecrets are the names that an environment and its project may both have.
var sharedSecrets = []string{
	SecretWebhook,
	SecretWebhookPrevious,
	SecretGitUser,
	SecretGitPassword,
	SecretSSHKey,
	SecretSSHPassphrase,
	SecretGitProxy,
	SecretForgeToken,
}

// checkShared refuses values that can never work. What it says holds none of them.
func checkShared(name, value string) error {
	const op = "control.SetSecret"
	if value == "" {
		return nil
	}
	switch name {
	case SecretSSHKey:
		block, _ := pem.Decode([]byte(strings.TrimSpace(value) + "\n"))
		if block == nil || !strings.Contains(block.Type, "PRIVATE KEY") {
			return fault.New(op, fault.Invalid, name+" is not a private key").
				Hint("give the whole file that ssh-keygen -t ed25519 wrote, the one without .pub")
		}
	case SecretGitProxy:
		if u, err := url.Parse(value); err != nil || u.Hostname() == "" ||
			!slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return fault.New(op, fault.Invalid, name+" is not the URL of a proxy").
				Hint("write it as http://user:password@host:port")
		}
	case SecretGitUser, SecretGitPassword:
		if strings.ContainsAny(value, "\r\n\x00") {
			return fault.New(op, fault.Invalid, name+" has several lines").Hint("give it alone, on one line")
		}
	}
	return nil
}

// SetProjectSecret seals and stores a secret that all environments of a
// project use which have none of that name; empty deletes it.
func (c *Control) SetProjectSecret(ctx context.Context, id intent.ProjectID, name, value string) error {
	if !slices.Contains(sharedSecrets, name) {
		return fault.New("control.SetProjectSecret", fault.Invalid, "a project has no secret called "+name).
			Hint("use " + strings.Join(sharedSecrets, ", "))
	}
	if err := checkShared(name, value); err != nil {
		return err
	}
	if _, err := c.cfg.Store.Project(ctx, id); err != nil {
		return err
	}
	if name == SecretWebhook {
		if err := c.keepProjectPrevious(ctx, id, value); err != nil {
			return err
		}
	}
	var sealed []byte
	if value != "" {
		var err error
		if sealed, err = c.cfg.Vault.Seal([]byte(value), projectContext(id, name)); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.SetProjectSecret(ctx, id, name, sealed); err != nil {
		return err
	}
	return c.projectChanged(ctx, id)
}

// keepProjectPrevious lets the webhook's secret that was valid so far be valid
// still, as keepPrevious does for an environment.
func (c *Control) keepProjectPrevious(ctx context.Context, id intent.ProjectID, value string) error {
	if value == "" {
		return c.cfg.Store.SetProjectSecret(ctx, id, SecretWebhookPrevious, nil)
	}
	now, err := c.projectSecrets(ctx, id)
	if err != nil || now[SecretWebhook] == "" || now[SecretWebhook] == value {
		return nil // what cannot be opened verifies nothing either
	}
	sealed, err := c.cfg.Vault.Seal([]byte(now[SecretWebhook]), projectContext(id, SecretWebhookPrevious))
	if err != nil {
		return err
	}
	return c.cfg.Store.SetProjectSecret(ctx, id, SecretWebhookPrevious, sealed)
}

// ProjectSecretNames lists which secrets a project has. Their values are never given.
func (c *Control) ProjectSecretNames(ctx context.Context, id intent.ProjectID) ([]string, error) {
	if _, err := c.cfg.Store.Project(ctx, id); err != nil {
		return nil, err
	}
	sealed, err := c.cfg.Store.ProjectSecrets(ctx, id)
	return slices.Sorted(maps.Keys(sealed)), err
}

func (c *Control) projectSecrets(ctx context.Context, id intent.ProjectID) (map[string]string, error) {
	sealed, err := c.cfg.Store.ProjectSecrets(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.open(sealed, "environment's project", func(name string) string { return projectContext(id, name) })
}

func projectContext(id intent.ProjectID, name string) string {
	return "project:" + id.String() + "/" + name
}

// projectChanged lets the environments of a project look at their sources again.
func (c *Control) projectChanged(ctx context.Context, id intent.ProjectID) error {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range envs {
		if e.ProjectID == id {
			c.environmentChanged(ctx, e.ID)
		}
	}
	return nil
}

// KnownHosts gives the keys of SSH servers that a project knows, in OpenSSH's lines.
func (c *Control) KnownHosts(ctx context.Context, id intent.ProjectID) (string, error) {
	return c.cfg.Store.KnownHosts(ctx, id)
}

// SetKnownHosts replaces them.
func (c *Control) SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error {
	lines = strings.ReplaceAll(lines, "\r\n", "\n")
	if err := intent.CheckKnownHosts(lines); err != nil {
		return fault.Wrap("control.SetKnownHosts", fault.Invalid, err).Hint("give lines as ssh-keyscan prints them")
	}
	if lines != "" && !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	if err := c.cfg.Store.SetKnownHosts(ctx, id, lines); err != nil {
		return err
	}
	return c.projectChanged(ctx, id)
}

// LearnHostKey remembers the key of an SSH server for a project whose
// environment accepts new ones.
func (c *Control) LearnHostKey(ctx context.Context, id intent.ProjectID, line string) error {
	if err := intent.CheckKnownHosts(line); err != nil {
		return err
	}
	c.cfg.Logger.Info("the key of an SSH server was accepted and is known from now on", "project", id, "line", line)
	return c.cfg.Store.AddKnownHost(ctx, id, line)
}

// gitSource adds credentials, trust and options to an environment's source.
func (c *Control) gitSource(ctx context.Context, e intent.Environment) (GitSource, error) {
	secrets, err := c.secrets(ctx, e.ID)
	if err != nil {
		return GitSource{}, err
	}
	hosts, err := c.cfg.Store.KnownHosts(ctx, e.ProjectID)
	if err != nil {
		return GitSource{}, err
	}
	s := plainSource(e)
	s.Username, s.Password = secrets[SecretGitUser], secrets[SecretGitPassword]
	s.SSHKey, s.SSHPassphrase = secrets[SecretSSHKey], secrets[SecretSSHPassphrase]
	s.KnownHosts = joinLines(s.KnownHosts, hosts)
	if proxy := secrets[SecretGitProxy]; proxy != "" {
		s.Proxy = proxy
	}
	return s, nil
}

// plainSource is the source of an environment without its secrets.
func plainSource(e intent.Environment) GitSource {
	s := GitSource{
		URL: e.Source.URL, Branch: e.Source.Branch,
		KnownHosts: e.Text("git_known_hosts"), AcceptNew: e.Text("git_host_keys") == "accept-new",
		Project: e.ProjectID, CABundle: e.Text("git_ca_bundle"), Proxy: e.Text("git_proxy"),
		Depth: e.Int("git_depth"), Submodules: e.Bool("git_submodules"), MaxFile: e.GitMaxFile(),
	}
	if e.Bool("git_single_branch") {
		s.Only = e.Source.Branch
		if s.Only == "" {
			s.Only = "HEAD"
		}
	}
	return s
}

func joinLines(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n"
	}
	return a + b
}
