package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// gitLab is a project on GitLab.
type gitLab struct {
	client  *gitlab.Client
	project string
}

func newGitLab(cfg Config, where place, client *http.Client) (Forge, error) {
	base := where.api
	if base == nil {
		base = where.web
	}
	// The worker repeats what fails, with pauses that the record knows.
	c, err := gitlab.NewClient(cfg.Token, gitlab.WithBaseURL(base.String()), gitlab.WithHTTPClient(client),
		gitlab.WithoutRetries(), gitlab.WithUserAgent(cfg.UserAgent))
	if err != nil {
		return nil, fault.Wrap("forge.New", fault.Invalid, err).Say("the base of the forge's API is malformed")
	}
	return &gitLab{client: c, project: where.path}, nil
}

func (g *gitLab) explain(op, what string, r *gitlab.Response, err error) error {
	var plain *http.Response
	if r != nil {
		plain = r.Response
	}
	return explain(op, what, plain, err)
}

func codeOf(r *gitlab.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}

// SetStatus implements Forge.
func (g *gitLab) SetStatus(ctx context.Context, s Status) error {
	state := map[intent.CommitState]gitlab.BuildStateValue{
		intent.CommitPending: gitlab.Running, intent.CommitSuccess: gitlab.Success, intent.CommitFailure: gitlab.Failed,
		intent.CommitCancelled: gitlab.Canceled,
	}[s.State]
	_, answer, err := g.client.Commits.SetCommitStatus(g.project, s.Commit, &gitlab.SetCommitStatusOptions{
		State: state, Name: &s.Context, TargetURL: optional(s.URL), Description: gitlab.Ptr(limit(s.Description, 255)),
	}, gitlab.WithContext(ctx))
	if err != nil && codeOf(answer) == http.StatusBadRequest &&
		strings.Contains(err.Error(), "Cannot transition status") {
		return nil // GitLab's word for: it says so already
	}
	return g.explain("forge.SetStatus", "the status of "+short(s.Commit)+" was not set", answer, err)
}

// UpsertComment implements Forge.
func (g *gitLab) UpsertComment(ctx context.Context, c Comment) (string, error) {
	const op, what = "forge.UpsertComment", "the comment was not written"
	number := int64(c.Number)
	edit := func(id int64) (bool, error) {
		_, answer, err := g.client.Notes.UpdateMergeRequestNote(g.project, number, id,
			&gitlab.UpdateMergeRequestNoteOptions{Body: &c.Body}, gitlab.WithContext(ctx))
		if notOurs(codeOf(answer)) {
			return false, nil
		}
		return err == nil, g.explain(op, what, answer, err)
	}
	if id, err := strconv.ParseInt(c.ID, 10, 64); err == nil {
		if done, err := edit(id); done || err != nil {
			return c.ID, err
		}
	}
	list := &gitlab.ListMergeRequestNotesOptions{ListOptions: gitlab.ListOptions{PerPage: 100}}
	for range maxPages {
		found, answer, err := g.client.Notes.ListMergeRequestNotes(g.project, number, list, gitlab.WithContext(ctx))
		if err != nil {
			return "", g.explain(op, what, answer, err)
		}
		for _, one := range found {
			if one == nil || one.System || !strings.HasPrefix(one.Body, c.Marker) {
				continue
			}
			if done, err := edit(one.ID); done || err != nil {
				return strconv.FormatInt(one.ID, 10), err
			}
		}
		if list.Page = answer.NextPage; list.Page == 0 {
			break
		}
	}
	made, answer, err := g.client.Notes.CreateMergeRequestNote(g.project, number,
		&gitlab.CreateMergeRequestNoteOptions{Body: &c.Body}, gitlab.WithContext(ctx))
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	return strconv.FormatInt(made.ID, 10), nil
}

// Pull implements Forge.
func (g *gitLab) Pull(ctx context.Context, number int) (Pull, error) {
	const op = "forge.Pull"
	found, answer, err := g.client.MergeRequests.GetMergeRequest(g.project, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.explain(op, fmt.Sprintf("merge request %d cannot be read", number), answer, err)
	}
	p := g.pull(&found.BasicMergeRequest)
	if p.State == intent.PullIsOpen && found.Author != nil {
		member, answer, err := g.client.ProjectMembers.GetInheritedProjectMember(g.project, found.Author.ID,
			gitlab.WithContext(ctx))
		switch {
		case err == nil:
			p.Trusted = member.State == "active" && member.AccessLevel >= gitlab.DeveloperPermissions
		case codeOf(answer) != http.StatusNotFound && codeOf(answer) != http.StatusForbidden:
			return Pull{}, g.explain(op, "what the author may do cannot be read", answer, err)
		}
	}
	return p.checked()
}

