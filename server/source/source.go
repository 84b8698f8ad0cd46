// Package source turns an environment into the gitsync.Source that its
// repository is reached with: the URL and branch of the environment, how the
// remote proves itself and how it is reached (settings of the environment, host
// keys of its project), and credentials from the sealed secrets of both.
package source

import (
	"context"
	"slices"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/store"
)

// Opener opens the secrets of environments and makes their sources. It is safe
// for concurrent use.
type Opener struct {
	store *store.Store
	key   *secret.Key
	known []string // secrets of the server itself
}

// NewOpener makes an Opener whose secrets are sealed with key. Its redactors also mask
// the known secrets of the server.
func NewOpener(records *store.Store, key *secret.Key, known ...string) *Opener {
	return &Opener{store: records, key: key, known: known}
}

// shortest is the length of the shortest secret that is masked. Masking a shorter one
// would spoil texts that have nothing to do with it.
const shortest = 4

// Redactor masks the secrets of an environment, and those of the server, in what tools
// and plug-ins print. If the secrets of the environment cannot be opened, it masks those
// of the server.
func (o *Opener) Redactor(ctx context.Context, e intent.Environment) *secret.Redactor {
	hidden := slices.Clone(o.known)
	all, err := o.Secrets(ctx, e)
	if err == nil {
		for name, value := range all {
			if name != SecretGitUser && len(value) >= shortest {
				hidden = append(hidden, value)
			}
		}
	}
	return o.key.Redactor(hidden...)
}

// Of returns the source of an environment, with its credentials.
func (o *Opener) Of(ctx context.Context, e intent.Environment) (gitsync.Source, error) {
	secrets, err := o.Secrets(ctx, e)
	if err != nil {
		return gitsync.Source{}, err
	}
	hosts, err := o.store.KnownHosts(ctx, e.ProjectID)
	if err != nil {
		return gitsync.Source{}, err
	}
	s := Plain(e)
	Authorize(&s, secrets)
	s.Trust.KnownHosts = JoinLines(s.Trust.KnownHosts, hosts)
	return s, nil
}

// Authorize gives a source the credentials among secrets.
func Authorize(s *gitsync.Source, secrets map[string]string) {
	s.Credentials = gitsync.Credentials{
		Username: secrets[SecretGitUser], Password: secrets[SecretGitPassword],
		SSHKey: secrets[SecretSSHKey], SSHPassphrase: secrets[SecretSSHPassphrase],
	}
	if proxy := secrets[SecretGitProxy]; proxy != "" {
		s.Trust.Proxy = proxy
	}
}

// Plain returns the source of an environment without its secrets. It names the
// same mirror as the one with secrets.
func Plain(e intent.Environment) gitsync.Source {
	s := gitsync.Source{
		URL: e.Source.URL, Branch: e.Source.Branch,
		Depth: e.Int("git_depth"), Submodules: e.Bool("git_submodules"), MaxFile: e.GitMaxFile(),
		Trust: gitsync.Trust{
			KnownHosts: e.Text("git_known_hosts"), AcceptNew: e.Text("git_host_keys") == "accept-new",
			Scope: e.ProjectID.String(), CABundle: e.Text("git_ca_bundle"), Proxy: e.Text("git_proxy"),
		},
	}
	if e.Bool("git_single_branch") {
		s.Only = e.Source.Branch
		if s.Only == "" {
			s.Only = "HEAD"
		}
	}
	return s
}

// JoinLines puts one text of lines below another.
func JoinLines(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n"
	}
	return a + b
}

// Secrets opens all secrets of an environment: its own, and those of its project
// under names that the environment has none of.
func (o *Opener) Secrets(ctx context.Context, e intent.Environment) (map[string]string, error) {
	sealed, err := o.store.Secrets(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	all, err := o.ProjectSecrets(ctx, e.ProjectID)
	if err != nil {
		return nil, err
	}
	for name, text := range sealed {
		plain, err := o.key.Open(text, environmentPlace(e.ID, name))
		if err != nil {
			return nil, cannotOpen(err, name, "environment")
		}
		all[name] = string(plain)
	}
	return all, nil
}

// ProjectSecrets opens the secrets that the environments of a project share.
func (o *Opener) ProjectSecrets(ctx context.Context, id intent.ProjectID) (map[string]string, error) {
	sealed, err := o.store.ProjectSecrets(ctx, id)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(sealed))
	for name, text := range sealed {
		plain, err := o.key.Open(text, projectPlace(id, name))
		if err != nil {
			return nil, cannotOpen(err, name, "environment's project")
		}
		all[name] = string(plain)
	}
	return all, nil
}

func cannotOpen(err error, name, owner string) error {
	return fault.Wrap("source.Secrets", fault.Internal, err).
		Say("the secret " + name + " of this " + owner + " cannot be opened").
		Hint("set it again; the key file of the state directory was replaced")
}

// Open opens one sealed secret of an environment.
func (o *Opener) Open(id intent.EnvironmentID, name string, sealed []byte) ([]byte, error) {
	return o.key.Open(sealed, environmentPlace(id, name))
}

// Seal seals a secret of an environment. An empty value gives nil, which deletes
// the secret from the store.
func (o *Opener) Seal(id intent.EnvironmentID, name, value string) ([]byte, error) {
	return o.seal(value, environmentPlace(id, name))
}

// SealForProject seals a secret of a project, as Seal does for an environment.
func (o *Opener) SealForProject(id intent.ProjectID, name, value string) ([]byte, error) {
	return o.seal(value, projectPlace(id, name))
}

func (o *Opener) seal(value, place string) ([]byte, error) {
	if value == "" {
		return nil, nil
	}
	return o.key.Seal([]byte(value), place)
}

// Variables returns the variables that the handlers of an environment see, for
// its executors and nobody else.
func (o *Opener) Variables(ctx context.Context, id intent.EnvironmentID) (map[string]string, error) {
	e, err := o.store.Environment(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := o.Secrets(ctx, e)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, value := range all {
		if variable, is := strings.CutPrefix(name, VariablePrefix); is {
			out[variable] = value
		}
	}
	return out, nil
}

// A sealed text is bound to its place, so that it opens nowhere else.
func environmentPlace(id intent.EnvironmentID, name string) string { return id.String() + "/" + name }

func projectPlace(id intent.ProjectID, name string) string {
	return "project:" + id.String() + "/" + name
}
