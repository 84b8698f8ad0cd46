package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

var deliveryList = list{
	sort: "received.desc", id: uuidID,
	columns: map[string]kind{"received": moment},
	filters: map[string]kind{
		"forge": text, "repository": text, "ref": text, "commit": text, "event": text, "state": text, "received": timeRange,
	},
}

// deliveries are the calls about webhooks that were received. Inmanta has none
// like them.
//
//	GET  /api/v2/deliveries                   webhooks of the environment, paged
//	GET  /api/v2/deliveries/<id>              one, with all that it told
//	POST /api/v2/deliveries/<id>/redeliver    act on it anew
func (s *server) deliveries(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/deliveries", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := deliveryList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		page, err := s.store.Deliveries(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/deliveries", deliveryList, q, page, deliveryOf, func(d intent.Delivery) place {
			return atTime(d.Received, d.ID.String())
		})
	})
	type one struct {
		inEnvironment
		ID uuid.UUID `arg:"id,required"`
	}
	call(s, g, http.MethodGet, "/api/v2/deliveries/{id}", func(ctx context.Context, a one) (reply, error) {
		d, err := s.store.Delivery(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(wholeDelivery(d))
	})
	call(s, g, http.MethodPost, "/api/v2/deliveries/{id}/redeliver", func(ctx context.Context, a one) (reply, error) {
		d, err := s.control.Redeliver(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(wholeDelivery(d))
	})
}

func deliveryOf(d intent.Delivery) map[string]any {
	e, o := d.Event, d.Outcomes[0]
	return map[string]any{
		"id": d.ID, "forge": d.Forge, "forge_id": d.Key, "received": stamp(d.Received), "size": d.Size, "verified": d.Verified, "replay_of": d.ReplayOf,
		"event": e.Kind, "name": e.Name, "repository": e.Repository, "ref": e.Ref, "commit": e.Commit, "sender": e.Sender, "subject": e.Subject,
		"state": o.State, "reason": o.Reason, "compile": o.Compile, "handled": maybe(o.Handled), "module": o.Module,
	}
}

// wholeDelivery has what the payload told besides.
func wholeDelivery(d intent.Delivery) map[string]any {
	out := deliveryOf(d)
	out["told"] = d.Event
	return out
}
