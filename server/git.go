package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/gitsync/signers"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/control"
)

// git fits gitsync to what control asks for.
type git struct {
	syncer *gitsync.Syncer
}

func (g git) Split(url string) (control.GitSource, error) {
	s, err := gitsync.ParseSource(url)
	return control.GitSource{
		URL:      s.URL,
		Branch:   s.Branch,
		Username: s.Credentials.Username,
		Password: s.Credentials.Password,
	}, err
}

func (g git) CheckBranch(branch string) error { return gitsync.CheckBranch(branch) }

func (g git) Mirrored(s control.GitSource) bool { return g.syncer.Mirrored(source(s)) }

func (g git) Tidy(ctx context.Context, used []control.GitUse, since time.Time) error {
	uses := make([]gitsync.Use, len(used))
	for i, u := range used {
		uses[i] = gitsync.Use{Source: source(u.GitSource), Commits: u.Commits}
	}
	return g.syncer.Tidy(ctx, uses, since)
}

func (g git) Fetch(ctx context.Context, s control.GitSource) (intent.Revision, control.Step, error) {
	rev, report, err := g.syncer.Fetch(ctx, source(s))
	return rev, control.Step{Command: report.Command, Output: report.Output}, err
}

func (g git) Tip(ctx context.Context, s control.GitSource) (string, error) {
	return g.syncer.Tip(ctx, source(s))
}

func (g git) Changed(ctx context.Context, s control.GitSource, from, to string, visit func(string) bool) error {
	return g.syncer.Changed(ctx, source(s), from, to, visit)
}

func (g git) CheckSigners(text string) error {
	_, err := signers.Parse(text)
	return err
}

func (g git) Verify(
	ctx context.Context,
	s control.GitSource,
	rev intent.Revision,
	p intent.GitPolicy,
) (intent.Signer, error) {
	return g.syncer.Verify(ctx, source(s), rev, p)
}

func (g git) Checkout(ctx context.Context, s control.GitSource, commit, dir string) (control.Step, error) {
	report, err := g.syncer.Checkout(ctx, source(s), commit, dir)
	return control.Step{Command: report.Command, Output: report.Output}, err
}

func (g git) MergePull(
	ctx context.Context,
	s control.GitSource,
	p control.GitPull,
) (intent.Revision, control.Step, error) {
	rev, report, err := g.syncer.MergePull(ctx, source(s), gitsync.PullRequest(p))
	return rev, control.Step{Command: report.Command, Output: report.Output}, err
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

func source(s control.GitSource) gitsync.Source {
	return gitsync.Source{
		URL: s.URL, Branch: s.Branch, Abbreviated: s.Abbreviated, Depth: s.Depth, Only: s.Only, Submodules: s.Submodules, MaxFile: s.MaxFile,
		Credentials: gitsync.Credentials{
			Username:      s.Username,
			Password:      s.Password,
			SSHKey:        s.SSHKey,
			SSHPassphrase: s.SSHPassphrase,
		},
		Trust: gitsync.Trust{
			KnownHosts: s.KnownHosts, AcceptNew: s.AcceptNew, Scope: s.Project.String(), CABundle: s.CABundle, Proxy: s.Proxy,
		},
	}
}

// learnHostKey remembers the key of an SSH server for a project.
func (s *Server) learnHostKey(scope, line string) error {
	project, err := uuid.Parse(scope)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.control.LearnHostKey(ctx, project, line)
}
