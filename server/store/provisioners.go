package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type provisionerTokenRow struct {
	ID      uuid.UUID
	Project uuid.UUID
	Name    string
	Made    time.Time
	MadeBy  string
	Expires time.Time
	Used    *time.Time
	Revoked *time.Time
	Hash    string
}

func (r provisionerTokenRow) value() (intent.ProvisionerToken, error) {
	return intent.ProvisionerToken{
		ID: r.ID, Project: r.Project, Name: r.Name, Made: r.Made.UTC(), MadeBy: r.MadeBy, Expires: r.Expires.UTC(),
		Used: utc(r.Used), Revoked: utc(r.Revoked),
	}, nil
}

// AddProvisionerToken stores a join token with the hash of its secret.
func (s *Store) AddProvisionerToken(ctx context.Context, t intent.ProvisionerToken, hash string) error {
	return s.exec(
		ctx,
		"store.ProvisionerToken",
		statements.ProvisionerTokenAdd,
		t.ID,
		t.Project,
		cleanText(t.Name),
		hash,
		t.Made,
		cleanText(t.MadeBy),
		t.Expires,
	)
}

// ProvisionerTokens lists the join tokens of a project, the newest first.
func (s *Store) ProvisionerTokens(ctx context.Context, project uuid.UUID) ([]intent.ProvisionerToken, error) {
	return listed(
		ctx,
		s,
		"store.ProvisionerTokens",
		provisionerTokenRow.value,
		statements.ProvisionerTokens,
		project,
		nil,
	)
}

// ProvisionerToken returns a join token, and the hash of its secret.
func (s *Store) ProvisionerToken(
	ctx context.Context, id uuid.UUID,
) (out intent.ProvisionerToken, hash string, err error) {
	err = s.read(ctx, "store.ProvisionerToken", func(q querier) error {
		row, err := one[provisionerTokenRow](ctx, q, statements.ProvisionerTokens, nil, id)
		if err == nil {
			out, err = row.value()
			hash = row.Hash
		}
		return err
	})
	return out, hash, err
}

// ProvisionerTokensWaiting returns how many join tokens of a project can still be used.
func (s *Store) ProvisionerTokensWaiting(ctx context.Context, project uuid.UUID, now time.Time) (n int, err error) {
	err = s.read(ctx, "store.ProvisionerTokensWaiting", func(q querier) error {
		return q.QueryRow(ctx, statements.ProvisionerTokensWaiting, project, now).Scan(&n)
	})
	return n, err
}

// RevokeProvisionerToken ends a join token of a project that was not used. NotFound: there is no such token.
func (s *Store) RevokeProvisionerToken(ctx context.Context, project, id uuid.UUID, at time.Time) error {
	return s.write(ctx, "store.ProvisionerToken", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ProvisionerTokenRevoke, project, id, at))
	})
}

// JoinProvisioner uses a join token, and records the provisioner with its certificate. Conflict: the token was used,
// has ended or was revoked.
func (s *Store) JoinProvisioner(
	ctx context.Context, token uuid.UUID, p intent.Provisioner, at time.Time,
) (id uuid.UUID, err error) {
	const op = "store.JoinProvisioner"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, statements.ProvisionerTokenUse, token, at)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return fault.New(op, fault.Conflict, "the join token was used, has ended, or was revoked").
				Hint("make a new one with ordain provisioner token create")
		}
		return tx.QueryRow(ctx, statements.ProvisionerJoin, p.ID, p.Project, cleanText(p.Name), at, p.Serial,
			p.Expires).Scan(&id)
	})
	return id, err
}

// RenewProvisioner records the certificate that takes the place of the one with another serial number. NotFound: the
// provisioner has another certificate by now, or was revoked.
func (s *Store) RenewProvisioner(ctx context.Context, id uuid.UUID, after, serial string, expires time.Time) error {
	return s.write(ctx, "store.Provisioner", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ProvisionerRenew, id, after, serial, expires))
	})
}

// SeeProvisioner records that a provisioner is there, and what it is.
func (s *Store) SeeProvisioner(ctx context.Context, id uuid.UUID, program string, room int) error {
	return s.exec(ctx, "store.Provisioner", statements.ProvisionerSeen, id, cleanText(program), room)
}

// RevokeProvisioner ends a provisioner. Its leases end by themselves. NotFound: there is none, or it was revoked.
func (s *Store) RevokeProvisioner(ctx context.Context, id uuid.UUID) error {
	return s.write(ctx, "store.Provisioner", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ProvisionerRevoke, id))
	})
}

type provisionerRow struct {
	ID      uuid.UUID
	Project uuid.UUID
	Name    string
	Joined  time.Time
	Revoked *time.Time
	Seen    *time.Time
	Program string
	Room    int
	Serial  string
	Expires time.Time
	Problem string
	Running int
}

func (r provisionerRow) value() (intent.Provisioner, error) {
	return intent.Provisioner{
		ID: r.ID, Project: r.Project, Name: r.Name, Joined: r.Joined.UTC(), Revoked: utc(r.Revoked), Seen: utc(r.Seen),
		Program: r.Program, Room: r.Room, Serial: r.Serial, Expires: r.Expires.UTC(), Problem: r.Problem,
		Running: r.Running,
	}, nil
}

// Provisioners lists the provisioners that run elsewhere; project nil: of all projects.
func (s *Store) Provisioners(ctx context.Context, project *uuid.UUID) ([]intent.Provisioner, error) {
	return listed(ctx, s, "store.Provisioners", provisionerRow.value, statements.Provisioners, project, nil)
}

// Provisioner returns a provisioner that runs elsewhere.
func (s *Store) Provisioner(ctx context.Context, id uuid.UUID) (intent.Provisioner, error) {
	return s.oneProvisioner(ctx, statements.Provisioners, nil, id)
}

// ProvisionerNamed returns the provisioner of a project with a name, without the number of its tasks.
func (s *Store) ProvisionerNamed(ctx context.Context, project uuid.UUID, name string) (intent.Provisioner, error) {
	return s.oneProvisioner(ctx, statements.ProvisionerNamed, project, cleanText(name))
}

func (s *Store) oneProvisioner(ctx context.Context, sql string, args ...any) (out intent.Provisioner, err error) {
	err = s.read(ctx, "store.Provisioner", func(q querier) error {
		row, err := one[provisionerRow](ctx, q, sql, args...)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ForgetProvisionerTokens removes join tokens that ended before a time.
func (s *Store) ForgetProvisionerTokens(ctx context.Context, before time.Time) error {
	return s.exec(ctx, "store.ProvisionerToken", statements.ProvisionerTokenForget, before)
}
