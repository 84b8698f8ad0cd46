package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

type personalTokenRow struct {
	ID          uuid.UUID
	Person      uuid.UUID
	Name        string
	Roles       []string
	Project     *uuid.UUID
	Environment *uuid.UUID
	Tag         string
	Created     time.Time
	Expires     time.Time
	LastUsed    *time.Time
}

func (r personalTokenRow) value() (access.PersonalToken, error) {
	return access.PersonalToken{
		ID: r.ID, User: r.Person, Name: r.Name, Roles: r.Roles,
		Scope:   access.Scope{Project: orNil(r.Project), Environment: orNil(r.Environment), Tag: r.Tag},
		Created: r.Created.UTC(), Expires: r.Expires.UTC(), LastUsed: utc(r.LastUsed),
	}, nil
}

// AddPersonalToken stores a token with the hash of its text. NotFound: its owner is disabled or gone. Conflict: the
// owner has a token with this name.
func (s *Store) AddPersonalToken(ctx context.Context, t access.PersonalToken, hash string) error {
	return s.write(ctx, "store.User", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.PersonalTokenAdd, t.ID, t.User, t.Name, hash, t.Roles,
			orNull(t.Scope.Project), orNull(t.Scope.Environment), t.Scope.Tag, t.Created, t.Expires))
	})
}

// PersonalTokens lists the tokens of a person, the newest first.
func (s *Store) PersonalTokens(ctx context.Context, user uuid.UUID) ([]access.PersonalToken, error) {
	return listed(ctx, s, "store.Tokens", personalTokenRow.value, statements.PersonalTokenList, user, "")
}

// PersonalToken returns the token whose text has this hash, also if it has expired.
func (s *Store) PersonalToken(ctx context.Context, hash string) (out access.PersonalToken, err error) {
	err = s.read(ctx, "store.Token", func(q querier) error {
		row, err := one[personalTokenRow](ctx, q, statements.PersonalTokenList, nil, hash)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// DeletePersonalToken deletes a token of a person.
func (s *Store) DeletePersonalToken(ctx context.Context, user, id uuid.UUID) error {
	return s.write(ctx, "store.Token", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.PersonalTokenDelete, user, id))
	})
}

// UsedPersonalToken notes when a token was used.
func (s *Store) UsedPersonalToken(ctx context.Context, id uuid.UUID, at time.Time) error {
	return s.used(ctx, statements.PersonalTokenUsed, id, at)
}

func (s *Store) used(ctx context.Context, statement string, id uuid.UUID, at time.Time) error {
	return s.state(ctx, "store.Token", func(q querier) error {
		_, err := q.Exec(ctx, statement, id, at)
		return err
	})
}

type environmentTokenRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	ClientTypes []string
	Idempotent  bool
	CreatedBy   string
	Issued      time.Time
	Expires     *time.Time
	Revoked     *time.Time
	LastUsed    *time.Time
}

func (r environmentTokenRow) value() (access.EnvironmentToken, error) {
	return access.EnvironmentToken{
		ID: r.ID, Environment: r.Environment, ClientTypes: r.ClientTypes, Idempotent: r.Idempotent, By: r.CreatedBy,
		Issued: r.Issued.UTC(), Expires: utc(r.Expires), Revoked: utc(r.Revoked), LastUsed: utc(r.LastUsed),
	}, nil
}

// AddEnvironmentToken stores a token. If it is idempotent and there is one for the same client types already, it
// returns that one.
func (s *Store) AddEnvironmentToken(
	ctx context.Context, t access.EnvironmentToken,
) (out access.EnvironmentToken, err error) {
	out = t
	err = s.write(ctx, "store.Token", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.EnvironmentTokenAdd, t.ID, t.Environment, t.ClientTypes, t.Idempotent, t.By,
			t.Issued, t.Expires)
		if err != nil || tag.RowsAffected() == 1 {
			return err
		}
		row, err := one[environmentTokenRow](ctx, tx, statements.EnvironmentTokenSame, t.Environment, t.ClientTypes)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// EnvironmentTokens lists the tokens of an environment, the newest first, also those that were revoked lately.
func (s *Store) EnvironmentTokens(ctx context.Context, env uuid.UUID) ([]access.EnvironmentToken, error) {
	return listed(ctx, s, "store.Tokens", environmentTokenRow.value, statements.EnvironmentTokenList, env, nil)
}

// EnvironmentToken returns a token by its id.
func (s *Store) EnvironmentToken(ctx context.Context, id uuid.UUID) (out access.EnvironmentToken, err error) {
	err = s.read(ctx, "store.Token", func(q querier) error {
		row, err := one[environmentTokenRow](ctx, q, statements.EnvironmentTokenList, nil, id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// RevokeEnvironmentToken revokes a token of an environment.
func (s *Store) RevokeEnvironmentToken(ctx context.Context, env, id uuid.UUID, at time.Time) error {
	return s.write(ctx, "store.Token", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.EnvironmentTokenRevoke, env, id, at))
	})
}

// UsedEnvironmentToken notes when a token was used.
func (s *Store) UsedEnvironmentToken(ctx context.Context, id uuid.UUID, at time.Time) error {
	return s.used(ctx, statements.EnvironmentTokenUsed, id, at)
}

// TokenKey returns the sealed key that signs tokens. If there is none yet, it is the one that is passed.
func (s *Store) TokenKey(ctx context.Context, fresh []byte) (sealed []byte, err error) {
	err = s.write(ctx, "store.TokenKey", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.TokenKeyAdd, fresh); err != nil {
			return err
		}
		return tx.QueryRow(ctx, statements.TokenKeyGet).Scan(&sealed)
	})
	return sealed, err
}

