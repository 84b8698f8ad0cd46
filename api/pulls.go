package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

// shownOutbox is how many of the newest pieces of work for a forge are listed.
const shownOutbox = 200

// pulls are the calls about pull requests and what forges are told. Inmanta has none like them.
//
//	GET  /api/v2/pull                        pull requests towards the environment's branch, open ones first
//	GET  /api/v2/pull/<number>               one, with the text of its comment
//	POST /api/v2/pull/<number>/preview       compute its preview, again or for the first time
//	POST /api/v2/pull/<number>/approve       {"commit": …, "by": …}: let the code of exactly this commit run
//	GET  /api/v2/forge/outbox                what waits for the forge, what was sent, what is dead
//	POST /api/v2/forge/outbox/<id>/retry     give dead work another chance
func (s *server) pulls(g *gin.Engine) {
	type onePull struct {
		inEnvironment
		Number int `arg:"number,required"`
	}
	call(s, g, http.MethodGet, "/api/v2/pull", func(ctx context.Context, a inEnvironment) (reply, error) {
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		found, err := s.store.PullRequests(ctx, a.Env)
		if err != nil {
			return reply{}, err
		}
		return v2(listed(found, pullOf))
	})
	call(s, g, http.MethodGet, "/api/v2/pull/{number}", func(ctx context.Context, a onePull) (reply, error) {
		p, err := s.store.PullRequest(ctx, a.Env, a.Number)
		if err != nil {
			return reply{}, err
		}
		text, err := s.control.PullText(ctx, a.Env, a.Number)
		if err != nil {
			return reply{}, err
		}
		out := pullOf(p)
		out["text"] = text
		return v2(out)
	})
	call(s, g, http.MethodPost, "/api/v2/pull/{number}/preview", func(ctx context.Context, a onePull) (reply, error) {
		if err := s.control.PreviewPull(ctx, a.Env, a.Number); err != nil {
			return reply{}, err
		}
		return reply{code: http.StatusAccepted, body: map[string]any{"data": nil}}, nil
	})
	call(s, g, http.MethodPost, "/api/v2/pull/{number}/approve", func(ctx context.Context, a struct {
		onePull
		Commit string `arg:"commit,required"`
		By     string `arg:"by,required"`
	}) (reply, error) {
		if err := s.control.ApprovePull(ctx, a.Env, a.Number, a.Commit, a.By); err != nil {
			return reply{}, err
		}
		p, err := s.store.PullRequest(ctx, a.Env, a.Number)
		if err != nil {
			return reply{}, err
		}
		return v2(pullOf(p))
	})
	call(s, g, http.MethodGet, "/api/v2/forge/outbox", func(ctx context.Context, a inEnvironment) (reply, error) {
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		found, err := s.store.Outbox(ctx, a.Env, shownOutbox)
		if err != nil {
			return reply{}, err
		}
		out := []any{}
		for _, w := range found {
			out = append(out, map[string]any{
				"id": w.ID, "kind": w.Kind, "topic": w.Topic, "state": w.State, "attempts": w.Attempts, "created": stamp(w.Created),
				"next": stamp(w.Next), "done": maybe(w.Done), "problem": w.Problem, "what": w.Payload,
			})
		}
		return v2(out)
	})
	call(s, g, http.MethodPost, "/api/v2/forge/outbox/{id}/retry", func(ctx context.Context, a struct {
		inEnvironment
		ID int64 `arg:"id,required"`
	}) (reply, error) {
		if err := s.control.RetryOutbox(ctx, a.Env, a.ID); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
}

func pullOf(p intent.PullRequest) map[string]any {
	out := map[string]any{
		"number": p.Number, "state": p.State, "title": p.Title, "url": p.URL, "author": p.Author, "fork": p.Fork, "trusted": p.Trusted,
		"base": p.Base, "head": p.Head, "updated": stamp(p.Updated), "preview": p.PreviewState(), "problem": p.Problem,
		"approved": nil, "dryrun": nil,
	}
	if p.ApprovedAt != nil {
		out["approved"] = map[string]any{"commit": p.Approved, "by": p.ApprovedBy, "at": stamp(*p.ApprovedAt)}
	}
	if p.Preview != nil {
		out["dryrun"] = dryRunOf(*p.Preview)
	}
	return out
}
