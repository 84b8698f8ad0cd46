package webhooks

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"ordain.dev/ordain/internal/intent"
)

// HeaderGitHubEvent names the event of a GitHub webhook.
const HeaderGitHubEvent = "X-GitHub-Event"

const headerGitHubDelivery = "X-GitHub-Delivery"

// github also reads what the hook of a bare repository sends (ordain hook send),
// and what Gitea and Forgejo send in GitHub's format.
var github = dialect{
	name:  "github",
	proof: func(h http.Header) (proof, error) { return signedBody(h, signaturePrefix, HeaderSignature) },
	parse: parseGitHub,
}

// hubRepository is a repository as GitHub, Gitea, Forgejo and Gogs describe it.
type hubRepository struct {
	FullName      string `json:"full_name"`
	CloneURL      string `json:"clone_url"`
	SSHURL        string `json:"ssh_url"`
	GitURL        string `json:"git_url"`
	HTMLURL       string `json:"html_url"`
	DefaultBranch string `json:"default_branch"`
}

func (r hubRepository) urls() []string { return []string{r.CloneURL, r.SSHURL, r.GitURL, r.HTMLURL} }

// hubUser is a user as they describe one.
type hubUser struct {
	Login    string
	Name     string
	Username string
}

func (u hubUser) shown() string {
	return firstOf(u.Login, u.Username, u.Name)
}

// hubPush is a push, or the creation or deletion of a ref.
type hubPush struct {
	Ref          string
	RefType      string `json:"ref_type"`
	Before       string
	After        string
	Sha          string // of what was created, Gitea
	Deleted      bool
	Forced       bool
	Repository   hubRepository
	Pusher       hubUser
	Sender       hubUser
	HeadCommit   *pushedCommit `json:"head_commit"`
	Commits      []pushedCommit
	TotalCommits *int `json:"total_commits"` // Gitea
}

// hubCommits is the most commits of a push that older GitHub servers list.
const hubCommits = 20

func (p hubPush) event(name string) Event {
	e := Event{
		Kind: kindOf(p.Ref), Name: name, Repository: p.Repository.FullName, URLs: p.Repository.urls(),
		DefaultBranch: p.Repository.DefaultBranch,
		Ref:           p.Ref, Before: p.Before, Commit: p.After, Deleted: p.Deleted || zeros(p.After),
		Sender: firstOf(p.Pusher.shown(), p.Sender.shown()),
	}
	if p.HeadCommit != nil {
		e.Subject = p.HeadCommit.Message
	} else if n := len(p.Commits); n > 0 && p.Commits[n-1].ID == p.After {
		e.Subject = p.Commits[n-1].Message
	}
	total := len(p.Commits)
	if p.TotalCommits != nil {
		total = *p.TotalCommits
	} else if total >= hubCommits {
		total = -1 // there may be more
	}
	if !p.Forced && !e.Deleted && !zeros(p.Before) {
		e.Paths = changedPaths(p.Commits, p.After, total)
	}
	return e
}

// created returns the event of a branch or tag that was created or deleted. Its Ref is a short name.
func (p hubPush) created(name string, deleted bool) (Event, error) {
	e := Event{
		Name: name, Repository: p.Repository.FullName, URLs: p.Repository.urls(),
		DefaultBranch: p.Repository.DefaultBranch, Commit: p.Sha, Deleted: deleted, Sender: p.Sender.shown(),
	}
	switch p.RefType {
	case "branch":
		e.Kind, e.Ref = intent.HookPush, branches+p.Ref
	case "tag":
		e.Kind, e.Ref = intent.HookTag, tags+p.Ref
	case "repository":
		e.Kind = intent.HookOther
	default:
		return e, errors.New("ref_type is neither branch nor tag")
	}
	return e, nil
}

// hubPull is an event about a pull request.
type hubPull struct {
	Action      string
	Number      int
	Repository  hubRepository
	Sender      hubUser
	PullRequest *struct {
		Number      int
		Title       string
		HTMLURL     string `json:"html_url"`
		Draft       bool
		Merged      bool
		User        hubUser
		Association string `json:"author_association"`
		Head        hubSide
		Base        hubSide
	} `json:"pull_request"`
}

