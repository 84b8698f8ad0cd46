package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-github/v84/github"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// gitHub is a repository on GitHub or a GitHub Enterprise server.
type gitHub struct {
	client      *github.Client
	owner, name string
}

func newGitHub(cfg Config, where place, client *http.Client) (Forge, error) {
	c := github.NewClient(client).WithAuthToken(cfg.Token)
	c.UserAgent = cfg.UserAgent
	if base := where.api; base != nil || where.host != "github.com" {
		if base == nil {
			base = where.web
		}
		var err error
		if c, err = c.WithEnterpriseURLs(base.String(), base.String()); err != nil {
			return nil, fault.Wrap("forge.New", fault.Invalid, err).Say("the base of the forge's API is malformed")
		}
	}
	return &gitHub{client: c, owner: where.owner, name: where.name}, nil
}

// plainAnswer is the HTTP answer inside of a client's; nil when there was none.
func (g *gitHub) explain(op, what string, r *github.Response, err error) error {
	var plain *http.Response
	if r != nil {
		plain = r.Response
	}
	return explain(op, what, plain, err)
}

// SetStatus implements Forge.
func (g *gitHub) SetStatus(ctx context.Context, s Status) error {
	state := string(s.State)
	if s.State == intent.CommitCancelled {
		state = "error"
	}
	_, answer, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.name, s.Commit, github.RepoStatus{
		State: &state, TargetURL: optional(s.URL), Description: github.Ptr(limit(s.Description, 140)),
		Context: &s.Context,
	})
	return g.explain("forge.SetStatus", "the status of "+short(s.Commit)+" was not set", answer, err)
}

// UpsertComment implements Forge.
func (g *gitHub) UpsertComment(ctx context.Context, c Comment) (string, error) {
	const op, what = "forge.UpsertComment", "the comment was not written"
	edit := func(id int64) (bool, error) {
		_, answer, err := g.client.Issues.EditComment(ctx, g.owner, g.name, id, &github.IssueComment{Body: &c.Body})
		if answer != nil && notOurs(answer.StatusCode) {
			return false, nil
		}
		return err == nil, g.explain(op, what, answer, err)
	}
	if id, err := strconv.ParseInt(c.ID, 10, 64); err == nil {
		if done, err := edit(id); done || err != nil {
			return c.ID, err
		}
	}
	list := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	for range maxPages {
		found, answer, err := g.client.Issues.ListComments(ctx, g.owner, g.name, c.Number, list)
		if err != nil {
			return "", g.explain(op, what, answer, err)
		}
		for _, one := range found {
			if !strings.HasPrefix(one.GetBody(), c.Marker) {
				continue
			}
			if done, err := edit(one.GetID()); done || err != nil {
				return strconv.FormatInt(one.GetID(), 10), err
			}
		}
		if list.Page = answer.NextPage; list.Page == 0 {
			break
		}
	}
	made, answer, err := g.client.Issues.CreateComment(ctx, g.owner, g.name, c.Number,
		&github.IssueComment{Body: &c.Body})
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	return strconv.FormatInt(made.GetID(), 10), nil
}

// Pull implements Forge.
func (g *gitHub) Pull(ctx context.Context, number int) (Pull, error) {
	const op = "forge.Pull"
	found, answer, err := g.client.PullRequests.Get(ctx, g.owner, g.name, number)
	if err != nil {
		return Pull{}, g.explain(op, fmt.Sprintf("pull request %d cannot be read", number), answer, err)
	}
	p := g.pull(found)
	if p.State == intent.PullIsOpen && p.Author != "" {
		level, answer, err := g.client.Repositories.GetPermissionLevel(ctx, g.owner, g.name, p.Author)
		switch {
		case err == nil:
			p.Trusted = level.GetPermission() == "admin" || level.GetPermission() == "write"
		case answer == nil || answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusForbidden:
			return Pull{}, g.explain(op, "what the author may do cannot be read", answer, err)
		}
	}
	return p.checked()
}

// Pulls implements Forge.
func (g *gitHub) Pulls(ctx context.Context, base string) ([]Pull, error) {
	found, answer, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "open", Base: base, Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return nil, g.explain("forge.Pulls", "the pull requests cannot be listed", answer, err)
	}
	return pullsOf(found, g.pull), nil
}

