package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// giteaForge is a repository on Gitea or Forgejo. Their client keeps the
// context of a call, so each call has a client of its own.
type giteaForge struct {
	base, token, agent string
	http               *http.Client
	owner, name        string
}

func newGitea(cfg Config, where place, client *http.Client) (Forge, error) {
	base := where.api
	if base == nil {
		base = where.web
	}
	text := strings.TrimSuffix(strings.TrimSuffix(base.String(), "/"), "/api/v1")
	return &giteaForge{
		base:  text,
		token: cfg.Token,
		agent: cfg.UserAgent,
		http:  client,
		owner: where.owner,
		name:  where.name,
	}, nil
}

func (g *giteaForge) client(ctx context.Context) (*gitea.Client, error) {
	// What is called here is in all versions that are still used.
	c, err := gitea.NewClient(g.base, gitea.SetContext(ctx), gitea.SetHTTPClient(g.http), gitea.SetToken(g.token),
		gitea.SetUserAgent(g.agent), gitea.SetGiteaVersion(""))
	if err != nil {
		return nil, fault.Wrap("forge.New", fault.Invalid, err).Say("the base of the forge's API is malformed")
	}
	return c, nil
}

func (g *giteaForge) explain(op, what string, r *gitea.Response, err error) error {
	var plain *http.Response
	if r != nil {
		plain = r.Response
	}
	return explain(op, what, plain, err)
}

func giteaCode(r *gitea.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}

// SetStatus implements Forge.
func (g *giteaForge) SetStatus(ctx context.Context, s Status) error {
	c, err := g.client(ctx)
	if err != nil {
		return err
	}
	state := gitea.StatusState(s.State)
	if s.State == intent.CommitCancelled {
		state = gitea.StatusWarning
	}
	_, answer, err := c.CreateStatus(
		g.owner,
		g.name,
		s.Commit,
		gitea.CreateStatusOption{
			State:       state,
			TargetURL:   s.URL,
			Description: limit(s.Description, 255),
			Context:     s.Context,
		},
	)
	return g.explain("forge.SetStatus", "the status of "+short(s.Commit)+" was not set", answer, err)
}

// UpsertComment implements Forge.
func (g *giteaForge) UpsertComment(ctx context.Context, want Comment) (string, error) {
	const op, what = "forge.UpsertComment", "the comment was not written"
	c, err := g.client(ctx)
	if err != nil {
		return "", err
	}
	edit := func(id int64) (bool, error) {
		_, answer, err := c.EditIssueComment(g.owner, g.name, id, gitea.EditIssueCommentOption{Body: want.Body})
		if notOurs(giteaCode(answer)) {
			return false, nil
		}
		return err == nil, g.explain(op, what, answer, err)
	}
	if id, err := strconv.ParseInt(want.ID, 10, 64); err == nil {
		if done, err := edit(id); done || err != nil {
			return want.ID, err
		}
	}
	// All comments of one issue come at once.
	found, answer, err := c.ListIssueComments(g.owner, g.name, int64(want.Number), gitea.ListIssueCommentOptions{})
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	for _, one := range found {
		if one == nil || !strings.HasPrefix(one.Body, want.Marker) {
			continue
		}
		if done, err := edit(one.ID); done || err != nil {
			return strconv.FormatInt(one.ID, 10), err
		}
	}
	made, answer, err := c.CreateIssueComment(g.owner, g.name, int64(want.Number),
		gitea.CreateIssueCommentOption{Body: want.Body})
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	return strconv.FormatInt(made.ID, 10), nil
}

// Pull implements Forge.
func (g *giteaForge) Pull(ctx context.Context, number int) (Pull, error) {
	const op = "forge.Pull"
	c, err := g.client(ctx)
	if err != nil {
		return Pull{}, err
	}
	found, answer, err := c.GetPullRequest(g.owner, g.name, int64(number))
	if err != nil {
		return Pull{}, g.explain(op, fmt.Sprintf("pull request %d cannot be read", number), answer, err)
	}
	p := g.pull(found)
	if p.State == intent.PullIsOpen && p.Author != "" {
		level, answer, err := c.CollaboratorPermission(g.owner, g.name, p.Author)
		switch {
		case err == nil && level != nil:
			switch level.Permission {
			case gitea.AccessModeWrite, gitea.AccessModeAdmin, gitea.AccessModeOwner:
				p.Trusted = true
			}
		case giteaCode(answer) != http.StatusNotFound && giteaCode(answer) != http.StatusForbidden:
			return Pull{}, g.explain(op, "what the author may do cannot be read", answer, err)
		}
	}
	return p.checked()
}

