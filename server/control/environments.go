package control

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/source"
)

// mayUse lets only administrators of the server use a repository on its disk, which may be anybody's.
func mayUse(ctx context.Context, url string) error {
	p := access.Of(ctx)
	local := path.IsAbs(url) || strings.HasPrefix(url, "file:")
	if !local || !p.Known() || p.Decide(access.CreateProject, access.Target{}).Allowed {
		return nil
	}
	return fault.New("control.mayUse", fault.Forbidden,
		"only an administrator of the server may bind an environment to a repository on the server's disk").
		Hint("use the repository's https:// or ssh:// URL, or ask an administrator")
}

// mayMove lets only those move an environment to another project who may delete it: for the administrators of its
// project, that is the same.
func mayMove(ctx context.Context, e intent.Environment) error {
	p := access.Of(ctx)
	if !p.Known() || p.Decide(access.DeleteEnvironment, access.TargetOf(e)).Allowed {
		return nil
	}
	return fault.New("control.mayMove", fault.Forbidden,
		fmt.Sprintf("you may not move the environment to another project: that takes the verb %s",
			access.DeleteEnvironment)).
		Hint("ask an administrator of its present project")
}

// UpdateEnvironment writes name, project, source, description and icon. A
// changed source is fetched from scratch by the next compile.
func (c *Control) UpdateEnvironment(ctx context.Context, e intent.Environment) (intent.Environment, error) {
	secrets := map[string]string{}
	if err := splitSource(&e.Source, secrets); err != nil {
		return e, err
	}
	before, err := c.cfg.Store.Environment(ctx, e.ID)
	if err != nil {
		return e, err
	}
	if e.ProjectID != before.ProjectID {
		if err := mayMove(ctx, before); err != nil {
			return e, err
		}
	}
	if e.Source.URL != before.Source.URL {
		if err := mayUse(ctx, e.Source.URL); err != nil {
			return e, err
		}
	}
	if e.Source.URL != before.Source.URL || e.ProjectID != before.ProjectID {
		if err := c.mayLend(ctx, e, secrets); err != nil {
			return e, err
		}
	}
	if err := c.staysFollowed(ctx, e); err != nil {
		return e, err
	}
	audit.Change(ctx, described(before), described(e))
	if err := c.cfg.Store.Asking(e.ID, intent.RequestLook, nil).UpdateEnvironment(ctx, e); err != nil {
		return e, err
	}
	for name, value := range secrets {
		if err := c.SetSecret(ctx, e.ID, name, value); err != nil {
			return e, err
		}
	}
	c.changed(ctx, e.ID)
	return c.cfg.Store.Environment(ctx, e.ID)
}

// Bounds of the tags of an environment.
const maxTags = 32

var tagForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// SetTags replaces the tags of an environment, which roles can be bound to.
func (c *Control) SetTags(ctx context.Context, id intent.EnvironmentID, tags []string) error {
	tags, err := cleanTags(tags)
	if err != nil {
		return err
	}
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	audit.Change(ctx, e.Tags, tags)
	if err := c.cfg.Store.SetTags(ctx, id, tags); err != nil {
		return err
	}
	c.publish(id, bus.Environment, "")
	return nil
}

// cleanTags sorts tags, and refuses what is not a tag.
func cleanTags(tags []string) ([]string, error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	if len(tags) > maxTags {
		return nil, fault.New("control.SetTags", fault.Invalid,
			fmt.Sprintf("an environment has at most %d tags", maxTags))
	}
	for _, tag := range tags {
		if !tagForm.MatchString(tag) {
			return nil, fault.New("control.SetTags", fault.Invalid, fmt.Sprintf("%.80q is not a tag", tag)).
				Hint("a tag has up to 63 lower-case letters, digits, dots, dashes and underscores")
		}
	}
	return tags, nil
}

// described is what the audit trail keeps of an environment: the source has no credentials in its URL any more.
func described(e intent.Environment) map[string]any {
	return map[string]any{
		"name": e.Name, "project": e.ProjectID, "repository": e.Source.URL, "branch": e.Source.Branch,
		"subdir": e.Source.Subdir, "description": e.Description,
	}
}

// DeleteEnvironment stops an environment, deletes it and removes its files. It
// returns Forbidden if the environment is protected.
func (c *Control) DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if e.Bool("protected_environment") {
		return protected(e)
	}
	c.cfg.Keepers.Release(id)
	if err := c.cfg.Store.DeleteEnvironment(ctx, id); err != nil {
		c.cfg.Keepers.Keep(id)
		return err
	}
	c.publish(id, bus.Environment, "")
	return c.cfg.Keepers.Folders.Remove(id)
}

