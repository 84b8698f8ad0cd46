package store

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// EnvironmentNow is an environment and what is going on in it.
type EnvironmentNow struct {
	intent.Environment
	LastVersion int // the number of the newest version; 0: none
	Compiling   bool
}

type windowEnvironmentRow struct {
	environmentRow
	LastVersion int
	Compiling   bool
	Place       []string
}

type windowNotificationRow struct {
	notificationRow
	Place []string
}

// spanOf converts the rows of a window.
func spanOf[R, V any](rows []R, more bool, convertRow func(R) (V, []string, error)) (out Span[V], err error) {
	out.More = more
	for _, r := range rows {
		v, place, rowErr := convertRow(r)
		err = errors.Join(err, rowErr)
		out.Items, out.Places = append(out.Items, v), append(out.Places, place)
	}
	return out, err
}

// EnvironmentWindow returns some of the environments with one of these ids, or of all environments if ids is nil. The
// keys of the order are id and name.
func (s *Store) EnvironmentWindow(
	ctx context.Context, ids []uuid.UUID, in Window,
) (out Span[EnvironmentNow], err error) {
	err = s.read(ctx, "store.EnvironmentWindow", func(q querier) error {
		rows, more, err := readWindow[windowEnvironmentRow](ctx, q, environmentWindow, newWindowSQL(ids),
			statements.WindowEnvironments, in)
		if err != nil {
			return err
		}
		out, err = spanOf(rows, more, func(r windowEnvironmentRow) (EnvironmentNow, []string, error) {
			e, err := r.environmentRow.value()
			return EnvironmentNow{e, r.LastVersion, r.Compiling}, r.Place, err
		})
		return err
	})
	return out, err
}

// CountEnvironments counts the environments of EnvironmentWindow.
func (s *Store) CountEnvironments(ctx context.Context, ids []uuid.UUID) (n int, err error) {
	err = s.read(ctx, "store.CountEnvironments", func(q querier) error {
		w := newWindowSQL(ids)
		return q.QueryRow(ctx, w.count(statements.WindowEnvironments), w.args...).Scan(&n)
	})
	return n, err
}

func notificationSQL(env intent.EnvironmentID, cleared *bool) *windowSQL {
	w := newWindowSQL(env)
	w.truth("cleared", cleared)
	return w
}

// NotificationWindow returns some of the notices of an environment, cleared or not if cleared is not nil. The key of
// the order is created.
func (s *Store) NotificationWindow(
	ctx context.Context, env intent.EnvironmentID, cleared *bool, in Window,
) (out Span[intent.Notification], err error) {
	err = s.read(ctx, "store.NotificationWindow", func(q querier) error {
		rows, more, err := readWindow[windowNotificationRow](ctx, q, notificationWindow,
			notificationSQL(env, cleared), statements.WindowNotifications, in)
		if err != nil {
			return err
		}
		out, err = spanOf(rows, more, func(r windowNotificationRow) (intent.Notification, []string, error) {
			n, err := r.notificationRow.value()
			return n, r.Place, err
		})
		return err
	})
	return out, err
}

// CountNotifications counts the notices of NotificationWindow.
func (s *Store) CountNotifications(
	ctx context.Context, env intent.EnvironmentID, cleared *bool,
) (n int, err error) {
	err = s.read(ctx, "store.CountNotifications", func(q querier) error {
		w := notificationSQL(env, cleared)
		return q.QueryRow(ctx, w.count(statements.WindowNotifications), w.args...).Scan(&n)
	})
	return n, err
}
