package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type notificationRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Created     time.Time
	Last        time.Time
	Times       int
	Severity    string
	Title       string
	Message     string
	URI         *string
	Compile     *uuid.UUID
	Read        bool
	Cleared     bool
}

func (r notificationRow) value() (intent.Notification, error) {
	n := intent.Notification{
		ID: r.ID, Environment: r.Environment, Created: r.Created.UTC(), Last: r.Last.UTC(), Times: r.Times,
		Read: r.Read, Cleared: r.Cleared,
		Notice: intent.Notice{
			Severity: intent.Severity(r.Severity),
			Title:    r.Title,
			Message:  r.Message,
			Compile:  r.Compile,
		},
	}
	if r.URI != nil {
		n.URI = *r.URI
	}
	return n, nil
}

// maxMessage is how many bytes of a notice's text are kept.
const maxMessage = 32 << 10

// addNotice records a notice in the transaction of what it is about. When an equal one is unread, that one is counted
// up instead. Within a transaction only other notices may be written after it.
func addNotice(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, n intent.Notice, at time.Time) error {
	title, message := cleanText(strings.TrimSpace(n.Title)), cleanText(n.Message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + " …"
	}
	var uri *string
	if n.URI != "" {
		text := cleanText(n.URI)
		uri = &text
	}
	if _, err := tx.Exec(ctx, statements.NotificationLock, env); err != nil {
		return err
	}
	if !n.Quiet {
		counted, err := many[struct{ ID uuid.UUID }](ctx, tx, statements.NotificationCountUp, env, title, uri, at,
			message, n.Severity, n.Compile)
		if err != nil || len(counted) > 0 {
			return err
		}
	}
	_, err := tx.Exec(ctx, statements.NotificationAdd, uuid.New(), env, at, n.Severity, title, message, uri, n.Compile,
		n.Quiet)
	return err
}

// Notify records a notice for people.
func (s *Store) Notify(ctx context.Context, env intent.EnvironmentID, n intent.Notice) error {
	return s.write(ctx, "store.Notify", func(tx pgx.Tx) error { return addNotice(ctx, tx, env, n, time.Now()) })
}

// Notifications lists the notices for people.
func (s *Store) Notifications(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Notification], error) {
	return page(ctx, s, "store.Notifications", NotificationList, q, notificationRow.value, env)
}

// Notification returns one notice.
func (s *Store) Notification(
	ctx context.Context,
	env intent.EnvironmentID,
	id uuid.UUID,
) (out intent.Notification, err error) {
	err = s.read(ctx, "store.Notification", func(q querier) error {
		row, err := one[notificationRow](ctx, q, statements.NotificationGet, env, id)
		if isNoRows(err) {
			return noNotification(id)
		}
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// MarkNotification changes whether a notice is read and cleared, where the arguments are not nil.
func (s *Store) MarkNotification(
	ctx context.Context,
	env intent.EnvironmentID,
	id uuid.UUID,
	read, cleared *bool,
) (out intent.Notification, err error) {
	err = s.write(ctx, "store.MarkNotification", func(tx pgx.Tx) error {
		row, err := one[notificationRow](ctx, tx, statements.NotificationMark, env, id, read, cleared)
		if isNoRows(err) {
			return noNotification(id)
		}
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

func noNotification(id uuid.UUID) error {
	return fault.New("store.Notification", fault.NotFound, "Notification with id "+id.String()+" not found")
}

// MarkNotificationsRead marks all notices of an environment as read.
func (s *Store) MarkNotificationsRead(ctx context.Context, env intent.EnvironmentID) error {
	return s.write(ctx, "store.MarkNotificationsRead", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.NotificationMarkAll, env)
		return err
	})
}

// UnreadNotifications counts the notices that are neither read nor cleared.
func (s *Store) UnreadNotifications(ctx context.Context, env intent.EnvironmentID) (n int, err error) {
	err = s.read(ctx, "store.UnreadNotifications", func(q querier) error {
		return q.QueryRow(ctx, statements.NotificationUnread, env).Scan(&n)
	})
	return n, err
}

// DeleteNotificationsBefore deletes notices that last occurred before a time, and returns how many.
func (s *Store) DeleteNotificationsBefore(
	ctx context.Context,
	env intent.EnvironmentID,
	t time.Time,
) (n int, err error) {
	err = s.write(ctx, "store.DeleteNotificationsBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.NotificationDelete, env, t)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}
