package graphql

import (
	"context"

	"ordain.dev/ordain/api/graphql/schema"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// Notifications answers the root notifications.
func (r resolvers) Notifications(
	ctx context.Context, filter schema.NotificationFilter, first *int32, after *string, last *int32, before *string,
	orderBy []*schema.StrawberryOrder,
) (*schema.NotificationConnection, error) {
	return read(ctx, func() (*schema.NotificationConnection, error) {
		if err := r.door.cfg.Allow(ctx, access.SeeNotifications, filter.Environment); err != nil {
			return nil, err
		}
		w, err := window(first, after, last, before, orders(orderBy))
		if err != nil {
			return nil, err
		}
		records := r.door.cfg.Store
		found, err := records.NotificationWindow(ctx, filter.Environment, filter.Cleared, w)
		if err != nil {
			return nil, err
		}
		out := &schema.NotificationConnection{Edges: []*schema.NotificationEdge{}}
		var cursors []string
		out.PageInfo, cursors = pageInfo(w, found)
		for i, n := range found.Items {
			out.Edges = append(out.Edges, &schema.NotificationEdge{Cursor: cursors[i], Node: notification(n)})
		}
		out.TotalCount, err = total(ctx, func() (int, error) {
			return records.CountNotifications(ctx, filter.Environment, filter.Cleared)
		})
		return out, err
	})
}

func orders(given []*schema.StrawberryOrder) (by []order) {
	for _, o := range given {
		by = append(by, order{o.Key, o.Order})
	}
	return by
}

func notification(n intent.Notification) *schema.Notification {
	return &schema.Notification{
		ID: n.ID, Environment: n.Environment, Created: n.Created, Title: n.Title, Message: n.Message, Read: n.Read,
		Cleared: n.Cleared, Severity: orNil(string(n.Severity)), URI: orNil(n.URI), CompileID: n.Compile,
	}
}
