package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

// shownCommits is how many of the newest commits are listed.
const shownCommits = 100

// git are the calls about commits. Inmanta has none like them.
//
//	GET  /api/v2/git           how it goes between the environment and its repository
//	GET  /api/v2/git/commits   the newest commits, and what became of them
//	POST /api/v2/git/accept    {"commit", "by", "reason"}: let a commit through that rewrites history
//	GET  /api/v2/git/blocks    the commits that were taken back
//	POST /api/v2/git/unblock   {"commit", "by", "reason"}: free one of them
//	POST /api/v2/rollback      {"version", "by", "reason", "revert"}: see rollback
func (s *server) git(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/git", func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
		e, err := s.environment(ctx, a.Env)
		if err != nil {
			return reply{}, err
		}
		state, err := s.store.GitState(ctx, a.Env)
		if err != nil {
			return reply{}, err
		}
		out := map[string]any{
			"repository": e.Source.URL,
			"branch":     e.Source.Branch,
			"subdir":     e.Source.Subdir,
			"state":      nil,
		}
		if state != nil {
			out["state"] = map[string]any{
				"kind": state.Kind, "commit": textOrNull(state.Commit), "message": state.Message, "advice": state.Advice,
				"since": stamp(state.Since), "checked": stamp(state.Checked), "refused": state.Kind.Refused(),
			}
		}
		return v2(out)
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/git/commits",
		func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
			if _, err := s.environment(ctx, a.Env); err != nil {
				return reply{}, err
			}
			list, err := s.store.GitCommits(ctx, a.Env, shownCommits)
			if err != nil {
				return reply{}, err
			}
			return v2(listed(list, gitCommitOf))
		},
	)
	call(s, g, http.MethodPost, "/api/v2/git/accept", func(ctx context.Context, a struct {
		inEnvironment
		Commit string `arg:"commit,required"`
		By     string `arg:"by,required"`
		Reason string `arg:"reason,required"`
	}) (reply, error) {
		accepted, err := s.control.AcceptCommit(actor{By: a.By, Reason: a.Reason}.as(ctx), a.Env, a.Commit)
		if err != nil {
			return reply{}, err
		}
		return v2(
			map[string]any{
				"commit": accepted.Commit,
				"by":     accepted.By,
				"reason": accepted.Reason,
				"at":     stamp(accepted.At),
			},
		)
	})
	s.rollback(g)
}

func gitCommitOf(c intent.GitCommit) map[string]any {
	out := map[string]any{
		"commit": c.Revision.Commit, "branch": c.Revision.Branch, "author": c.Revision.Author, "email": c.Revision.Email,
		"subject": c.Revision.Subject, "time": stamp(c.Revision.Time), "signer": textOrNull(c.Revision.Signer.Name),
		"signer_key": textOrNull(
			c.Revision.Signer.Key,
		), "compile": c.Compile, "trigger": c.Trigger.Type, "requested": stamp(c.Requested),
		"success": c.Success, "version": nil, "version_status": nil, "held": c.Held,
	}
	if c.Version > 0 {
		out["version"], out["version_status"] = c.Version, c.Status
	}
	return out
}