// ClearEnvironment deletes versions, resources, compiles and files, but keeps the
// environment with its settings. It returns Forbidden if the environment is protected.
func (c *Control) ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if e.Bool("protected_environment") {
		return protected(e)
	}
	defer c.cfg.Keepers.Keep(id)
	records := c.cfg.Store
	if !c.cfg.Keepers.Release(id) { // its owner has to begin anew
		records = records.Asking(id, intent.RequestClear, nil)
	}
	if err := records.ClearEnvironment(ctx, id); err != nil {
		return err
	}
	if err := c.cfg.Keepers.Folders.Remove(id); err != nil {
		return err
	}
	c.publish(id, bus.Environment, "")
	c.cfg.Keepers.Attend(ctx, id)
	return nil
}

// Halt stops compiles and deployments of an environment; those that run finish.
func (c *Control) Halt(ctx context.Context, id intent.EnvironmentID) error {
	return c.setHalted(ctx, id, true)
}

// Resume undoes Halt. It first restores what was removed from the environment's
// folder in the meantime.
func (c *Control) Resume(ctx context.Context, id intent.EnvironmentID) error {
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	if c.cfg.Keepers.Owns(id) {
		if err := c.cfg.Keepers.Folders.Prepare(e); err != nil {
			return err
		}
	}
	return c.setHalted(ctx, id, false)
}

func (c *Control) setHalted(ctx context.Context, id intent.EnvironmentID, halted bool) error {
	if err := c.cfg.Store.Asking(id, intent.RequestLook, nil).SetHalted(ctx, id, halted, c.actor(ctx)); err != nil {
		return err
	}
	c.changed(ctx, id)
	return nil
}

// SetSecret seals and stores a secret of an environment. An empty value deletes it.
func (c *Control) SetSecret(ctx context.Context, id intent.EnvironmentID, name, value string) error {
	audit.Subject(ctx, "secret "+name)
	audit.Change(ctx, nil, setOrRemoved(value))
	if err := source.CheckSecret(name, value); err != nil {
		return err
	}
	sealed, err := c.cfg.Sources.Seal(id, name, value)
	if err != nil {
		return err
	}
	if name == source.SecretWebhook {
		if err := c.keepPrevious(ctx, id, value); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.Asking(id, intent.RequestLook, nil).SetSecret(ctx, id, name, sealed); err != nil {
		return err
	}
	c.changed(ctx, id)
	return nil
}

// keepPrevious keeps the present webhook secret valid until the next change, so that
// forges can switch to the new one at different times. If the secret is removed, the
// previous one is removed too.
func (c *Control) keepPrevious(ctx context.Context, id intent.EnvironmentID, value string) error {
	if value == "" {
		return c.cfg.Store.SetSecret(ctx, id, source.SecretWebhookPrevious, nil)
	}
	e, err := c.cfg.Store.Environment(ctx, id)
	if err != nil {
		return err
	}
	all, err := c.cfg.Sources.Secrets(ctx, e)
	now := all[source.SecretWebhook]
	if err != nil || now == "" || now == value {
		return nil // a secret that cannot be opened verifies nothing
	}
	sealed, err := c.cfg.Sources.Seal(id, source.SecretWebhookPrevious, now)
	if err != nil {
		return err
	}
	return c.cfg.Store.SetSecret(ctx, id, source.SecretWebhookPrevious, sealed)
}

// setOrRemoved is all that the audit trail says of a secret.
func setOrRemoved(value string) string {
	if value == "" {
		return "removed"
	}
	return "set"
}

func protected(e intent.Environment) error {
	return fault.New("control.protected", fault.Forbidden, "the environment "+e.Name+" is protected").
		Hint("switch its setting protected_environment off first")
}

// splitSource moves credentials from a source's URL into secrets, and checks what it
// can without contacting the remote.
func splitSource(s *intent.Source, secrets map[string]string) error {
	s.URL, s.Branch = strings.TrimSpace(s.URL), strings.TrimSpace(s.Branch)
	if s.URL == "" {
		return nil
	}
	parsed, err := gitsync.ParseSource(s.URL)
	if err != nil {
		return err
	}
	if err := gitsync.CheckBranch(s.Branch); err != nil {
		return err
	}
	s.URL = parsed.URL
	if user := parsed.Credentials.Username; user != "" {
		secrets[source.SecretGitUser] = user
	}
	if password := parsed.Credentials.Password; password != "" {
		secrets[source.SecretGitPassword] = password
	}
	s.Subdir = strings.TrimPrefix(path.Clean("/"+s.Subdir), "/")
	return nil
}