// pullsOf keeps those that are complete.
func pullsOf[T any](found []T, pull func(T) Pull) (out []Pull) {
	for _, one := range found {
		if p, err := pull(one).checked(); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func (g *gitHub) pull(p *github.PullRequest) Pull {
	out := Pull{
		Number: p.GetNumber(), State: intent.PullIsOpen, Title: p.GetTitle(), URL: p.GetHTMLURL(),
		Author: p.GetUser().GetLogin(),
		Base:   p.GetBase().GetRef(), Head: p.GetHead().GetSHA(),
		// The repository of a head that was deleted is nobody's that we know.
		Fork:      p.GetHead().GetRepo().GetID() == 0 || p.GetHead().GetRepo().GetID() != p.GetBase().GetRepo().GetID(),
		Conflicts: p.Mergeable != nil && !p.GetMergeable(),
	}
	switch {
	case p.GetMerged() || p.MergedAt != nil:
		out.State = intent.PullIsMerged
	case p.GetState() != "open":
		out.State = intent.PullIsClosed
	}
	return out
}

// Propose implements Forge.
func (g *gitHub) Propose(ctx context.Context, r Proposal) (string, error) {
	const op = "forge.Propose"
	what := r.What + " was not made"
	tip, answer, err := g.client.Git.GetCommit(ctx, g.owner, g.name, r.Tip)
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	var entries []*github.TreeEntry
	for _, c := range r.Changes {
		e := &github.TreeEntry{Path: &c.Path, Mode: github.Ptr("100644"), Type: github.Ptr("blob")}
		if c.Executable {
			e.Mode = github.Ptr("100755")
		}
		if !c.Gone {
			blob, answer, err := g.client.Git.CreateBlob(ctx, g.owner, g.name,
				github.Blob{Content: github.Ptr(base64Of(c.Content)), Encoding: github.Ptr("base64")})
			if err != nil {
				return "", g.explain(op, what, answer, err)
			}
			e.SHA = blob.SHA
		}
		entries = append(entries, e)
	}
	tree, answer, err := g.client.Git.CreateTree(ctx, g.owner, g.name, tip.GetTree().GetSHA(), entries)
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	draft := github.Commit{Message: github.Ptr(r.message()), Tree: tree, Parents: []*github.Commit{{SHA: &r.Tip}}}
	if who := r.author(); who != nil {
		committer := gitsync.Ordain
		draft.Author = &github.CommitAuthor{Name: &who.Name, Email: &who.Email}
		draft.Committer = &github.CommitAuthor{Name: &committer.Name, Email: &committer.Email}
	}
	commit, answer, err := g.client.Git.CreateCommit(ctx, g.owner, g.name, draft, nil)
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	ref := "refs/heads/" + r.Branch
	_, answer, err = g.client.Git.CreateRef(ctx, g.owner, g.name, github.CreateRef{Ref: ref, SHA: commit.GetSHA()})
	if answer != nil && answer.StatusCode == http.StatusUnprocessableEntity { // it is there, of an attempt before
		_, answer, err = g.client.Git.UpdateRef(ctx, g.owner, g.name, ref,
			github.UpdateRef{SHA: commit.GetSHA(), Force: github.Ptr(true)})
	}
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	made, answer, err := g.client.PullRequests.Create(ctx, g.owner, g.name,
		&github.NewPullRequest{Title: &r.Title, Body: &r.Body, Head: &r.Branch, Base: &r.Base})
	if answer != nil && answer.StatusCode == http.StatusUnprocessableEntity {
		open, _, listed := g.client.PullRequests.List(ctx, g.owner, g.name,
			&github.PullRequestListOptions{State: "open", Base: r.Base, Head: g.owner + ":" + r.Branch})
		if listed == nil && len(open) > 0 {
			return cut(open[0].GetHTMLURL()), nil
		}
	}
	if err != nil {
		return "", g.explain(op, "the pull request of "+what, answer, err)
	}
	return cut(made.GetHTMLURL()), nil
}

// Protected implements Forge. A branch is protected by a rule of its own, or by a ruleset that lets no commit
// come directly.
func (g *gitHub) Protected(ctx context.Context, branch string) (bool, error) {
	const op = "forge.Protected"
	what := fmt.Sprintf("the branch %q cannot be read", cut(branch))
	found, answer, err := g.client.Repositories.GetBranch(ctx, g.owner, g.name, branch, 1)
	if err != nil {
		return false, g.explain(op, what, answer, err)
	}
	if found.GetProtected() {
		return true, nil
	}
	rules, answer, err := g.client.Repositories.GetRulesForBranch(ctx, g.owner, g.name, branch, nil)
	if answer != nil && answer.StatusCode == http.StatusNotFound {
		return false, nil // a server that is older than rulesets
	}
	if err != nil {
		return false, g.explain(op, what, answer, err)
	}
	return len(rules.PullRequest)+len(rules.Update)+len(rules.RequiredStatusChecks)+len(rules.MergeQueue) > 0, nil
}

// Refs implements Forge.
func (g *gitHub) Refs(number int) (head, merge string) {
	return fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprintf("refs/pull/%d/merge", number)
}
