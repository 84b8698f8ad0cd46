package webhooks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// HeaderGitLabToken carries the secret token of a GitLab webhook.
const HeaderGitLabToken = "X-Gitlab-Token"

const (
	headerGitLabRetry = "Idempotency-Key"     // the same for a delivery and its retries
	headerGitLabEvent = "X-Gitlab-Event-UUID" // shared by all deliveries that one event causes
)

// gitlab sends the secret token itself. Newer servers can also sign, with a
// signing token, as Standard Webhooks specify. Either proof is enough.
func gitlab(now func() time.Time) dialect {
	return dialect{
		name:  "gitlab",
		proof: func(h http.Header) (proof, error) { return labProof(h, now()) },
		parse: parseGitLab,
	}
}

func labProof(h http.Header, now time.Time) (proof, error) {
	token, signed := h.Get(HeaderGitLabToken), h.Get(HeaderStandardSignature) != ""
	if token == "" && !signed {
		return nil, errors.New(
			"the request has no " + HeaderGitLabToken +
				": set the environment's webhook secret as the secret token of the webhook",
		)
	}
	if !signed {
		return sameText(token), nil
	}
	signature, err := standardProof(h, now)
	if err != nil || token == "" {
		return signature, err
	}
	same := sameText(token)
	return func(body, secret []byte) bool { return signature(body, secret) || same(body, secret) }, nil
}

type labRepository struct {
	ID                int
	GitHTTPURL        string `json:"git_http_url"`
	GitSSHURL         string `json:"git_ssh_url"`
	HTTPURL           string `json:"http_url"`
	SSHURL            string `json:"ssh_url"`
	WebURL            string `json:"web_url"`
	Homepage          string `json:"homepage"`
	PathWithNamespace string `json:"path_with_namespace"`
	DefaultBranch     string `json:"default_branch"`
}

func (r labRepository) urls() []string {
	return []string{r.GitHTTPURL, r.GitSSHURL, r.HTTPURL, r.SSHURL, r.WebURL, r.Homepage}
}

// labPayload has the fields of all events that we understand: those of projects
// and groups, and system hooks, which have their kind in another field.
type labPayload struct {
	ObjectKind   string `json:"object_kind"`
	EventName    string `json:"event_name"`
	Ref          string
	Before       string
	After        string
	CheckoutSHA  string `json:"checkout_sha"` // the commit, where After is the object of an annotated tag
	UserName     string `json:"user_name"`
	UserUsername string `json:"user_username"`
	User         struct {
		ID             int
		Name, Username string
	}
	Project      labRepository
	Repository   labRepository
	Commits      []pushedCommit
	TotalCommits int `json:"total_commits_count"`
	Attributes   *struct {
		IID            int
		Title          string
		URL            string
		Action         string
		State          string
		Draft          bool
		WIP            bool   `json:"work_in_progress"`
		OldRev         string `json:"oldrev"`
		SourceBranch   string `json:"source_branch"`
		TargetBranch   string `json:"target_branch"`
		SourceProject  int    `json:"source_project_id"`
		TargetProject  int    `json:"target_project_id"`
		AuthorID       int    `json:"author_id"`
		Source, Target labRepository
		LastCommit     struct{ ID string } `json:"last_commit"`
	} `json:"object_attributes"`
}

func parseGitLab(h http.Header, body []byte) (Event, string, error) {
	var p labPayload
	if err := decode(body, &p); err != nil {
		return Event{}, "", err
	}
	name := p.ObjectKind
	if name == "" {
		name = p.EventName // system hooks
	}
	if name == "" {
		return Event{}, "", errors.New("it has neither object_kind nor event_name")
	}
	e := Event{
		Kind:          intent.HookOther,
		Name:          name,
		Repository:    p.Project.PathWithNamespace,
		URLs:          append(p.Project.urls(), p.Repository.urls()...),
		DefaultBranch: p.Project.DefaultBranch,
	}
	e.Sender = firstOf(p.UserUsername, p.UserName, p.User.Username, p.User.Name)
	switch name {
	case "push", "tag_push":
		p.push(&e)
	case "merge_request":
		if err := p.merge(&e); err != nil {
			return e, "", err
		}
	}
	e, err := finish(e, "project.git_http_url")
	return e, labKey(h, body), err
}

// labKey returns the id of a delivery. Servers before 17.4 send none; there the
// event and the body stand for it, because a retry has the same body.
func labKey(h http.Header, body []byte) string {
	if key := h.Get(headerGitLabRetry); key != "" {
		return key
	}
	if key := h.Get(headerGitLabEvent); key != "" {
		sum := sha256.Sum256(body)
		return key + "/" + hex.EncodeToString(sum[:8])
	}
	return ""
}

func (p labPayload) push(e *Event) {
	e.Kind, e.Ref, e.Before, e.Commit, e.Deleted = kindOf(p.Ref), p.Ref, p.Before, p.After, zeros(p.After)
	if e.Kind == intent.HookTag && !e.Deleted && p.CheckoutSHA != "" {
		e.Commit = p.CheckoutSHA
	}
	for _, c := range p.Commits {
		if c.ID == p.After {
			e.Subject = c.Message
		}
	}
	if !e.Deleted && !zeros(p.Before) {
		e.Paths = changedPaths(p.Commits, p.After, p.TotalCommits)
	}
}

var labActions = map[string]intent.PullAction{
	"open":   intent.PullOpened,
	"reopen": intent.PullReopened,
	"close":  intent.PullClosed,
	"merge":  intent.PullMerged,
	"update": intent.PullEdited,
}

func (p labPayload) merge(e *Event) error {
	a := p.Attributes
	if a == nil {
		return errors.New("object_attributes is missing")
	}
	e.Kind, e.Name = intent.HookPull, strings.TrimSpace(e.Name+" "+a.Action)
	action, ok := labActions[a.Action]
	switch {
	case a.Action == "": // some system hooks do not say what happened
		action = intent.PullEdited
	case !ok:
		action = intent.PullOther
	case action == intent.PullEdited && a.OldRev != "":
		action = intent.PullUpdated
	}
	e.Pull = &intent.Pull{
		Number: a.IID, Action: action, Title: a.Title, URL: a.URL, Draft: a.Draft || a.WIP,
		Head: intent.PullSide{
			Ref:    a.SourceBranch,
			Commit: a.LastCommit.ID,
			URL:    firstOf(a.Source.GitHTTPURL, a.Source.HTTPURL),
		},
		Base: intent.PullSide{
			Ref: a.TargetBranch,
			URL: firstOf(a.Target.GitHTTPURL, a.Target.HTTPURL, p.Project.GitHTTPURL),
		},
		Fork: a.SourceProject != a.TargetProject,
	}
	// The payload names the user who acts. The author may be somebody else, who is trusted less.
	if p.User.ID == a.AuthorID && a.AuthorID != 0 {
		e.Pull.Author = p.User.Username
	}
	return nil
}