type hubSide struct {
	Ref  string
	Sha  string
	Repo *hubRepository // nil when it was a fork that is deleted
}

func (s hubSide) side() intent.PullSide {
	side := intent.PullSide{Ref: s.Ref, Commit: s.Sha}
	if s.Repo != nil {
		side.URL = s.Repo.CloneURL
	}
	return side
}

var hubActions = map[string]intent.PullAction{
	"opened":             intent.PullOpened,
	"synchronize":        intent.PullUpdated,
	"synchronized":       intent.PullUpdated,
	"reopened":           intent.PullReopened,
	"edited":             intent.PullEdited,
	"labeled":            intent.PullEdited,
	"unlabeled":          intent.PullEdited,
	"ready_for_review":   intent.PullEdited,
	"converted_to_draft": intent.PullEdited,
	"label_updated":      intent.PullEdited,
	"label_cleared":      intent.PullEdited,
	"closed":             intent.PullClosed,
}

func (p hubPull) event(name string) (Event, error) {
	r := p.PullRequest
	if r == nil {
		return Event{}, errors.New("pull_request is missing")
	}
	e := Event{
		Kind:          intent.HookPull,
		Name:          name + " " + p.Action,
		Repository:    p.Repository.FullName,
		URLs:          p.Repository.urls(),
		DefaultBranch: p.Repository.DefaultBranch,
		Sender:        p.Sender.shown(),
	}
	action, ok := hubActions[p.Action]
	switch {
	case !ok:
		action = intent.PullOther
	case action == intent.PullClosed && r.Merged:
		action = intent.PullMerged
	}
	number := p.Number
	if number == 0 {
		number = r.Number
	}
	e.Pull = &intent.Pull{
		Number: number, Action: action, Title: r.Title, URL: r.HTMLURL, Head: r.Head.side(), Base: r.Base.side(),
		Author: r.User.shown(), Association: r.Association, Draft: r.Draft,
	}
	// When the head's repository is deleted, it was a fork.
	e.Pull.Fork = r.Head.Repo == nil || r.Base.Repo == nil || r.Head.Repo.FullName != r.Base.Repo.FullName
	return e, nil
}

func parseGitHub(h http.Header, body []byte) (Event, string, error) {
	name := h.Get(HeaderGitHubEvent)
	if name == "" {
		return Event{}, "", errors.New("the header " + HeaderGitHubEvent + " is missing")
	}
	body, err := unwrapForm(h, body)
	if err != nil {
		return Event{}, "", err
	}
	e, err := parseHub(name, body)
	return e, h.Get(headerGitHubDelivery), err
}

// unwrapForm returns the payload in a form, which is the other content type that GitHub and Gitea offer.
func unwrapForm(h http.Header, body []byte) ([]byte, error) {
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media != "application/x-www-form-urlencoded" {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		return nil, errors.New("the form has no field payload")
	}
	return []byte(form.Get("payload")), nil
}

// parseHub reads the events that GitHub, Gitea, Forgejo and Gogs have in common.
func parseHub(name string, body []byte) (e Event, err error) {
	switch name {
	case "push", "create", "delete":
		var p hubPush
		if err := decode(body, &p); err != nil {
			return e, err
		}
		if name == "push" {
			e = p.event(name)
		} else if e, err = p.created(name, name == "delete"); err != nil {
			return e, err
		}
	case "pull_request", "pull_request_sync", "pull_request_label":
		var p hubPull
		if err := decode(body, &p); err != nil {
			return e, err
		}
		if e, err = p.event(name); err != nil {
			return e, err
		}
	default:
		var p struct {
			Repository hubRepository
			Sender     hubUser
		}
		if err := decode(body, &p); err != nil {
			return e, err
		}
		e = Event{
			Kind:       intent.HookOther,
			Name:       name,
			Repository: p.Repository.FullName,
			URLs:       p.Repository.urls(),
			Sender:     p.Sender.shown(),
		}
		if name == "ping" {
			e.Kind = intent.HookPing
		}
	}
	return finish(e, "repository.clone_url")
}
