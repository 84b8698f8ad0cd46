package control

import (
	"context"
	"net/url"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/source"
)

// The secrets that the server sends to the host of an environment's repository, and to its forge.
var (
	gitSecrets    = []string{source.SecretGitPassword, source.SecretSSHKey}
	forgeSecrets  = []string{source.SecretForgeToken}
	sourceSecrets = []string{source.SecretGitPassword, source.SecretSSHKey, source.SecretForgeToken}
)

// mayLend refuses to send secrets to a host that only the sender of a request vouches for. The person who
// set a secret had one host in mind. So people who may not set the secrets of the project can
// point an environment only at hosts that the project uses already, unless they bring the credentials along. given
// names the secrets that come with the request.
func (c *Control) mayLend(ctx context.Context, e intent.Environment, given map[string]string) error {
	if c.maySetSecrets(ctx, e) || e.Source.URL == "" {
		return nil
	}
	lent, err := c.lent(ctx, e, sourceSecrets, given)
	if err != nil || lent == "" {
		return err
	}
	all, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.ProjectID == e.ProjectID && gitsync.SameHost(other.Source.URL, e.Source.URL) {
			return nil
		}
	}
	return fault.New("control.mayLend", fault.Forbidden,
		"the secret "+lent+" would be sent to a host that this project does not use yet").
		Hint("ask an administrator of the project to set the source, or give the credentials for the new host with it")
}

// mayLendTo refuses to send secrets to the host that a setting names, as mayLend does.
func (c *Control) mayLendTo(
	ctx context.Context, e intent.Environment, name string, value any, given map[string]string,
) error {
	wanted := map[string][]string{"forge_api": forgeSecrets, "git_proxy": gitSecrets}[name]
	address, _ := value.(string)
	if len(wanted) == 0 || address == "" || c.maySetSecrets(ctx, e) {
		return nil
	}
	if api, err := url.Parse(address); err == nil && name == "forge_api" {
		if repository, err := url.Parse(e.Source.URL); err == nil && api.Hostname() != "" &&
			api.Hostname() == repository.Hostname() {
			return nil // a forge at the repository's own host
		}
	}
	lent, err := c.lent(ctx, e, wanted, given)
	if err != nil || lent == "" {
		return err
	}
	return fault.New("control.mayLend", fault.Forbidden,
		"the setting "+name+" decides where the secret "+lent+" is sent").
		Hint("ask an administrator of the project to set it")
}

func (c *Control) maySetSecrets(ctx context.Context, e intent.Environment) bool {
	p := access.Of(ctx)
	return !p.Known() || p.Decide(access.SetProjectSecret, access.Target{Project: e.ProjectID}).Allowed
}

// lent returns the first of some secrets that an environment has, or would get from its project, and that the sender
// of a request did not give; empty when there is none.
func (c *Control) lent(
	ctx context.Context, e intent.Environment, names []string, given map[string]string,
) (string, error) {
	project, err := c.cfg.Store.ProjectSecrets(ctx, e.ProjectID)
	if err != nil {
		return "", err
	}
	own := map[string][]byte{}
	if e.ID != uuid.Nil {
		if own, err = c.cfg.Store.Secrets(ctx, e.ID); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		_, ofProject := project[name]
		_, ofEnvironment := own[name]
		if given[name] == "" && (ofProject || ofEnvironment) {
			return name, nil
		}
	}
	return "", nil
}
