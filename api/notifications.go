package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) notificationCalls(c *calls) {
	const path, one = "/api/v2/notification", "/api/v2/notification/{notification_id}"
	whole(c, http.MethodGet, path, "List the notifications.",
		access.SeeNotifications, s.listNotifications, pagesOf(store.NotificationList))
	v2(c, http.MethodGet, one, "Show a notification.", access.SeeNotifications, s.getNotification)
	v2(c, http.MethodPatch, one, "Mark a notification as read or cleared.",
		access.MarkNotifications, s.markNotification)
}

type notification struct {
	ID          uuid.UUID       `json:"id"`
	Environment uuid.UUID       `json:"environment"`
	Created     timestamp       `json:"created"`
	Last        timestamp       `json:"last"`
	Times       int             `json:"times"`
	Title       string          `json:"title"`
	Message     string          `json:"message"`
	Severity    intent.Severity `json:"severity"`
	URI         *string         `json:"uri"`
	CompileID   *uuid.UUID      `json:"compile_id"`
	Read        bool            `json:"read"`
	Cleared     bool            `json:"cleared"`
}

type oneNotification struct {
	inEnvironment
	ID uuid.UUID `arg:"notification_id,required"`
}

type notificationMarks struct {
	oneNotification
	Read    *bool `arg:"read"`
	Cleared *bool `arg:"cleared"`
}

func (s *server) listNotifications(ctx context.Context, a pageIn) (page[notification], error) {
	q, err := a.query(store.NotificationList)
	if err != nil {
		return page[notification]{}, err
	}
	found, err := s.store.Notifications(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/notification", list: store.NotificationList}, q, found, notificationOf,
		func(n intent.Notification) place {
			if q.Sort == "last" {
				return atTime(n.Last, n.ID.String())
			}
			return atTime(n.Created, n.ID.String())
		}), err
}

func (s *server) getNotification(ctx context.Context, a oneNotification) (notification, error) {
	n, err := s.store.Notification(ctx, a.Env, a.ID)
	return notificationOf(n), err
}

func (s *server) markNotification(ctx context.Context, a notificationMarks) (notification, error) {
	if a.Read == nil && a.Cleared == nil {
		return notification{}, invalid("say whether it is read, cleared or both")
	}
	n, err := s.control.MarkNotification(ctx, a.Env, a.ID, a.Read, a.Cleared)
	return notificationOf(n), err
}

func notificationOf(n intent.Notification) notification {
	return notification{
		ID: n.ID, Environment: n.Environment, Created: stamp(n.Created), Last: stamp(n.Last), Times: n.Times,
		Title: n.Title, Message: n.Message, Severity: n.Severity, URI: orNull(n.URI), CompileID: n.Compile,
		Read: n.Read, Cleared: n.Cleared,
	}
}