type trustRow struct {
	ID          uuid.UUID
	Project     uuid.UUID
	Name        string
	Issuer      string
	Audience    string
	Claims      []byte
	Role        string
	Environment *uuid.UUID
	Lifetime    int
	Created     time.Time
	CreatedBy   string
	LastUsed    *time.Time
}

func (r trustRow) value() (access.Trust, error) {
	t := access.Trust{
		ID: r.ID, Project: r.Project, Name: r.Name, Issuer: r.Issuer, Audience: r.Audience, Role: r.Role,
		Environment: orNil(r.Environment), Lifetime: time.Duration(r.Lifetime) * time.Second, Created: r.Created.UTC(),
		By: r.CreatedBy, LastUsed: utc(r.LastUsed),
	}
	return t, json.Unmarshal(r.Claims, &t.Claims)
}

// AddTrust stores a trust; Conflict for a name that the project has given already.
func (s *Store) AddTrust(ctx context.Context, t access.Trust) error {
	claims, err := json.Marshal(t.Claims)
	if err != nil {
		return fault.Wrap("store.Trust", fault.Internal, err)
	}
	return s.write(ctx, "store.Trust", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.TrustAdd, t.ID, t.Project, t.Name, t.Issuer, t.Audience, claims, t.Role,
			orNull(t.Environment), int(t.Lifetime/time.Second), t.Created, t.By)
		return err
	})
}

// Trusts lists the trusts of a project by name.
func (s *Store) Trusts(ctx context.Context, project uuid.UUID) ([]access.Trust, error) {
	return listed(ctx, s, "store.Trusts", trustRow.value, statements.TrustList, project, "", nil)
}

// TrustsOf lists the trusts of all projects in an issuer.
func (s *Store) TrustsOf(ctx context.Context, issuer string) ([]access.Trust, error) {
	if issuer == "" {
		return nil, nil
	}
	return listed(ctx, s, "store.Trusts", trustRow.value, statements.TrustList, nil, issuer, nil)
}

// Trust returns one trust.
func (s *Store) Trust(ctx context.Context, id uuid.UUID) (out access.Trust, err error) {
	err = s.read(ctx, "store.Trust", func(q querier) error {
		row, err := one[trustRow](ctx, q, statements.TrustList, nil, "", id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// DeleteTrust deletes a trust of a project, with the tokens that jobs got by it and the roles that it was given.
func (s *Store) DeleteTrust(ctx context.Context, project, id uuid.UUID) error {
	return s.write(ctx, "store.Trust", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.TrustDelete, project, id)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.TrustBindingsDelete, id.String())
		return err
	})
}

// UsedTrust notes when a job got a token by a trust.
func (s *Store) UsedTrust(ctx context.Context, id uuid.UUID, at time.Time) error {
	return s.used(ctx, statements.TrustUsed, id, at)
}

// AddJobToken stores the token of a job with the hash of its text.
func (s *Store) AddJobToken(ctx context.Context, t access.JobToken, hash string) error {
	return s.state(ctx, "store.Token", func(q querier) error {
		_, err := q.Exec(ctx, statements.JobTokenAdd, hash, t.ID, t.Trust, t.Name, t.Expires)
		return err
	})
}

// JobToken returns the token of a job whose text has this hash, unless it has expired.
func (s *Store) JobToken(ctx context.Context, hash string, now time.Time) (out access.JobToken, err error) {
	err = s.read(ctx, "store.Token", func(q querier) error {
		row, err := one[access.JobToken](ctx, q, statements.JobTokenGet, hash, now)
		out = row
		out.Expires = out.Expires.UTC()
		return err
	})
	return out, err
}

// ForgetTokens removes the tokens of jobs that have expired, and other tokens that ended before a time.
func (s *Store) ForgetTokens(ctx context.Context, now, endedBefore time.Time) error {
	return s.state(ctx, "store.Token", func(q querier) error {
		if _, err := q.Exec(ctx, statements.TokenForgetJob, now); err != nil {
			return err
		}
		if _, err := q.Exec(ctx, statements.TokenForgetPersonal, endedBefore); err != nil {
			return err
		}
		_, err := q.Exec(ctx, statements.TokenForgetEnvironment, endedBefore)
		return err
	})
}

// Identify returns the user whom an identity provider knows by an identity, with their present groups. It makes the
// user at the first time; Conflict: somebody else has the name.
func (s *Store) Identify(ctx context.Context, u access.User, identity string) (out access.User, err error) {
	groups := u.Groups
	if groups == nil {
		groups = []string{}
	}
	err = s.write(ctx, "store.User", func(tx pgx.Tx) error {
		var id uuid.UUID
		err := tx.QueryRow(ctx, statements.PersonByIdentity, identity).Scan(&id)
		if isNoRows(err) {
			id = u.ID
			_, err = tx.Exec(ctx, statements.PersonIdentify, id, u.Name, identity, groups)
		} else if err == nil {
			_, err = tx.Exec(ctx, statements.PersonGroups, id, groups)
		}
		if err != nil {
			return err
		}
		row, err := one[personRow](ctx, tx, statements.PersonList, id, "")
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}
