package server

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/replica"
	"ordain.dev/ordain/server/store"
)

// openKey opens the key that seals credentials, which all processes of an installation share.
func (s *Server) openKey(ctx context.Context, records *store.Store) (*secret.Key, uuid.UUID, error) {
	key, err := secret.OpenKey(cmp.Or(s.cfg.Options.SecretKeyFile, filepath.Join(s.layout.Server(), ".secret.key")))
	if err != nil {
		return nil, uuid.UUID{}, err
	}
	installation, replaced, err := records.Installation(ctx, key.Fingerprint(), replica.Stale)
	if replaced {
		s.log.Warn("the secret key is not the one from before: what was sealed with that one cannot be opened; " +
			"restore the key file, or set all credentials again")
	}
	return key, installation, err
}

// notHere answers requests in a process that has not the role api. The guard before it answers questions about health.
func notHere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "this process does not have the role api: ask one that has it", http.StatusNotFound)
}

// sayWhatIsMissing logs which roles no process has.
func (s *Server) sayWhatIsMissing() {
	for role, consequence := range map[string]string{
		config.RoleAPI:     "people and programs are not answered",
		config.RoleProcess: "requests are accepted, and carried out when one is there",
		config.RoleAgent:   "remote agents cannot connect",
	} {
		if s.peers.With(role) == 0 {
			s.log.Warn("no process has a role", "role", role, "consequence", consequence)
		}
	}
}

// fetching is a Syncer for processes that may have no mirror of a repository yet: they fetch it first.
type fetching struct{ *gitsync.Syncer }

func (f fetching) mirror(ctx context.Context, src gitsync.Source, commit string) error {
	if f.Has(src, commit) {
		return nil
	}
	_, _, err := f.Fetch(ctx, src)
	return err
}

func (f fetching) Blame(ctx context.Context, src gitsync.Source, commit, path string) (provenance.Blame, error) {
	if err := f.mirror(ctx, src, commit); err != nil {
		return nil, err
	}
	return f.Syncer.Blame(ctx, src, commit, path)
}

func (f fetching) Verify(
	ctx context.Context, src gitsync.Source, rev intent.Revision, policy intent.GitPolicy,
) (intent.Signer, error) {
	if err := f.mirror(ctx, src, rev.Commit); err != nil {
		return intent.Signer{}, err
	}
	return f.Syncer.Verify(ctx, src, rev, policy)
}

func (f fetching) Revert(ctx context.Context, src gitsync.Source, commit string) (string, []gitsync.Change, error) {
	if err := f.mirror(ctx, src, commit); err != nil {
		return "", nil, err
	}
	return f.Syncer.Revert(ctx, src, commit)
}
