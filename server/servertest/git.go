package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/gitsync/signers"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/control"
)

// git is a real Git without a network: a fetch from another machine waits until it is given up.
type git struct{ syncer *gitsync.Syncer }

func source(s control.GitSource) gitsync.Source { return gitsync.Source{URL: s.URL, Branch: s.Branch} }

func step(command, output string) control.Step { return control.Step{Command: command, Output: output} }

func (g git) Split(url string) (control.GitSource, error) {
	s, err := gitsync.ParseSource(url)
	return control.GitSource{
		URL: s.URL, Branch: s.Branch, Username: s.Credentials.Username, Password: s.Credentials.Password,
	}, err
}

func (g git) CheckBranch(branch string) error { return gitsync.CheckBranch(branch) }

func (g git) Mirrored(s control.GitSource) bool { return g.syncer.Mirrored(source(s)) }

func (g git) Tidy(context.Context, []control.GitUse, time.Time) error { return nil }

// remote waits for ctx to end when a source lies on another machine.
func remote(ctx context.Context, s control.GitSource) error {
	if filepath.IsAbs(s.URL) || strings.HasPrefix(s.URL, "file:") {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g git) Fetch(ctx context.Context, s control.GitSource) (intent.Revision, control.Step, error) {
	if err := remote(ctx, s); err != nil {
		return intent.Revision{}, step("git fetch "+s.URL, ""), err
	}
	rev, report, err := g.syncer.Fetch(ctx, source(s))
	return rev, step(report.Command, report.Output), err
}

func (g git) Tip(ctx context.Context, s control.GitSource) (string, error) {
	if err := remote(ctx, s); err != nil {
		return "", err
	}
	return g.syncer.Tip(ctx, source(s))
}

func (g git) Changed(ctx context.Context, s control.GitSource, from, to string, visit func(string) bool) error {
	return g.syncer.Changed(ctx, source(s), from, to, visit)
}

func (g git) Verify(
	ctx context.Context, s control.GitSource, rev intent.Revision, p intent.GitPolicy,
) (intent.Signer, error) {
	return g.syncer.Verify(ctx, source(s), rev, p)
}

func (g git) CheckSigners(text string) error {
	_, err := signers.Parse(text)
	return err
}

func (g git) Checkout(ctx context.Context, s control.GitSource, commit, dir string) (control.Step, error) {
	report, err := g.syncer.Checkout(ctx, source(s), commit, dir)
	return step(report.Command, report.Output), err
}

func (g git) MergePull(
	ctx context.Context, s control.GitSource, p control.GitPull,
) (intent.Revision, control.Step, error) {
	if err := remote(ctx, s); err != nil {
		return intent.Revision{}, step("git fetch "+s.URL, ""), err
	}
	rev, report, err := g.syncer.MergePull(ctx, source(s), gitsync.PullRequest(p))
	return rev, step(report.Command, report.Output), err
}

func (g git) Revert(ctx context.Context, s control.GitSource, commit string) (string, []control.GitChange, error) {
	tip, found, err := g.syncer.Revert(ctx, source(s), commit)
	var changes []control.GitChange
	for _, c := range found {
		changes = append(changes, control.GitChange(c))
	}
	return tip, changes, err
}

func (g git) Blame(ctx context.Context, s control.GitSource, commit, path string) (provenance.Blame, error) {
	return g.syncer.Blame(ctx, source(s), commit, path)
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
			"GIT_AUTHOR_NAME=Noor Haddad", "GIT_AUTHOR_EMAIL=noor@example.com", "GIT_AUTHOR_DATE=2026-11-20T09:00:00Z",
			"GIT_COMMITTER_NAME=forge", "GIT_COMMITTER_EMAIL=forge@example.com", "GIT_COMMITTER_DATE=2026-11-20T09:00:00Z")
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
	return rev.Commit, os.Rename(syncer.MirrorPath(work), syncer.MirrorPath(RepositoryURL))
}
