package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// holds are the calls about versions that wait for a person. Inmanta has none
// like them; a release of such a version through its calls answers 409.
//
//	GET  /api/v2/desiredstate/<version>/hold      why it is held, with what it takes away
//	POST /api/v2/desiredstate/<version>/confirm   {"by": …, "reason": …}: release it all the same
func (s *server) holds(g *gin.Engine) {
	type oneVersion struct {
		inEnvironment
		Version int `arg:"version,required"`
	}
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/desiredstate/{version}/hold",
		func(ctx context.Context, a oneVersion) (reply, error) {
			v, err := s.store.Version(ctx, a.Env, a.Version)
			if err != nil {
				return reply{}, err
			}
			if v.Hold == nil {
				return reply{}, fault.New("api", fault.NotFound, "this version was not held")
			}
			return v2(holdOf(v, true))
		},
	)
	call(s, g, http.MethodPost, "/api/v2/desiredstate/{version}/confirm", func(ctx context.Context, a struct {
		oneVersion
		By     string `arg:"by,required"`
		Reason string `arg:"reason,required"`
	}) (reply, error) {
		if err := s.control.Confirm(ctx, a.Env, a.Version, a.By, a.Reason); err != nil {
			return reply{}, err
		}
		v, err := s.store.Version(ctx, a.Env, a.Version)
		if err != nil {
			return reply{}, err
		}
		return v2(desiredState(v))
	})
}

// holdOf shows why a version is held, or was; nil when it was not. The whole
// has what goes by type, and the first of it by name.
func holdOf(v intent.Version, whole bool) any {
	h := v.Hold
	if h == nil {
		return nil
	}
	out := map[string]any{
		"held": v.Held(), "since": stamp(h.Since), "reasons": h.Reasons, "text": h.Text, "confirmable": h.Confirmable(),
		"compared_with": h.Before, "resources": h.Live, "removed": h.Count(), "gone": h.Gone, "purged": h.Purged, "protected": h.ProtectedCount,
		"confirmed": nil,
	}
	if c := v.Confirmed; c != nil {
		out["confirmed"] = map[string]any{"by": c.By, "reason": c.Reason, "at": stamp(c.At)}
	}
	if whole {
		out["types"], out["first"], out["first_protected"] = h.Types, h.First, h.Protected
	}
	return out
}
