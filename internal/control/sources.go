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

// gitSource adds an environment's credentials to its source.
func (c *Control) gitSource(ctx context.Context, e intent.Environment) (GitSource, error) {
	secrets, err := c.secrets(ctx, e.ID)
	if err != nil {
		return GitSource{}, err
	}
	return GitSource{
		URL: e.Source.URL, Branch: e.Source.Branch,
		Username: secrets[SecretGitUser], Password: secrets[SecretGitPassword],
	}, nil
}

// watch begins to watch an environment's source, or stops when there is nothing to watch.
func (c *Control) watch(ctx context.Context, e intent.Environment) {
	if e.Source.URL == "" || e.Halted || !e.Bool("server_compile") {
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

// SourceMoved is told by the watcher that the branch of an environment points
// to another commit. A request that waits already takes the commit along, and
// a run that compiles it already needs no other.
func (c *Control) SourceMoved(ctx context.Context, env intent.EnvironmentID, commit, kind, message string) error {
	open, err := c.cfg.Store.OpenCompiles(ctx, env)
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.Update && (o.Started == nil || o.Revision != nil && o.Revision.Commit == commit) {
			return nil
		}
	}
	last, err := c.cfg.Store.LastCompile(ctx, env)
	if err != nil {
		return err
	}
	if last != nil && last.Revision != nil && last.Revision.Commit == commit {
		return nil
	}
	_, _, err = c.RequestCompile(ctx, env, CompileRequest{
		Update: true, Trigger: intent.Trigger{Type: kind, Message: message},
	})
	return err
}

// HookTarget is an environment that a webhook may notify, with what can sign for it.
type HookTarget struct {
	Environment intent.EnvironmentID
	Name        string
	Source      intent.Source
	Secrets     [][]byte
}

// HookTargets lists the environments that are bound to a repository, with
// their webhook secrets, for the webhooks to match and verify.
func (c *Control) HookTargets(ctx context.Context) ([]HookTarget, error) {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return nil, err
	}
	var targets []HookTarget
	for _, e := range envs {
		if e.Source.URL == "" {
			continue
		}
		secrets, err := c.secrets(ctx, e.ID)
		if err != nil {
			if fault.Is(err, fault.Internal) {
				c.cfg.Logger.Error("an environment cannot be notified by webhooks", "environment", e.ID, "error", err)
				continue
			}
			return nil, err
		}
		t := HookTarget{Environment: e.ID, Name: e.Name, Source: e.Source}
		if s := secrets[SecretWebhook]; s != "" {
			t.Secrets = [][]byte{[]byte(s)}
		}
		targets = append(targets, t)
	}
	return targets, nil
}
