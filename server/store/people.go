package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

type personRow struct {
	ID            uuid.UUID
	Name          string
	Method        string
	Disabled      bool
	Groups        []string
	Created       time.Time
	LastLogin     *time.Time
	Administrator bool
}

func (r personRow) value() (access.User, error) {
	return access.User{
		ID: r.ID, Name: r.Name, Method: r.Method, Disabled: r.Disabled, Administrator: r.Administrator,
		Groups: r.Groups, Created: r.Created.UTC(), LastLogin: utc(r.LastLogin),
	}, nil
}

// Users lists all users by name.
func (s *Store) Users(ctx context.Context) ([]access.User, error) {
	return listed(ctx, s, "store.Users", personRow.value, statements.PersonList, nil, "")
}

// User returns the user with an id.
func (s *Store) User(ctx context.Context, id uuid.UUID) (access.User, error) {
	return s.oneUser(ctx, id, "")
}

// UserNamed returns the user with a name, whatever its case.
func (s *Store) UserNamed(ctx context.Context, name string) (access.User, error) {
	if name == "" {
		return access.User{}, fault.New("store.User", fault.NotFound, "there is no such user")
	}
	return s.oneUser(ctx, nil, name)
}

func (s *Store) oneUser(ctx context.Context, id any, name string) (access.User, error) {
	var out access.User
	err := s.read(ctx, "store.User", func(q querier) error {
		row, err := one[personRow](ctx, q, statements.PersonList, id, name)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// CreateUser stores a user with the hash of a password; Conflict for a name that is taken.
func (s *Store) CreateUser(ctx context.Context, u access.User, hash string) error {
	return s.write(ctx, "store.User", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.PersonCreate, u.ID, u.Name, u.Method, hash)
		return err
	})
}

// PasswordHash returns the hash of a user's password; empty: the user has none.
func (s *Store) PasswordHash(ctx context.Context, user uuid.UUID) (hash string, err error) {
	err = s.read(ctx, "store.User", func(q querier) error {
		return q.QueryRow(ctx, statements.PersonPassword, user).Scan(&hash)
	})
	return hash, err
}

// SetPasswordHash replaces the hash of a user's password and ends the user's sessions, except one; uuid.Nil spares
// none.
func (s *Store) SetPasswordHash(ctx context.Context, user uuid.UUID, hash string, except uuid.UUID) error {
	return s.write(ctx, "store.User", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.PersonPasswordSet, user, hash)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.SessionEndAll, user, orNull(except))
		return err
	})
}

// Rehash replaces a hash by another one of the same password, unless the password has changed.
func (s *Store) Rehash(ctx context.Context, user uuid.UUID, old, hash string) error {
	return s.state(ctx, "store.User", func(q querier) error {
		_, err := q.Exec(ctx, statements.PersonRehash, user, old, hash)
		return err
	})
}

// DisableUser lets a user log in no more, or again. It ends the user's sessions; Conflict for the last administrator.
func (s *Store) DisableUser(ctx context.Context, user uuid.UUID, disabled bool) error {
	return s.keepingAnAdministrator(ctx, "store.User", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.PersonDisable, user, disabled)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.SessionEndAll, user, nil)
		return err
	})
}

// DeleteUser deletes a user with their sessions and bindings; Conflict for the last administrator.
func (s *Store) DeleteUser(ctx context.Context, user uuid.UUID) error {
	return s.keepingAnAdministrator(ctx, "store.User", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.PersonDelete, user))
	})
}

// keepingAnAdministrator makes a change, unless it would leave a server that had an administrator without one.
func (s *Store) keepingAnAdministrator(ctx context.Context, op string, change func(pgx.Tx) error) error {
	return s.write(ctx, op, func(tx pgx.Tx) error {
		// Two administrators who remove each other at the same time take turns.
		if _, err := tx.Exec(ctx, statements.PeopleLock); err != nil {
			return err
		}
		var before, after bool
		if err := tx.QueryRow(ctx, statements.AdministratorAny).Scan(&before); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, statements.AdministratorAny).Scan(&after); err != nil {
			return err
		}
		if before && !after {
			return fault.New(op, fault.Conflict, "this is the last administrator of the server").
				Hint("make somebody else an administrator first")
		}
		return nil
	})
}

// LoggedIn notes when a user logged in.
func (s *Store) LoggedIn(ctx context.Context, user uuid.UUID, at time.Time) error {
	return s.state(ctx, "store.User", func(q querier) error {
		_, err := q.Exec(ctx, statements.PersonLoggedIn, user, at)
		return err
	})
}

type roleRow struct {
	Name        string
	Description string
	Labels      []string
	Verbs       []string
}

func (r roleRow) value() (access.Role, error) {
	return access.Role{
		Name: r.Name, Description: r.Description, Labels: textsOf[access.Label](r.Labels),
		Verbs: textsOf[access.Verb](r.Verbs),
	}, nil
}

// textsOf converts a list of one kind of text into another.
func textsOf[B, A ~string](in []A) []B {
	out := make([]B, len(in))
	for i, s := range in {
		out[i] = B(s)
	}
	return out
}

// OwnRoles lists the roles that are not built in.
func (s *Store) OwnRoles(ctx context.Context) ([]access.Role, error) {
	return listed(ctx, s, "store.Roles", roleRow.value, statements.RoleList)
}

// CreateRole stores a role; Conflict for a name that is taken.
func (s *Store) CreateRole(ctx context.Context, r access.Role) error {
	return s.write(ctx, "store.Role", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.RoleCreate, r.Name, r.Description, textsOf[string](r.Labels),
			textsOf[string](r.Verbs))
		return err
	})
}

