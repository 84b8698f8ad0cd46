package webhooks

import (
	"errors"
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

const (
	headerBitbucketSignature = "X-Hub-Signature" // of SHA-256, although GitHub uses it for SHA-1
	headerBitbucketEvent     = "X-Event-Key"
	headerCloudDelivery      = "X-Request-UUID"
	headerServerDelivery     = "X-Request-Id"
)

// bitbucket is Bitbucket Cloud; bitbucketServer is Bitbucket Server and Data Center.
var (
	bitbucket       = dialect{name: "bitbucket", proof: bitbucketProof, parse: parseBitbucket}
	bitbucketServer = dialect{name: "bitbucket-server", proof: bitbucketProof, parse: parseBitbucketServer}
)

func bitbucketProof(h http.Header) (proof, error) {
	return signedBody(h, signaturePrefix, headerBitbucketSignature)
}

// cloudRepository is a repository as Bitbucket Cloud describes it.
type cloudRepository struct {
	FullName string `json:"full_name"`
	Links    struct {
		HTML struct{ Href string }
	}
	MainBranch *struct{ Name string } `json:"mainbranch"`
}

// urls returns the addresses of the repository. The payload has none to clone from.
func (r cloudRepository) urls() []string {
	urls := []string{r.Links.HTML.Href}
	if strings.Count(r.FullName, "/") == 1 {
		urls = append(urls, "https://bitbucket.org/"+r.FullName+".git")
	}
	return urls
}

type cloudUser struct {
	Nickname    string
	DisplayName string `json:"display_name"`
	UUID        string
}

func (u *cloudUser) shown() string {
	if u == nil {
		return ""
	}
	return firstOf(u.Nickname, u.DisplayName)
}

type cloudTarget struct {
	Type   string
	Name   string
	Target struct{ Hash, Message string }
}

type cloudSide struct {
	Branch     struct{ Name string }
	Commit     *struct{ Hash string }
	Repository *cloudRepository
}

func (s cloudSide) side() intent.PullSide {
	side := intent.PullSide{Ref: s.Branch.Name}
	if s.Commit != nil {
		side.Commit = s.Commit.Hash // an abbreviation of twelve digits, which finish drops
	}
	if s.Repository != nil {
		side.URL = firstOf(s.Repository.urls()...)
	}
	return side
}

var bitbucketActions = map[string]intent.PullAction{
	"pullrequest:created":   intent.PullOpened,
	"pullrequest:updated":   intent.PullUpdated,
	"pullrequest:fulfilled": intent.PullMerged,
	"pullrequest:rejected":  intent.PullClosed,

	"pr:opened":           intent.PullOpened,
	"pr:from_ref_updated": intent.PullUpdated,
	"pr:modified":         intent.PullEdited,
	"pr:to_ref_updated":   intent.PullEdited,
	"pr:merged":           intent.PullMerged,
	"pr:declined":         intent.PullClosed,
	"pr:deleted":          intent.PullClosed,
}

func parseBitbucket(h http.Header, body []byte) (Event, string, error) {
	name := h.Get(headerBitbucketEvent)
	if name == "" {
		return Event{}, "", errors.New("the header " + headerBitbucketEvent + " is missing")
	}
	var p struct {
		Actor      *cloudUser
		Repository cloudRepository
		Push       struct {
			Changes []struct {
				Old, New *cloudTarget
				Forced   bool
			}
		}
		PullRequest *struct {
			ID          int
			Title       string
			Draft       bool
			Author      *cloudUser
			Source      cloudSide
			Destination cloudSide
			Links       struct {
				HTML struct{ Href string }
			}
		} `json:"pullrequest"`
	}
	if err := decode(body, &p); err != nil {
		return Event{}, "", err
	}
	e := Event{
		Kind:       intent.HookOther,
		Name:       name,
		Repository: p.Repository.FullName,
		URLs:       p.Repository.urls(),
		Sender:     p.Actor.shown(),
	}
	if p.Repository.MainBranch != nil {
		e.DefaultBranch = p.Repository.MainBranch.Name
	}
	switch {
	case name == "diagnostics:ping":
		e.Kind = intent.HookPing
	case name == "repo:push":
		var moves []Event
		for _, c := range p.Push.Changes {
			moves = append(moves, cloudMove(c.Old, c.New))
		}
		if err := setMoves(&e, moves); err != nil {
			return e, "", err
		}
	case strings.HasPrefix(name, "pullrequest:"):
		r := p.PullRequest
		if r == nil {
			return e, "", errors.New("pullrequest is missing")
		}
		action, ok := bitbucketActions[name]
		if !ok {
			action = intent.PullOther
		}
		e.Kind = intent.HookPull
		e.Pull = &Pull{
			Number: r.ID, Action: action, Title: r.Title, URL: r.Links.HTML.Href,
			Author: r.Author.shown(), Draft: r.Draft, Head: r.Source.side(), Base: r.Destination.side(),
			Fork: r.Source.Repository == nil || r.Destination.Repository == nil ||
				r.Source.Repository.FullName != r.Destination.Repository.FullName,
		}
	}
	e, err := finish(e, "repository.full_name")
	return e, h.Get(headerCloudDelivery), err
}

// cloudMove returns the event of one ref of a push. Without a new target it was deleted.
func cloudMove(before, after *cloudTarget) Event {
	of := after
	if of == nil {
		of = before
	}
	if of == nil {
		return Event{}
	}
	e := Event{Deleted: after == nil}
	switch of.Type {
	case "tag", "annotated_tag":
		e.Ref = tags + of.Name
	default:
		e.Ref = branches + of.Name
	}
	if before != nil {
		e.Before = before.Target.Hash
	}
	if after != nil {
		e.Commit, e.Subject = after.Target.Hash, after.Target.Message
	}
	return e
}

// setMoves fills an event with the refs that a push moved: the first, and the others as More.
func setMoves(e *Event, moves []Event) error {
	if len(moves) == 0 {
		return errors.New("it names nothing that was pushed")
	}
	for i := range moves {
		m := &moves[i]
		if m.Ref == "" {
			return errors.New("a change names no branch")
		}
		if err := checkRef(m.Ref); err != nil {
			return err
		}
		m.Kind, m.Subject = kindOf(m.Ref), printable(m.Subject, maxText)
		m.Before, m.Commit = commitOf(m.Before), commitOf(m.Commit)
	}
	m := moves[0]
	e.Kind, e.Ref, e.Before, e.Commit, e.Deleted, e.Subject = m.Kind, m.Ref, m.Before, m.Commit, m.Deleted, m.Subject
	e.More = moves[1:]
	return nil
}

// serverRepository is a repository as Bitbucket Server describes it.
type serverRepository struct {
	Slug    string
	Project struct{ Key string }
	Links   struct {
		Clone []struct{ Href string }
		Self  []struct{ Href string }
	}
}

func (r serverRepository) name() string {
	if r.Slug == "" {
		return ""
	}
	return r.Project.Key + "/" + r.Slug
}

func (r serverRepository) urls() []string {
	var urls []string
	for _, l := range r.Links.Clone {
		urls = append(urls, l.Href)
	}
	for _, l := range r.Links.Self {
		// https://host/projects/KEY/repos/slug/browse is cloned from https://host/scm/key/slug.git
		if base, _, ok := strings.Cut(l.Href, "/projects/"); ok && r.Slug != "" {
			urls = append(urls, base+"/scm/"+strings.ToLower(r.Project.Key)+"/"+r.Slug+".git")
		}
		if base, rest, ok := strings.Cut(l.Href, "/users/"); ok && r.Slug != "" {
			if user, _, ok := strings.Cut(rest, "/"); ok {
				urls = append(urls, base+"/scm/~"+user+"/"+r.Slug+".git")
			}
		}
	}
	return urls
}

type serverSide struct {
	DisplayID    string `json:"displayId"`
	LatestCommit string `json:"latestCommit"`
	Repository   serverRepository
}

func (s serverSide) side() intent.PullSide {
	return intent.PullSide{Ref: s.DisplayID, Commit: s.LatestCommit, URL: firstOf(s.Repository.urls()...)}
}

func parseBitbucketServer(h http.Header, body []byte) (Event, string, error) {
	name, key := h.Get(headerBitbucketEvent), h.Get(headerServerDelivery)
	if name == "" {
		return Event{}, "", errors.New("the header " + headerBitbucketEvent + " is missing")
	}
	if name == "diagnostics:ping" { // it names no repository
		if err := decode(body, &struct{}{}); err != nil {
			return Event{}, "", err
		}
		e, err := finish(Event{Kind: intent.HookPing, Name: name}, "")
		return e, key, err
	}
	var p struct {
		Actor      struct{ Name string }
		Repository serverRepository
		Changes    []struct {
			Ref              struct{ ID string }
			FromHash, ToHash string
			Type             string
		}
		PullRequest *struct {
			ID      int
			Title   string
			Draft   bool
			Author  struct{ User struct{ Name string } }
			FromRef serverSide `json:"fromRef"`
			ToRef   serverSide `json:"toRef"`
			Links   struct {
				Self []struct{ Href string }
			}
		} `json:"pullRequest"`
	}
	if err := decode(body, &p); err != nil {
		return Event{}, "", err
	}
	e := Event{
		Kind:       intent.HookOther,
		Name:       name,
		Repository: p.Repository.name(),
		URLs:       p.Repository.urls(),
		Sender:     p.Actor.Name,
	}
	switch {
	case name == "repo:refs_changed":
		var moves []Event
		for _, c := range p.Changes {
			deleted := c.Type == "DELETE" || zeros(c.ToHash)
			moves = append(moves, Event{Ref: c.Ref.ID, Before: c.FromHash, Commit: c.ToHash, Deleted: deleted})
		}
		if err := setMoves(&e, moves); err != nil {
			return e, "", err
		}
	case strings.HasPrefix(name, "pr:"):
		r := p.PullRequest
		if r == nil {
			return e, "", errors.New("pullRequest is missing")
		}
		action, ok := bitbucketActions[name]
		if !ok {
			action = intent.PullOther
		}
		e.Kind, e.Repository, e.URLs = intent.HookPull, r.ToRef.Repository.name(), r.ToRef.Repository.urls()
		e.Pull = &Pull{
			Number: r.ID, Action: action, Title: r.Title,
			Author: r.Author.User.Name, Draft: r.Draft, Head: r.FromRef.side(), Base: r.ToRef.side(),
			Fork: r.FromRef.Repository.name() != r.ToRef.Repository.name() || r.FromRef.Repository.name() == "",
		}
		if len(r.Links.Self) > 0 {
			e.Pull.URL = r.Links.Self[0].Href
		}
	}
	e, err := finish(e, "repository.links.clone")
	return e, key, err
}
