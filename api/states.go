package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

var driftList = list{
	sort: "since.desc", id: uuidID,
	columns: map[string]kind{"since": moment, "resource_id": word},
	filters: map[string]kind{
		"resource_id": text, "resource": text, "attribute": text, "open": truth, "ending": text, "since": timeRange,
	},
}

// states are the calls about what is left alone and what drifted. Inmanta has
// none like them.
//
//	GET  /api/v2/drift    records of drift, paged
//	POST /api/v2/unpark   {"resource_ids": […]}: free these, or all that are parked
func (s *server) states(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/drift", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := driftList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		page, err := s.store.Drift(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/drift", driftList, q, page, driftOf, func(d intent.Drift) place {
			if q.Sort == "resource_id" {
				return at(d.Resource.String(), d.ID.String())
			}
			return atTime(d.Since, d.ID.String())
		})
	})
	call(s, g, http.MethodPost, "/api/v2/unpark", func(ctx context.Context, a struct {
		inEnvironment
		Resources []string `arg:"resource_ids"`
	}) (reply, error) {
		var ids []intent.ResourceID
		for _, name := range a.Resources {
			id, err := intent.ParseResourceID(name)
			if err != nil {
				return reply{}, invalid("resource_ids: %v", err)
			}
			ids = append(ids, id)
		}
		if a.Resources != nil && len(ids) == 0 {
			return v2([]string{}) // an empty list names nothing; leaving it out means all
		}
		freed, err := s.control.Unpark(ctx, a.Env, ids)
		if err != nil {
			return reply{}, err
		}
		out := []string{}
		for _, id := range freed {
			out = append(out, id.String())
		}
		return v2(out)
	})
}

func driftOf(d intent.Drift) any {
	out := map[string]any{
		"id": d.ID, "resource_id": d.Resource, "attribute": d.Attribute, "desired": json.RawMessage(d.Desired), "found": json.RawMessage(d.Found),
		"version": d.Version, "since": stamp(d.Since), "seen": stamp(d.Seen), "ended": maybe(d.Ended), "ending": nil,
	}
	if d.Ending != intent.DriftOpen {
		out["ending"] = d.Ending
	}
	return out
}

// parkingOf says of a resource how it is tried again, or why it is not.
func parkingOf(out map[string]any, st intent.ResourceState) map[string]any {
	out["parked"] = nil
	if st.Parked != intent.NotParked {
		out["parked"] = st.Parked
	}
	out["parked_at"], out["retry_at"], out["attempts"], out["drifted"] = maybe(
		st.ParkedAt,
	), maybe(
		st.RetryAt,
	), st.Attempts, st.Drifted
	return out
}

// breakerOf shows the breaker of an agent.
func breakerOf(b intent.Breaker) map[string]any {
	out := map[string]any{
		"state":      "closed",
		"since":      maybe(b.Since),
		"failures":   b.Failures,
		"next_probe": maybe(b.ProbeAt),
	}
	if b.Open() {
		out["state"] = "open"
	}
	return out
}
