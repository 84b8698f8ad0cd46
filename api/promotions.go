package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// promotions are the calls about environments that follow others. Inmanta has none like them.
//
//	GET  /api/v2/git/promotions          what the environment follows, what waits and for what, what was promoted
//	POST /api/v2/git/promotions/approve  {"commit", "by", "reason"}: approve exactly this commit
//	POST /api/v2/git/promotions/pause    {"by", "reason"}: promote nothing until resume
//	POST /api/v2/git/promotions/resume   {"by", "reason"}
//	POST /api/v2/promote                 {"commit", "by", "reason"}: promote it now, in spite of its gates
func (s *server) promotions(g *gin.Engine) {
	type person struct {
		inEnvironment
		By     string `arg:"by,required"`
		Reason string `arg:"reason,required"`
	}
	type ofCommit struct {
		person
		Commit string `arg:"commit,required"`
	}
	as := func(ctx context.Context, p person) context.Context { return actor{By: p.By, Reason: p.Reason}.as(ctx) }
	answer := func(ctx context.Context, env intent.EnvironmentID) (reply, error) {
		f, err := s.control.Following(ctx, env)
		if err != nil {
			return reply{}, err
		}
		return v2(followingOf(f))
	}
	call(s, g, http.MethodGet, "/api/v2/git/promotions", func(ctx context.Context, a inEnvironment) (reply, error) {
		return answer(ctx, a.Env)
	})
	call(s, g, http.MethodPost, "/api/v2/git/promotions/approve", func(ctx context.Context, a ofCommit) (reply, error) {
		if err := s.control.ApprovePromotion(as(ctx, a.person), a.Env, a.Commit); err != nil {
			return reply{}, err
		}
		return answer(ctx, a.Env)
	})
	for path, pause := range map[string]bool{"/api/v2/git/promotions/pause": true, "/api/v2/git/promotions/resume": false} {
		call(s, g, http.MethodPost, path, func(ctx context.Context, a person) (reply, error) {
			if err := s.control.PausePromotions(as(ctx, a), a.Env, pause); err != nil {
				return reply{}, err
			}
			return answer(ctx, a.Env)
		})
	}
	call(s, g, http.MethodPost, "/api/v2/promote", func(ctx context.Context, a ofCommit) (reply, error) {
		p, err := s.control.Promote(as(ctx, a.person), a.Env, a.Commit)
		if err != nil {
			return reply{}, err
		}
		return v2(promotionOf(p))
	})
}

func followingOf(f control.Following) map[string]any {
	return map[string]any{
		"follows": textOrNull(f.Follows), "problem": f.Problem, "idle": f.Idle, "paused": actorOf(f.Paused),
		"gates": map[string]any{
			"soak": int(
				f.Policy.Soak / time.Second,
			), "compliant": f.Policy.Compliant, "no_drift": f.Policy.NoDrift, "approval": f.Policy.Approval,
		},
		"followers":  listed(f.Followers, func(name string) string { return name }),
		"promotions": listed(f.Promotions, promotionOf),
	}
}

func promotionOf(p intent.Promotion) map[string]any {
	out := map[string]any{
		"id": p.ID, "state": p.State, "text": p.Text(), "commit": p.Commit, "branch": p.Branch, "subject": p.Subject, "author": p.Author,
		"source": p.Source, "source_name": p.SourceName, "source_version": p.Version, "since": stamp(p.Since), "checked": stamp(p.Checked), "gates": listed(p.Gates, gateOf),
		"approved": actorOf(
			p.Approved,
		), "overridden": actorOf(p.Overridden), "ended": maybe(p.Ended), "compile": p.Compile, "version": nil, "success": p.Success,
	}
	if p.Made > 0 {
		out["version"] = p.Made
	}
	return out
}

func gateOf(g intent.PromotionGate) map[string]any {
	out := map[string]any{"gate": g.Gate, "open": g.Open, "text": g.Text, "until": nil}
	if !g.Until.IsZero() {
		out["until"] = stamp(g.Until)
	}
	return out
}

// actorOf is who did something; null: nobody did.
func actorOf(a *intent.Actor) any {
	if a == nil {
		return nil
	}
	return map[string]any{"by": a.By, "reason": a.Reason, "at": stamp(a.At)}
}