// UpdateRole changes what a role allows.
func (s *Store) UpdateRole(ctx context.Context, r access.Role) error {
	return s.write(ctx, "store.Role", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.RoleUpdate, r.Name, r.Description, textsOf[string](r.Labels),
			textsOf[string](r.Verbs)))
	})
}

// DeleteRole deletes a role; Conflict while somebody has it.
func (s *Store) DeleteRole(ctx context.Context, name string) error {
	return s.write(ctx, "store.Role", func(tx pgx.Tx) error {
		var locked string
		if err := tx.QueryRow(ctx, statements.RoleLock, name).Scan(&locked); err != nil {
			return err
		}
		var bound bool
		if err := tx.QueryRow(ctx, statements.RoleBound, name).Scan(&bound); err != nil {
			return err
		}
		if bound {
			return fault.New("store.Role", fault.Conflict, "somebody still has the role "+name).
				Hint("take it away from everybody first")
		}
		return affected(tx.Exec(ctx, statements.RoleDelete, name))
	})
}

type bindingRow struct {
	ID          uuid.UUID
	Kind        string
	Person      *uuid.UUID
	Subject     string
	Role        string
	Project     *uuid.UUID
	Environment *uuid.UUID
	Tag         string
	Created     time.Time
	CreatedBy   string
}

func (r bindingRow) value() (access.Grant, error) {
	return access.Grant{
		ID: r.ID, Kind: access.SubjectKind(r.Kind), User: orNil(r.Person), Subject: r.Subject, Role: r.Role,
		Scope:   access.Scope{Project: orNil(r.Project), Environment: orNil(r.Environment), Tag: r.Tag},
		Created: r.Created.UTC(), By: r.CreatedBy,
	}, nil
}

// orNull returns an id as a column holds it, with NULL for no id.
func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func orNil(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

// Grants lists who has which role where: of one user, in one project, or all if both are uuid.Nil.
func (s *Store) Grants(ctx context.Context, user, project uuid.UUID) ([]access.Grant, error) {
	return listed(ctx, s, "store.Grants", bindingRow.value, statements.BindingList, nil, orNull(user), orNull(project))
}

// Grant returns one grant.
func (s *Store) Grant(ctx context.Context, id uuid.UUID) (out access.Grant, err error) {
	err = s.read(ctx, "store.Binding", func(q querier) error {
		row, err := one[bindingRow](ctx, q, statements.BindingList, id, nil, nil)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// GrantsFor lists the grants that hold for a user, directly or through groups, or for a token.
func (s *Store) GrantsFor(ctx context.Context, user uuid.UUID, token string) ([]access.Grant, error) {
	return listed(ctx, s, "store.Grants", bindingRow.value, statements.BindingOf, orNull(user), token)
}

// AddGrant stores a grant. Conflict: it is there already. NotFound: there is no such user, project, environment or
// role.
func (s *Store) AddGrant(ctx context.Context, g access.Grant, ownRole bool) error {
	return s.write(ctx, "store.Binding", func(tx pgx.Tx) error {
		if ownRole {
			var locked string
			if err := tx.QueryRow(ctx, statements.RoleLock, g.Role).Scan(&locked); err != nil {
				return translateRole(err)
			}
		}
		subject := g.Subject
		if g.Kind == access.OfUser {
			subject = ""
		}
		_, err := tx.Exec(ctx, statements.BindingAdd, g.ID, string(g.Kind), orNull(g.User), subject, g.Role,
			orNull(g.Scope.Project), orNull(g.Scope.Environment), g.Scope.Tag, g.By)
		return err
	})
}

func translateRole(err error) error {
	if isNoRows(err) {
		return fault.New("store.Role", fault.NotFound, "there is no such role")
	}
	return err
}

// DeleteGrant takes a role away; Conflict for that of the last administrator.
func (s *Store) DeleteGrant(ctx context.Context, id uuid.UUID) error {
	return s.keepingAnAdministrator(ctx, "store.Binding", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.BindingDelete, id))
	})
}

// SetFirstLink stores the hash of the link that makes the first administrator. An earlier link is void. It reports
// false, and stores nothing, if there are users.
func (s *Store) SetFirstLink(ctx context.Context, hash string, expires time.Time) (stored bool, err error) {
	err = s.write(ctx, "store.FirstLink", func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, statements.PersonAny).Scan(&stored); err != nil {
			return err
		}
		if stored = !stored; !stored {
			return nil
		}
		_, err := tx.Exec(ctx, statements.FirstLinkSet, hash, expires)
		return err
	})
	return stored, err
}

// FirstLinkWorks reports whether the first administrator can be made with the link that has this hash.
func (s *Store) FirstLinkWorks(ctx context.Context, hash string, now time.Time) (works bool, err error) {
	err = s.read(ctx, "store.FirstLink", func(q querier) error {
		return q.QueryRow(ctx, statements.FirstLinkGet, hash, now).Scan(&works)
	})
	return works, err
}

// UseFirstLink makes the first user, an administrator, and voids the link. NotFound: the link is wrong, used or
// expired.
func (s *Store) UseFirstLink(
	ctx context.Context, link string, now time.Time, u access.User, hash string, g access.Grant,
) error {
	return s.write(ctx, "store.FirstLink", func(tx pgx.Tx) error {
		if err := affected(tx.Exec(ctx, statements.FirstLinkUse, link, now)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.PeopleLock); err != nil {
			return err
		}
		var any bool
		if err := tx.QueryRow(ctx, statements.PersonAny).Scan(&any); err != nil {
			return err
		}
		if any {
			return pgx.ErrNoRows
		}
		if _, err := tx.Exec(ctx, statements.PersonCreate, u.ID, u.Name, u.Method, hash); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.BindingAdd, g.ID, string(g.Kind), u.ID, "", g.Role, nil, nil, "", g.By)
		return err
	})
}
