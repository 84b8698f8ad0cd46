package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// facts is the call to ask resources for their facts, which Inmanta does not have:
//
//	POST /api/v2/facts/refresh   {"resource_ids": […]}: these, or all that have facts which expire; gives which
func (s *server) facts(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v2/facts/refresh", func(ctx context.Context, a struct {
		inEnvironment
		Resources []string `arg:"resource_ids"`
	}) (reply, error) {
		ids, err := resourceIDs(a.Resources)
		if err != nil {
			return reply{}, err
		}
		out := []any{}
		if a.Resources != nil && len(ids) == 0 {
			return v2(out) // an empty list names nothing; leaving it out means all
		}
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		asked, err := s.control.RefreshFacts(ctx, a.Env, ids)
		if err != nil {
			return reply{}, err
		}
		for _, id := range asked {
			out = append(out, id)
		}
		return v2(out)
	})
}

// askFor asks a resource for a fact that is missing or too old, and says to come
// back for it. A parameter that is not there is nobody's fact.
func (s *server) askFor(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, missing bool) error {
	gone := &bare{code: http.StatusGone}
	if missing {
		gone.code = http.StatusNotFound
	}
	if id.IsZero() {
		return gone
	}
	if _, err := s.control.RefreshFacts(ctx, env, []intent.ResourceID{id}); fault.Is(err, fault.NotFound) {
		return gone
	} else if err != nil {
		return err
	}
	return &bare{code: http.StatusServiceUnavailable, message: "The resource is asked for its facts: come back for it."}
}
