package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// git is a real Git without a network: a fetch from another machine waits until it is given up.
type git struct{ *gitsync.Syncer }

// wait waits for ctx to end when a source lies on another machine.
func wait(ctx context.Context, src gitsync.Source) error {
	if filepath.IsAbs(src.URL) || strings.HasPrefix(src.URL, "file:") {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g git) Fetch(ctx context.Context, src gitsync.Source) (intent.Revision, gitsync.Report, error) {
	if err := wait(ctx, src); err != nil {
		return intent.Revision{}, gitsync.Report{Command: "git fetch " + src.URL}, err
	}
	return g.Syncer.Fetch(ctx, src)
}

func (g git) Tip(ctx context.Context, src gitsync.Source) (string, error) {
	if err := wait(ctx, src); err != nil {
		return "", err
	}
	return g.Syncer.Tip(ctx, src)
}

func (g git) MergePull(
	ctx context.Context,
	src gitsync.Source,
	p gitsync.PullRequest,
) (intent.Revision, gitsync.Report, error) {
	if err := wait(ctx, src); err != nil {
		return intent.Revision{}, gitsync.Report{Command: "git fetch " + src.URL}, err
	}
	return g.Syncer.MergePull(ctx, src, p)
}

// model is main.cf of the repository that rich environments are bound to; its twelfth line sets content.
const model = `import web

web::Site(
    name="shop",
    page="""
<h1>Welcome</h1>
""",
)

implementation site for web::Site:
    file = fs::File(
        content = page
    )
end
`

// mirrorModel puts the repository of rich environments, which has one commit, where a server looks for its mirror. It
// returns the commit, which is always the same.
func mirrorModel(ctx context.Context, log *slog.Logger, dir string) (commit string, err error) {
	work := filepath.Join(dir, "model")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "main.cf"), []byte(model), 0o644); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "main.cf"},
		{"commit", "--quiet", "--no-gpg-sign", "--message=A page"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=Noor Haddad", "GIT_AUTHOR_EMAIL=noor@example.com",
			"GIT_AUTHOR_DATE=2026-11-20T09:00:00Z", "GIT_COMMITTER_NAME=forge",
			"GIT_COMMITTER_EMAIL=forge@example.com", "GIT_COMMITTER_DATE=2026-11-20T09:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	syncer, err := gitsync.New(gitsync.Config{Mirrors: filepath.Join(dir, "mirrors"), Logger: log})
	if err != nil {
		return "", err
	}
	rev, _, err := syncer.Fetch(ctx, gitsync.Source{URL: work, Branch: "main"})
	if err != nil {
		return "", err
	}
	of := gitsync.Source{URL: RepositoryURL, Trust: gitsync.Trust{Scope: projectID.String()}}
	return rev.Commit, os.Rename(syncer.MirrorPath(work), syncer.MirrorOf(of))
}

// blaming is a git whose lookups of authors a test may delay.
type blaming struct {
	git
	server *Server
}

func (b blaming) Blame(ctx context.Context, src gitsync.Source, commit, path string) (provenance.Blame, error) {
	if b.server.Blaming != nil {
		b.server.Blaming(path)
	}
	return b.git.Blame(ctx, src, commit, path)
}
