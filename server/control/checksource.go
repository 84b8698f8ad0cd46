package control

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/source"
)

// Remotes reads repositories where they are; *gitsync.Syncer implements it.
type Remotes interface {
	// Tip asks which commit the branch of a source points to, and fetches nothing.
	Tip(ctx context.Context, src gitsync.Source) (string, error)
	// Read fetches a branch and reads a file at its tip; NotFound when there is none.
	Read(ctx context.Context, src gitsync.Source, commit, path string) (gitsync.File, error)
}

// A repository must answer within this time, and be fetched within that. What takes longer is left to the first
// compile, which shows how far it is.
const (
	answerTime = 20 * time.Second
	fetchTime  = 20 * time.Second
)

// SourceField is the part of a source that a SourceProblem is about, as the forms call it.
type SourceField string

// The parts of a source.
const (
	FieldRepository SourceField = "repository"
	FieldBranch     SourceField = "branch"
	FieldSubdir     SourceField = "subdir"
)

// SourceProblem says which part of the source of a new environment is wrong.
type SourceProblem struct {
	Field SourceField
	Err   error
}

func (p *SourceProblem) Error() string { return p.Err.Error() }
func (p *SourceProblem) Unwrap() error { return p.Err }

// CheckSource looks into the repository of a new environment: it answers, it has the branch, and there is a project in
// the folder. It returns a *SourceProblem. The new environment is checked first, so that the sender cannot make the
// server connect to what they could not bind an environment to. It costs nothing twice: the first compile fetches
// into the same mirror.
func (c *Control) CheckSource(ctx context.Context, n NewEnvironment) error {
	n, err := c.checkNew(ctx, n)
	if err != nil || n.Environment.Source.URL == "" || c.cfg.Remotes == nil {
		return err
	}
	src, err := c.sourceOf(ctx, n)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := c.cfg.Remotes.Tip(asking, src); err != nil {
		if fault.Is(err, fault.NotFound) && src.Branch != "" {
			whole := src
			whole.Branch = ""
			if _, other := c.cfg.Remotes.Tip(asking, whole); other == nil || fault.Is(other, fault.NotFound) {
				return &SourceProblem{FieldBranch, err}
			}
		}
		return &SourceProblem{FieldRepository, err}
	}
	file := path.Join(n.Environment.Source.Subdir, "project.yml")
	fetching, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	_, err = c.cfg.Remotes.Read(fetching, src, "", file)
	switch {
	case err == nil, ctx.Err() == nil && errors.Is(fetching.Err(), context.DeadlineExceeded):
		return nil
	case fault.Is(err, fault.NotFound):
		return &SourceProblem{FieldSubdir, fault.New("control.CheckSource", fault.Invalid,
			"the repository has no "+file).
			Hint("name the folder of the repository that holds project.yml; commit one if there is none yet")}
	}
	return &SourceProblem{FieldRepository, err}
}

// sourceOf returns how the repository of a new environment is reached: with the secrets that come with it, and those
// of its project.
func (c *Control) sourceOf(ctx context.Context, n NewEnvironment) (gitsync.Source, error) {
	e := n.Environment
	src, secrets := source.Plain(e), map[string]string{}
	if e.ProjectID != uuid.Nil {
		hosts, err := c.cfg.Store.KnownHosts(ctx, e.ProjectID)
		if err != nil {
			return src, err
		}
		src.Trust.KnownHosts = source.JoinLines(src.Trust.KnownHosts, hosts)
		if secrets, err = c.cfg.Sources.ProjectSecrets(ctx, e.ProjectID); err != nil {
			return src, err
		}
	}
	for name, value := range n.Secrets {
		secrets[name] = value
	}
	source.Authorize(&src, secrets)
	return src, nil
}
