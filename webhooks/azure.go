package webhooks

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// azure is Azure DevOps. It does not sign: its webhooks carry the secret as the
// password of basic authentication. The user name does not matter.
var azure = dialect{name: "azure", proof: azureProof, parse: parseAzure}

func azureProof(h http.Header) (proof, error) {
	const missing = "the request has no basic authentication: " +
		"set the environment's webhook secret as the password in the settings of the service hook"
	scheme, code, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return nil, errors.New(missing)
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(code))
	if err != nil {
		return nil, errors.New("the header Authorization is malformed: it is not in base64")
	}
	_, password, ok := strings.Cut(string(text), ":")
	if !ok || password == "" {
		return nil, errors.New(missing)
	}
	return sameText(password), nil
}

type azureRepository struct {
	Name          string
	RemoteURL     string `json:"remoteUrl"`
	SSHURL        string `json:"sshUrl"`
	WebURL        string `json:"webUrl"`
	DefaultBranch string `json:"defaultBranch"`
	Project       struct{ Name string }
}

var azureStates = map[string]intent.PullAction{"completed": intent.PullMerged, "abandoned": intent.PullClosed}

func parseAzure(_ http.Header, body []byte) (Event, string, error) {
	var p struct {
		ID        string
		EventType string `json:"eventType"`
		Resource  struct {
			Commits []struct {
				CommitID string `json:"commitId"`
				Comment  string
			}
			RefUpdates []struct {
				Name        string
				OldObjectID string `json:"oldObjectId"`
				NewObjectID string `json:"newObjectId"`
			} `json:"refUpdates"`
			Repository    azureRepository
			PushedBy      struct{ DisplayName string } `json:"pushedBy"`
			PullRequestID int                          `json:"pullRequestId"`
			Status        string
			Title         string
			IsDraft       bool                                `json:"isDraft"`
			URL           string                              // of the API
			Links         struct{ Web struct{ Href string } } `json:"_links"`
			CreatedBy     struct {
				DisplayName string `json:"displayName"`
				UniqueName  string `json:"uniqueName"`
			} `json:"createdBy"`
			SourceRefName string                    `json:"sourceRefName"`
			TargetRefName string                    `json:"targetRefName"`
			Source        struct{ CommitID string } `json:"lastMergeSourceCommit"`
			Target        struct{ CommitID string } `json:"lastMergeTargetCommit"`
			ForkSource    *struct {
				Repository azureRepository
			} `json:"forkSource"`
		}
	}
	if err := decode(body, &p); err != nil {
		return Event{}, "", err
	}
	if p.EventType == "" {
		return Event{}, "", errors.New("eventType is missing")
	}
	r := p.Resource
	e := Event{
		Kind:          intent.HookOther,
		Name:          p.EventType,
		URLs:          []string{r.Repository.RemoteURL, r.Repository.SSHURL, r.Repository.WebURL},
		DefaultBranch: r.Repository.DefaultBranch,
		Sender:        r.PushedBy.DisplayName,
	}
	if r.Repository.Name != "" {
		e.Repository = strings.TrimPrefix(r.Repository.Project.Name+"/"+r.Repository.Name, "/")
	}
	switch {
	case p.EventType == "git.push":
		var moves []Event
		for _, u := range r.RefUpdates {
			m := Event{Ref: u.Name, Before: u.OldObjectID, Commit: u.NewObjectID, Deleted: zeros(u.NewObjectID)}
			for _, c := range r.Commits {
				if c.CommitID == u.NewObjectID {
					m.Subject = c.Comment
				}
			}
			moves = append(moves, m)
		}
		if err := setMoves(&e, moves); err != nil {
			return e, "", err
		}
	case strings.HasPrefix(p.EventType, "git.pullrequest."):
		action := intent.PullOther
		switch strings.TrimPrefix(p.EventType, "git.pullrequest.") {
		case "created":
			action = intent.PullOpened
		case "updated":
			action = intent.PullUpdated
		case "merged": // somebody tried to merge it; the status says whether it is merged
			action = intent.PullOther
		}
		if state, ok := azureStates[r.Status]; ok {
			action = state
		}
		e.Kind, e.Sender = intent.HookPull, r.CreatedBy.DisplayName
		e.Pull = &Pull{
			Number: r.PullRequestID, Action: action, Title: r.Title, URL: firstOf(r.Links.Web.Href, r.URL),
			Author: r.CreatedBy.UniqueName, Draft: r.IsDraft, Fork: r.ForkSource != nil,
			Head: intent.PullSide{Ref: r.SourceRefName, Commit: r.Source.CommitID, URL: r.Repository.RemoteURL},
			Base: intent.PullSide{Ref: r.TargetRefName, Commit: r.Target.CommitID, URL: r.Repository.RemoteURL},
		}
		if r.ForkSource != nil {
			e.Pull.Head.URL = r.ForkSource.Repository.RemoteURL
		}
	}
	e, err := finish(e, "resource.repository.remoteUrl")
	return e, p.ID, err
}
