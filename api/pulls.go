package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// shownOutbox is how many of the newest pieces of work for a forge are listed.
const shownOutbox = 200

// pullCalls are about pull requests, and about what forges are to hear. Inmanta has no such calls.
func (s *server) pullCalls(c *calls) {
	const path, one = "/api/v2/pull", "/api/v2/pull/{number}"
	v2(c, http.MethodGet, path, "List the pull requests towards the environment's branch, open ones first.",
		access.SeePulls, s.listPulls)
	v2(c, http.MethodGet, one, "Show a pull request with the text of its comment.", access.SeePulls, s.getPull)
	done[nullData](c, http.MethodPost, one+"/preview", "Compute the preview of a pull request.",
		access.PreviewPull, s.previewPull,
		accepted)
	v2(c, http.MethodPost, one+"/approve", "Let the code of one commit of a pull request run.",
		access.ApprovePull, s.approvePull)
	v2(c, http.MethodGet, "/api/v2/forge/outbox", "List the work for the forge: what waits, was sent, or is dead.",
		access.SeePulls, s.listOutbox)
	done[nullData](c, http.MethodPost, "/api/v2/forge/outbox/{id}/retry", "Try dead work for the forge again.",
		access.RetryOutbox, s.retryOutbox)
}

// pull is a pull request, with what became of its preview.
type pull struct {
	Number   int                 `json:"number"`
	State    intent.PullState    `json:"state"`
	Title    string              `json:"title"`
	URL      string              `json:"url"`
	Author   string              `json:"author"`
	Fork     bool                `json:"fork"`
	Trusted  bool                `json:"trusted"`
	Base     string              `json:"base"`
	Head     string              `json:"head"`
	Updated  timestamp           `json:"updated"`
	Preview  intent.PreviewState `json:"preview"`
	Problem  string              `json:"problem"`
	Approved *pullApproval       `json:"approved"`
	DryRun   *dryRun             `json:"dryrun"`
}

type pullApproval struct {
	Commit string    `json:"commit"`
	By     string    `json:"by"`
	At     timestamp `json:"at"`
}

type pullWithText struct {
	pull
	Text string `json:"text"`
}

// outboxWork is a piece of work for a forge.
type outboxWork struct {
	ID       int64                `json:"id"`
	Kind     intent.OutboxKind    `json:"kind"`
	Topic    string               `json:"topic"`
	State    intent.OutboxState   `json:"state"`
	Attempts int                  `json:"attempts"`
	Created  timestamp            `json:"created"`
	Next     timestamp            `json:"next"`
	Done     *timestamp           `json:"done"`
	Problem  string               `json:"problem"`
	What     intent.OutboxPayload `json:"what"`
}

type onePull struct {
	inEnvironment
	Number int `arg:"number,required"`
}

type approval struct {
	onePull
	Commit string `arg:"commit,required"`
	By     string `arg:"by,required"`
}

type oneWork struct {
	inEnvironment
	ID int64 `arg:"id,required"`
}

func (s *server) listPulls(ctx context.Context, a inEnvironment) ([]pull, error) {
	found, err := s.store.PullRequests(ctx, a.Env)
	return listed(found, pullOf), err
}

func (s *server) getPull(ctx context.Context, a onePull) (pullWithText, error) {
	p, err := s.store.PullRequest(ctx, a.Env, a.Number)
	if err != nil {
		return pullWithText{}, err
	}
	text, err := s.control.PullText(ctx, a.Env, a.Number)
	return pullWithText{pullOf(p), text}, err
}

func (s *server) previewPull(ctx context.Context, a onePull) error {
	return s.control.PreviewPull(ctx, a.Env, a.Number)
}

func (s *server) approvePull(ctx context.Context, a approval) (pull, error) {
	if err := s.control.ApprovePull(ctx, a.Env, a.Number, a.Commit, a.By); err != nil {
		return pull{}, err
	}
	p, err := s.store.PullRequest(ctx, a.Env, a.Number)
	return pullOf(p), err
}

func (s *server) listOutbox(ctx context.Context, a inEnvironment) ([]outboxWork, error) {
	found, err := s.store.Outbox(ctx, a.Env, shownOutbox)
	return listed(found, func(w intent.Outbox) outboxWork {
		return outboxWork{
			ID: w.ID, Kind: w.Kind, Topic: w.Topic, State: w.State, Attempts: w.Attempts, Created: stamp(w.Created),
			Next: stamp(w.Next), Done: maybe(w.Done), Problem: w.Problem, What: w.Payload,
		}
	}), err
}

func (s *server) retryOutbox(ctx context.Context, a oneWork) error {
	return s.control.RetryOutbox(ctx, a.Env, a.ID)
}

func pullOf(p intent.PullRequest) pull {
	out := pull{
		Number: p.Number, State: p.State, Title: p.Title, URL: p.URL, Author: p.Author, Fork: p.Fork,
		Trusted: p.Trusted, Base: p.Base, Head: p.Head, Updated: stamp(p.Updated), Preview: p.PreviewState(),
		Problem: p.Problem,
	}
	if p.ApprovedAt != nil {
		out.Approved = &pullApproval{Commit: p.Approved, By: p.ApprovedBy, At: stamp(*p.ApprovedAt)}
	}
	if p.Preview != nil {
		out.DryRun = new(dryRunOf(*p.Preview))
	}
	return out
}
