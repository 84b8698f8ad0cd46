package forge

import (
	"context"
	"errors"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/reach"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/source"
)

// ErrNoForge says that there is no forge to speak to.
var ErrNoForge = errors.New("the environment has no forge, or no token for it")

// Opener opens the forges of environments' repositories.
type Opener struct {
	Sources *source.Opener
	Version string       // of this program, for the forges' logs
	Reach   *reach.Rules // which addresses forges may have; nil: any
	// New replaces client.New in tests; it may be nil.
	New func(client.Config) (client.Forge, error)
}

// Open returns the forge of an environment's repository; ErrNoForge when it has none.
func (o *Opener) Open(ctx context.Context, e intent.Environment) (client.Forge, error) {
	secrets, err := o.Sources.Secrets(ctx, e)
	if err != nil {
		return nil, err
	}
	if secrets[source.SecretForgeToken] == "" || e.Text("forge") == "none" || e.Source.URL == "" {
		return nil, ErrNoForge
	}
	trust := source.Plain(e).Trust
	if proxy := secrets[source.SecretGitProxy]; proxy != "" {
		trust.Proxy = proxy
	}
	open := o.New
	if open == nil {
		open = client.New
	}
	return open(client.Config{
		Kind: e.Text("forge"), URL: e.Source.URL, API: e.Text("forge_api"),
		Token: strings.TrimSpace(secrets[source.SecretForgeToken]),
		Proxy: trust.Proxy, CA: trust.CABundle, UserAgent: "ordain/" + o.Version, Reach: o.Reach,
	})
}
