package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

var notificationList = list{
	sort: "created.desc", id: uuidID, columns: map[string]kind{"created": moment, "last": moment},
	filters: map[string]kind{"title": text, "message": text, "read": truth, "cleared": truth, "severity": text},
}

type oneNotification struct {
	inEnvironment
	ID uuid.UUID `arg:"notification_id,required"`
}

// notifications are what people should hear of.
func (s *server) notifications(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/notification", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := notificationList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.Notifications(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged(
			"/api/v2/notification",
			notificationList,
			q,
			page,
			notificationOf,
			func(n intent.Notification) place {
				if q.Sort == "last" {
					return atTime(n.Last, n.ID.String())
				}
				return atTime(n.Created, n.ID.String())
			},
		)
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/notification/{notification_id}",
		func(ctx context.Context, a oneNotification) (reply, error) {
			n, err := s.store.Notification(ctx, a.Env, a.ID)
			if err != nil {
				return reply{}, err
			}
			return v2(notificationOf(n))
		},
	)
	call(s, g, http.MethodPatch, "/api/v2/notification/{notification_id}", func(ctx context.Context, a struct {
		oneNotification
		Read    *bool `arg:"read"`
		Cleared *bool `arg:"cleared"`
	}) (reply, error) {
		if a.Read == nil && a.Cleared == nil {
			return reply{}, fault.New("api", fault.Invalid, "say whether it is read, cleared or both")
		}
		n, err := s.control.MarkNotification(ctx, a.Env, a.ID, a.Read, a.Cleared)
		if err != nil {
			return reply{}, err
		}
		return v2(notificationOf(n))
	})
}

func notificationOf(n intent.Notification) any {
	out := map[string]any{
		"id": n.ID, "environment": n.Environment, "created": stamp(n.Created), "last": stamp(n.Last), "times": n.Times,
		"title": n.Title, "message": n.Message, "severity": n.Severity, "uri": nil, "compile_id": n.Compile, "read": n.Read, "cleared": n.Cleared,
	}
	if n.URI != "" {
		out["uri"] = n.URI
	}
	return out
}