// Pulls implements Forge.
func (g *gitLab) Pulls(ctx context.Context, base string) ([]Pull, error) {
	found, answer, err := g.client.MergeRequests.ListProjectMergeRequests(
		g.project,
		&gitlab.ListProjectMergeRequestsOptions{
			ListOptions: gitlab.ListOptions{
				PerPage: 100,
			}, State: gitlab.Ptr("opened"), TargetBranch: &base, OrderBy: gitlab.Ptr("updated_at"),
			Sort: gitlab.Ptr("desc"),
		},
		gitlab.WithContext(ctx),
	)
	if err != nil {
		return nil, g.explain("forge.Pulls", "the merge requests cannot be listed", answer, err)
	}
	return pullsOf(found, g.pull), nil
}

func (g *gitLab) pull(m *gitlab.BasicMergeRequest) Pull {
	out := Pull{
		Number: int(m.IID), State: intent.PullIsOpen, Title: m.Title, URL: m.WebURL, Base: m.TargetBranch, Head: m.SHA,
		Fork: m.SourceProjectID == 0 || m.SourceProjectID != m.TargetProjectID, Conflicts: m.HasConflicts,
	}
	if m.Author != nil {
		out.Author = m.Author.Username
	}
	switch m.State {
	case "opened":
	case "merged":
		out.State = intent.PullIsMerged
	default: // closed, locked
		out.State = intent.PullIsClosed
	}
	return out
}

// Propose implements Forge. GitLab names the user of the token as the committer.
func (g *gitLab) Propose(ctx context.Context, r Proposal) (string, error) {
	const op = "forge.Propose"
	what := r.What + " was not made"
	var actions []*gitlab.CommitActionOptions
	for _, c := range r.Changes {
		a := &gitlab.CommitActionOptions{FilePath: &c.Path, Action: gitlab.Ptr(gitlab.FileUpdate)}
		switch {
		case c.Gone:
			a.Action = gitlab.Ptr(gitlab.FileDelete)
		case c.Was == "":
			a.Action = gitlab.Ptr(gitlab.FileCreate)
		}
		if !c.Gone {
			a.Content, a.Encoding = gitlab.Ptr(base64Of(c.Content)), gitlab.Ptr("base64")
		}
		actions = append(actions, a)
		if c.Chmod { // an action of its own, and ignored elsewhere
			actions = append(
				actions,
				&gitlab.CommitActionOptions{
					FilePath:        &c.Path,
					Action:          gitlab.Ptr(gitlab.FileChmod),
					ExecuteFilemode: &c.Executable,
				},
			)
		}
	}
	draft := &gitlab.CreateCommitOptions{
		Branch: &r.Branch, StartSHA: &r.Tip, CommitMessage: gitlab.Ptr(r.message()), Actions: actions,
		Force: gitlab.Ptr(true),
	}
	if who := r.author(); who != nil {
		draft.AuthorName, draft.AuthorEmail = &who.Name, &who.Email
	}
	_, answer, err := g.client.Commits.CreateCommit(g.project, draft, gitlab.WithContext(ctx))
	if err != nil {
		return "", g.explain(op, what, answer, err)
	}
	made, answer, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body, SourceBranch: &r.Branch, TargetBranch: &r.Base,
		RemoveSourceBranch: gitlab.Ptr(true),
	}, gitlab.WithContext(ctx))
	if codeOf(answer) == http.StatusConflict {
		open, _, listed := g.client.MergeRequests.ListProjectMergeRequests(
			g.project,
			&gitlab.ListProjectMergeRequestsOptions{
				State: gitlab.Ptr("opened"), SourceBranch: &r.Branch, TargetBranch: &r.Base},
			gitlab.WithContext(ctx),
		)
		if listed == nil && len(open) > 0 {
			return cut(open[0].WebURL), nil
		}
	}
	if err != nil {
		return "", g.explain(op, "the merge request of "+what, answer, err)
	}
	return cut(made.WebURL), nil
}

// Protected implements Forge. GitLab protects the default branch of every project and lets maintainers push to it: what
// counts is what the token may do.
func (g *gitLab) Protected(ctx context.Context, branch string) (bool, error) {
	found, answer, err := g.client.Branches.GetBranch(g.project, branch, gitlab.WithContext(ctx))
	if err != nil {
		what := fmt.Sprintf("the branch %q cannot be read", cut(branch))
		return false, g.explain("forge.Protected", what, answer, err)
	}
	return found.Protected && !found.CanPush, nil
}

// Refs implements Forge.
func (g *gitLab) Refs(number int) (head, merge string) {
	return fmt.Sprintf("refs/merge-requests/%d/head", number), fmt.Sprintf("refs/merge-requests/%d/merge", number)
}
