package apitest

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Confirm is a verb.
func (c *Control) Confirm(_ context.Context, id uuid.UUID, number int, by, reason string) error {
	if by == "" || reason == "" {
		return fault.New("apitest", fault.Invalid, "say who confirms and why")
	}
	c.mu.Lock()
	v, err := c.version(id, number)
	if err == nil {
		switch {
		case v.Hold == nil:
			err = fault.New("apitest", fault.Conflict, "the version is not held")
		case !v.Hold.Confirmable():
			err = fault.Wrap("apitest", fault.Conflict, &intent.HeldError{Version: number, Hold: *v.Hold})
		default:
			v.Confirmed = &intent.Confirmation{By: by, Reason: reason, At: c.Now()}
		}
	}
	c.mu.Unlock()
	if err == nil {
		err = c.Release(context.Background(), id, number)
	}
	return err
}

// HeldVersions is a verb.
func (c *Control) HeldVersions(_ context.Context, id uuid.UUID) ([]intent.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	var out []intent.Version
	for _, v := range slices.Backward(e.Vers) {
		if v.Held() {
			out = append(out, v.Version)
		}
	}
	return out, nil
}

// Notifications is a verb.
func (c *Control) Notifications(
	_ context.Context,
	id uuid.UUID,
	q intent.ListQuery,
) (intent.Page[intent.Notification], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Notification]{}, err
	}
	return paginate(e.Notices, q, func(x intent.Notification, s string) (string, string) {
		if s == "last" {
			return micro(x.Last), x.ID.String()
		}
		return micro(x.Created), x.ID.String()
	}, func(x intent.Notification, name, v string) bool {
		switch name {
		case "read":
			return strconv.FormatBool(x.Read) == v
		case "cleared":
			return strconv.FormatBool(x.Cleared) == v
		case "severity":
			return string(x.Severity) == v
		case "message":
			return part(x.Message, v)
		}
		return part(x.Title, v)
	}), nil
}

// Notification is a verb.
func (c *Control) Notification(ctx context.Context, id, notification uuid.UUID) (intent.Notification, error) {
	return c.MarkNotification(ctx, id, notification, nil, nil)
}

// MarkNotification is a verb.
func (c *Control) MarkNotification(
	_ context.Context,
	id, notification uuid.UUID,
	read, cleared *bool,
) (out intent.Notification, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return out, err
	}
	at := slices.IndexFunc(e.Notices, func(n intent.Notification) bool { return n.ID == notification })
	if at < 0 {
		return out, fault.New("apitest", fault.NotFound, "Notification with id "+notification.String()+" not found")
	}
	if read != nil {
		e.Notices[at].Read = *read
		c.Asked = append(c.Asked, "read "+strconv.FormatBool(*read))
	}
	if cleared != nil {
		e.Notices[at].Cleared = *cleared
		c.Asked = append(c.Asked, "cleared "+strconv.FormatBool(*cleared))
	}
	return e.Notices[at], nil
}

// MarkNotificationsRead is a verb.
func (c *Control) MarkNotificationsRead(_ context.Context, id uuid.UUID) error {
	err := c.change(id, "read all", func(e *Env) error {
		for i := range e.Notices {
			e.Notices[i].Read = true
		}
		return nil
	})
	c.publish(id, bus.Notification, "")
	return err
}

// UnreadNotifications is a verb.
func (c *Control) UnreadNotifications(_ context.Context, id uuid.UUID) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return 0, err
	}
	for _, x := range e.Notices {
		if !x.Read && !x.Cleared {
			n++
		}
	}
	return n, nil
}
