package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

// rollback are the calls that take commits back. Inmanta has none like them.
//
// POST /api/v2/rollback deploys the content of an earlier version again, as a
// new version, and blocks the commit that is left. Without a version it is the last
// one before that was deployed. 409 when there is none, and when the rollback
// takes away so much that it is held: the new version waits to be confirmed.
// With revert, the forge is asked for a pull request that takes the commit back.
func (s *server) rollback(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v2/rollback", func(ctx context.Context, a struct {
		inEnvironment
		Version *int   `arg:"version"`
		By      string `arg:"by,required"`
		Reason  string `arg:"reason,required"`
		Revert  bool   `arg:"revert"`
	}) (reply, error) {
		to := 0
		if a.Version != nil {
			if to = *a.Version; to < 1 {
				to = -1
			}
		}
		v, err := s.control.RollBack(actor{By: a.By, Reason: a.Reason}.as(ctx), a.Env, to)
		if err != nil {
			return reply{}, err
		}
		out := map[string]any{
			"version":        v.Number,
			"status":         v.Status,
			"commit":         textOrNull(v.Provenance.Commit),
			"revert":         nil,
			"revert_problem": nil,
		}
		b := v.Provenance.RolledBack
		if b == nil {
			return v2(out)
		}
		out["rolled_back"] = map[string]any{
			"from":    b.From,
			"to":      b.To,
			"blocked": textOrNull(b.Blocked),
			"by":      b.By,
			"reason":  b.Reason,
			"at":      stamp(b.At),
		}
		if a.Revert && b.Blocked != "" {
			if page, err := s.control.OpenRevert(ctx, a.Env, b.Blocked, b.Reason); err != nil {
				out["revert_problem"] = err.Error()
			} else {
				out["revert"] = page
			}
		}
		return v2(out)
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/git/blocks",
		func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
			if _, err := s.environment(ctx, a.Env); err != nil {
				return reply{}, err
			}
			list, err := s.store.GitBlocks(ctx, a.Env)
			if err != nil {
				return reply{}, err
			}
			return v2(listed(list, blockOf))
		},
	)
	call(s, g, http.MethodPost, "/api/v2/git/unblock", func(ctx context.Context, a struct {
		inEnvironment
		Commit string `arg:"commit,required"`
		By     string `arg:"by,required"`
		Reason string `arg:"reason,required"`
	}) (reply, error) {
		b, err := s.control.UnblockCommit(actor{By: a.By, Reason: a.Reason}.as(ctx), a.Env, a.Commit)
		if err != nil {
			return reply{}, err
		}
		return v2(blockOf(b))
	})
}

func blockOf(b intent.Block) map[string]any {
	return map[string]any{"commit": b.Commit, "by": b.By, "reason": b.Reason, "at": stamp(b.At)}
}
