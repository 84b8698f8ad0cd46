package server

import (
	"context"
	"fmt"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// git fits gitsync to what control asks for.
type git struct{ syncer *gitsync.Syncer }

func (g git) Split(url string) (control.GitSource, error) {
	s, err := gitsync.ParseSource(url)
	return control.GitSource{URL: s.URL, Branch: s.Branch, Username: s.Credentials.Username, Password: s.Credentials.Password}, err
}

func (g git) Mirrored(url string) bool { return g.syncer.Mirrored(url) }

func (g git) Fetch(ctx context.Context, s control.GitSource) (intent.Revision, control.Step, error) {
	rev, report, err := g.syncer.Fetch(ctx, source(s))
	return rev, control.Step{Command: report.Command, Output: lines(report.Output)}, err
}

func (g git) Checkout(ctx context.Context, s control.GitSource, commit, dir string) (control.Step, error) {
	report, err := g.syncer.Checkout(ctx, source(s), commit, dir)
	return control.Step{Command: report.Command, Output: lines(report.Output)}, err
}

func (g git) Blame(ctx context.Context, s control.GitSource, commit, path string) (provenance.Blame, error) {
	return g.syncer.Blame(ctx, source(s), commit, path)
}

func source(s control.GitSource) gitsync.Source {
	return gitsync.Source{URL: s.URL, Branch: s.Branch, Credentials: gitsync.Credentials{Username: s.Username, Password: s.Password}}
}

// lines ends a text with a line break, when there is any text.
func lines(text string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text
	}
	return fmt.Sprintln(text)
}
