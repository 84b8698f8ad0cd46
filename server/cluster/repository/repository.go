// Package repository is how the verbs about clusters read and write an environment's
// repository: through the mirrors of gitsync, and through the forge where a branch is
// protected.
package repository

import (
	"context"
	"errors"
	"path"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/source"
)

// Config has what a Repository needs; all of it is required.
type Config struct {
	Git interface {
		Read(ctx context.Context, src gitsync.Source, commit, path string) (gitsync.File, error)
		List(ctx context.Context, src gitsync.Source, commit, dir string) (gitsync.Listing, error)
	}
	Sources *source.Opener
	Forge   *forge.Service
}

// Repository reads and writes files of environments. It is safe for concurrent use.
type Repository struct{ c Config }

var _ cluster.Repository = (*Repository)(nil)

// New makes a Repository.
func New(c Config) (*Repository, error) {
	if c.Git == nil || c.Sources == nil || c.Forge == nil {
		return nil, errors.New("repository.New: a part of the configuration is missing")
	}
	return &Repository{c}, nil
}

// Tip returns the newest commit of the environment's branch, and a file of it; nil: it has no such file.
func (r *Repository) Tip(ctx context.Context, e intent.Environment, file string) (string, []byte, error) {
	src, err := r.c.Sources.Of(ctx, e)
	if err != nil {
		return "", nil, err
	}
	at := below(e, file)
	// The folder is listed first: that a file is not there is told apart from everything else that may be wrong.
	folder, err := r.c.Git.List(ctx, src, "", path.Dir(at))
	if err != nil {
		return "", nil, err
	}
	for _, entry := range folder.Entries {
		if entry.Name == path.Base(at) {
			found, err := r.c.Git.Read(ctx, src, folder.Commit, at)
			return folder.Commit, nonNil(found.Content), err
		}
	}
	return folder.Commit, nil, nil
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// below returns the path of a file from the top of the repository.
func below(e intent.Environment, file string) string {
	return strings.TrimPrefix(path.Join(e.Source.Subdir, file), "/")
}

// Commit writes a file in the name of the person who asks.
func (r *Repository) Commit(ctx context.Context, e intent.Environment, c cluster.Change) (cluster.Written, error) {
	author := gitsync.Ordain
	if name := access.Of(ctx).Name; name != "" {
		author = gitsync.Identity{Name: name, Email: mailOf(name)}
	}
	message := c.Title
	if body := strings.TrimSpace(c.Body); body != "" {
		message += "\n\n" + body
	}
	name := strings.TrimSuffix(path.Base(c.Path), path.Ext(c.Path))
	written, err := r.c.Forge.Commit(ctx, e, forge.Write{
		Topic: "cluster-" + name, Base: c.Base, Author: author, Message: message + "\n",
		Files: []gitsync.FileChange{{Path: below(e, c.Path), Content: c.Content}}, Title: c.Title, Body: fenced(c.Body),
	})
	return cluster.Written{Commit: written.Commit, Branch: written.Branch, PullRequest: written.PullRequest}, err
}

// fenced shows a plan as it is in a pull request.
func fenced(body string) string {
	if strings.TrimSpace(body) == "" {
		return ""
	}
	return "```\n" + strings.TrimSpace(body) + "\n```\n"
}

// mailOf returns the address that commits of a person carry: the name, if it is one, else one that reaches nobody.
func mailOf(name string) string {
	if strings.Contains(name, "@") {
		return name
	}
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	return clean + "@users.ordain.invalid"
}
