package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/server/access"
)

type sessionRow struct {
	Hash     string
	ID       uuid.UUID
	Person   uuid.UUID
	Client   string
	Address  string
	Agent    string
	Created  time.Time
	Seen     time.Time
	Expires  time.Time
	Deadline time.Time
}

func (r sessionRow) value() (access.Session, error) {
	return access.Session{
		Hash: r.Hash, ID: r.ID, User: r.Person, Client: r.Client, Address: r.Address, Agent: r.Agent,
		Created: r.Created.UTC(), Seen: r.Seen.UTC(), Expires: r.Expires.UTC(), Deadline: r.Deadline.UTC(),
	}, nil
}

// StartSession stores a new session. It stores nothing for a user who is disabled or gone: NotFound.
func (s *Store) StartSession(ctx context.Context, n access.Session) error {
	return s.state(ctx, "store.Session", func(q querier) error {
		return affected(q.Exec(ctx, statements.SessionSave, n.Hash, n.ID, n.User, n.Client, n.Address, n.Agent,
			n.Created, n.Seen, n.Expires, n.Deadline))
	})
}

// TouchSession notes that a session was used. A session that has ended stays ended.
func (s *Store) TouchSession(ctx context.Context, hash string, seen, expires time.Time) error {
	return s.state(ctx, "store.Session", func(q querier) error {
		_, err := q.Exec(ctx, statements.SessionTouch, hash, seen, expires)
		return err
	})
}

// Session returns the session whose token has this hash; NotFound if it has ended.
func (s *Store) Session(ctx context.Context, hash string, now time.Time) (out access.Session, err error) {
	err = s.read(ctx, "store.Session", func(q querier) error {
		row, err := one[sessionRow](ctx, q, statements.SessionGet, hash, now)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// Sessions lists the sessions of a user, the one used last first.
func (s *Store) Sessions(ctx context.Context, user uuid.UUID, now time.Time) ([]access.Session, error) {
	return listed(ctx, s, "store.Sessions", sessionRow.value, statements.SessionList, user, now)
}

// DropSession ends the session whose token has this hash, if there is one.
func (s *Store) DropSession(ctx context.Context, hash string) error {
	return s.state(ctx, "store.Session", func(q querier) error {
		_, err := q.Exec(ctx, statements.SessionDelete, hash)
		return err
	})
}

// EndSession ends one session of a user.
func (s *Store) EndSession(ctx context.Context, user, id uuid.UUID) error {
	return s.write(ctx, "store.Session", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.SessionEnd, user, id))
	})
}

// Forget removes sessions that have expired, and failed logins that count no more.
func (s *Store) Forget(ctx context.Context, now, failuresBefore time.Time) error {
	return s.state(ctx, "store.Session", func(q querier) error {
		if _, err := q.Exec(ctx, statements.SessionExpire, now); err != nil {
			return err
		}
		_, err := q.Exec(ctx, statements.LoginForget, failuresBefore, now)
		return err
	})
}

// LoginSubject is what failed logins are counted for.
type LoginSubject struct {
	Kind    string // user or address
	Subject string // a hash
}

// TryLogin counts an attempt to log in as failed, for each subject, before the password is checked: attempts at the
// same time cannot outrun the count. delay says how long a subject is blocked after so many failures, which are
// forgotten when they are older than since. While one of the subjects is blocked, it counts nothing for that subject
// and returns until when.
func (s *Store) TryLogin(
	ctx context.Context,
	subjects []LoginSubject,
	now, since time.Time,
	delay func(kind string, failures int) time.Duration,
) (blocked time.Time, err error) {
	err = s.write(ctx, "store.Login", func(tx pgx.Tx) error {
		blocked = time.Time{}
		for _, subject := range subjects {
			var failures int
			var until time.Time
			if err := tx.QueryRow(ctx, statements.LoginTry, subject.Kind, subject.Subject, now, since).
				Scan(&failures, &until); err != nil {
				return err
			}
			if until.After(now) {
				if until.After(blocked) {
					blocked = until.UTC()
				}
				continue
			}
			if d := delay(subject.Kind, failures); d > 0 {
				_, err := tx.Exec(ctx, statements.LoginBlock, subject.Kind, subject.Subject, now.Add(d))
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	return blocked, err
}

// LoginSucceeded takes back what TryLogin counted: all failures of the user, and one of the address.
func (s *Store) LoginSucceeded(ctx context.Context, subjects []LoginSubject) error {
	return s.write(ctx, "store.Login", func(tx pgx.Tx) error {
		for _, subject := range subjects {
			if _, err := tx.Exec(ctx, statements.LoginRefund, subject.Kind, subject.Subject); err != nil {
				return err
			}
		}
		return nil
	})
}