// Pulls implements Forge.
func (g *giteaForge) Pulls(ctx context.Context, base string) ([]Pull, error) {
	c, err := g.client(ctx)
	if err != nil {
		return nil, err
	}
	found, answer, err := c.ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
		ListOptions: gitea.ListOptions{PageSize: 50}, State: gitea.StateOpen, Sort: "recentupdate",
	})
	if err != nil {
		return nil, g.explain("forge.Pulls", "the pull requests cannot be listed", answer, err)
	}
	var out []Pull
	for _, p := range pullsOf(found, g.pull) {
		if p.Base == base {
			out = append(out, p)
		}
	}
	return out, nil
}

func (g *giteaForge) pull(p *gitea.PullRequest) Pull {
	out := Pull{
		Number:    int(p.Index),
		State:     intent.PullIsOpen,
		Title:     p.Title,
		URL:       p.HTMLURL,
		Conflicts: !p.Mergeable,
		Fork:      true,
	}
	if p.Poster != nil {
		out.Author = p.Poster.UserName
	}
	if p.Base != nil {
		out.Base = p.Base.Ref
	}
	if p.Head != nil {
		out.Head = p.Head.Sha
	}
	if p.Base != nil && p.Head != nil {
		out.Fork = p.Head.RepoID == 0 || p.Head.RepoID != p.Base.RepoID
	}
	switch {
	case p.HasMerged:
		out.State = intent.PullIsMerged
	case p.State != gitea.StateOpen:
		out.State = intent.PullIsClosed
	}
	return out
}

// Propose implements Forge.
func (g *giteaForge) Propose(ctx context.Context, r Proposal) (string, error) {
	const op = "forge.Propose"
	what := r.What + " was not made"
	c, err := g.client(ctx)
	if err != nil {
		return "", err
	}
	var files []*gitea.ChangeFileOperation
	var modes []string
	for _, one := range r.Changes {
		f := &gitea.ChangeFileOperation{
			Operation: "update",
			Path:      one.Path,
			Content:   base64Of(one.Content),
			SHA:       one.Was,
		}
		switch {
		case one.Gone:
			f.Operation, f.Content = "delete", ""
		case one.Was == "":
			f.Operation = "create"
		}
		files = append(files, f)
		if one.Chmod {
			mode := " is not executable"
			if one.Executable {
				mode = " is executable"
			}
			modes = append(modes, "- `"+Code(one.Path)+"`"+mode)
		}
	}
	if len(modes) > 0 {
		r.Body += "\n\nThe forge lets other programs set no modes of files. Set these before this is " +
			"merged:\n\n" + strings.Join(modes, "\n")
	}
	draft := gitea.ChangeFilesOptions{Files: files, Message: r.message(), Branch: r.Base, NewBranch: r.Branch}
	if who := r.author(); who != nil {
		draft.Author = gitea.Identity{Name: who.Name, Email: who.Email}
		draft.Committer = gitea.Identity{Name: gitsync.Ordain.Name, Email: gitsync.Ordain.Email}
	}
	_, answer, err := c.ChangeFiles(g.owner, g.name, draft)
	if code := giteaCode(answer); err != nil && code != http.StatusConflict && code != http.StatusUnprocessableEntity {
		return "", g.explain(op, what, answer, err)
	}
	made, answer, failed := c.CreatePullRequest(g.owner, g.name,
		gitea.CreatePullRequestOption{Head: r.Branch, Base: r.Base, Title: r.Title, Body: r.Body})
	if giteaCode(answer) == http.StatusConflict { // of an attempt before
		if open, _, listed := c.GetPullRequestByBaseHead(g.owner, g.name, r.Base, r.Branch); listed == nil &&
			open.State == gitea.StateOpen {
			return cut(open.HTMLURL), nil
		}
	}
	if failed != nil && err != nil {
		return "", g.explain(op, what, answer, err)
	}
	if failed != nil {
		return "", g.explain(op, "the pull request of "+what, answer, failed)
	}
	return cut(made.HTMLURL), nil
}

// Protected implements Forge. It counts what the user of the token may do.
func (g *giteaForge) Protected(ctx context.Context, branch string) (bool, error) {
	c, err := g.client(ctx)
	if err != nil {
		return false, err
	}
	found, answer, err := c.GetRepoBranch(g.owner, g.name, branch)
	if err != nil {
		what := fmt.Sprintf("the branch %q cannot be read", cut(branch))
		return false, g.explain("forge.Protected", what, answer, err)
	}
	return found.Protected && !found.UserCanPush, nil
}

// Refs implements Forge. Gitea makes no merge that can be fetched.
func (g *giteaForge) Refs(number int) (head, merge string) {
	return fmt.Sprintf("refs/pull/%d/head", number), ""
}
