package control

import (
	"context"
	"path"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// splitSource takes credentials out of a source's URL, into secrets, and
// checks what can be checked without asking the remote.
func (c *Control) splitSource(s *intent.Source, secrets map[string]string) error {
	s.URL, s.Branch = strings.TrimSpace(s.URL), strings.TrimSpace(s.Branch)
	if s.URL == "" {
		return nil
	}
	git, err := c.cfg.Git.Split(s.URL)
	if err != nil {
		return err
	}
	if err := c.cfg.Git.CheckBranch(s.Branch); err != nil {
		return err
	}
	s.URL = git.URL
	if git.Username != "" {
		secrets[SecretGitUser] = git.Username
	}
	if git.Password != "" {
		secrets[SecretGitPassword] = git.Password
	}
	if sub := path.Clean("/" + s.Subdir); sub != "/" {
		s.Subdir = sub[1:]
	} else {
		s.Subdir = ""
	}
	return nil
}

// watch begins to watch an environment's source, or stops when there is nothing to watch.
func (c *Control) watch(ctx context.Context, e intent.Environment) {
	if e.Source.URL == "" || e.Halted || !e.Bool("server_compile") || e.Follows() != "" {
		c.cfg.Watcher.Forget(e.ID)
		return
	}
	source, err := c.gitSource(ctx, e)
	if err != nil {
		c.cfg.Logger.Error("the source cannot be watched", "environment", e.ID, "error", err)
		return
	}
	seen := ""
	last, err := c.cfg.Store.LastCompile(ctx, e.ID)
	if err != nil {
		c.cfg.Logger.Error("the last compile cannot be read", "environment", e.ID, "error", err)
	} else if last != nil && last.Revision != nil {
		seen = last.Revision.Commit
	}
	c.cfg.Watcher.Watch(e.ID, source, time.Duration(e.Int("git_poll_interval"))*time.Second, seen)
}

// HookGeneration counts what this process changed of the environments: what
// HookTargets gave before it counted up is out of date.
func (c *Control) HookGeneration() uint64 { return c.hookGeneration.Load() }

// HookTargets lists the environments that are bound to a repository, with
// their webhook secrets, for the webhooks to match and verify.
func (c *Control) HookTargets(ctx context.Context) ([]intent.HookTarget, error) {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return nil, err
	}
	secrets, err := c.cfg.Store.HookSecrets(ctx)
	if err != nil {
		return nil, err
	}
	modules, err := c.cfg.Store.Modules(ctx)
	if err != nil {
		return nil, err
	}
	shared := map[intent.ProjectID][][]byte{}
	var targets []intent.HookTarget
	for _, e := range envs {
		if e.Source.URL == "" {
			continue
		}
		t := intent.HookTarget{Environment: e.ID, Name: e.Name, Source: e.Source, Modules: modules[e.ID]}
		for name, sealed := range secrets[e.ID] {
			plain, err := c.cfg.Vault.Open(sealed, secretContext(e.ID, name))
			if err != nil {
				c.cfg.Logger.Error(
					"a webhook secret cannot be opened",
					"environment",
					e.ID,
					"secret",
					name,
					"error",
					err,
				)
				continue
			}
			if len(plain) > 0 {
				t.Secrets = append(t.Secrets, plain)
			}
		}
		if len(secrets[e.ID]) == 0 { // those of its own come before its project's
			if _, known := shared[e.ProjectID]; !known {
				if shared[e.ProjectID], err = c.projectHookSecrets(ctx, e.ProjectID); err != nil {
					return nil, err
				}
			}
			t.Secrets = shared[e.ProjectID]
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// projectHookSecrets opens the webhook secrets that a project's environments share.
func (c *Control) projectHookSecrets(ctx context.Context, id intent.ProjectID) (out [][]byte, err error) {
	all, err := c.projectSecrets(ctx, id)
	if fault.Is(err, fault.Internal) {
		c.cfg.Logger.Error("a webhook secret of a project cannot be opened", "project", id, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{SecretWebhook, SecretWebhookPrevious} {
		if s := all[name]; s != "" {
			out = append(out, []byte(s))
		}
	}
	return out, nil
}
