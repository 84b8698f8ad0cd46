package people

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// checkName returns a user name as it is stored.
func checkName(name string) (string, error) {
	if name == "" {
		return "", fault.New("people.user", fault.Invalid, "the username cannot be an empty string")
	}
	plain := norm.NFKC.String(name)
	if len(name) > 400 || utf8.RuneCountInString(plain) > 100 {
		return "", fault.New("people.user", fault.Invalid, "the username should be at most 100 characters long")
	}
	for _, r := range plain {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._@+-", r) {
			return "", fault.New("people.user", fault.Invalid,
				"the username may have letters, digits and the characters . _ @ + -")
		}
	}
	return plain, nil
}

// Users lists all users.
func (s *Service) Users(ctx context.Context) ([]access.User, error) { return s.store.Users(ctx) }

// AddUser adds a user who logs in with a password.
func (s *Service) AddUser(ctx context.Context, name, password string) (access.User, error) {
	if err := s.needEnabled(); err != nil {
		return access.User{}, err
	}
	u, hash, err := s.newUser(ctx, name, password)
	if err != nil {
		return u, err
	}
	audit.Subject(ctx, "user "+u.Name)
	return u, s.store.CreateUser(ctx, u, hash)
}

func (s *Service) newUser(ctx context.Context, name, password string) (access.User, string, error) {
	name, err := checkName(name)
	if err != nil {
		return access.User{}, "", err
	}
	secret, err := checkNew(name, password)
	if err != nil {
		return access.User{}, "", err
	}
	hash, err := s.hasher.hash(ctx, secret)
	return access.User{ID: uuid.New(), Name: name, Method: access.ByPassword, Created: s.now()}, hash, err
}

// DeleteUser deletes a user, who is logged out at once.
func (s *Service) DeleteUser(ctx context.Context, name string) error {
	return s.changeUser(ctx, name, func(u access.User) error { return s.store.DeleteUser(ctx, u.ID) })
}

// DisableUser keeps a user from logging in, or lets them do so again. Who is logged in is logged out at once.
func (s *Service) DisableUser(ctx context.Context, name string, disabled bool) error {
	return s.changeUser(ctx, name, func(u access.User) error {
		audit.Change(ctx, map[string]bool{"disabled": u.Disabled}, map[string]bool{"disabled": disabled})
		return s.store.DisableUser(ctx, u.ID, disabled)
	})
}

// SetPassword gives a user another password and ends their sessions, except that of the sender.
func (s *Service) SetPassword(ctx context.Context, name, password string) error {
	return s.changeUser(ctx, name, func(u access.User) error {
		audit.Subject(ctx, "password of the user "+u.Name)
		secret, err := checkNew(u.Name, password)
		if err != nil {
			return err
		}
		hash, err := s.hasher.hash(ctx, secret)
		if err != nil {
			return err
		}
		var except uuid.UUID
		if sender := access.Of(ctx); sender.User == u.ID {
			except, _ = uuid.Parse(sender.Credential)
		}
		return s.store.SetPasswordHash(ctx, u.ID, hash, except)
	})
}

// ChangeOwnPassword gives the sender another password, if they know the present one. Wrong attempts count as failed
// logins, so that a session that was stolen is no way to try passwords.
func (s *Service) ChangeOwnPassword(ctx context.Context, current, password string) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	sender := access.Of(ctx)
	if _, err := checkNew(sender.Name, password); err != nil {
		return err
	}
	if _, err := s.attempt(ctx, sender.Name, current); err != nil {
		if fault.Is(err, fault.Unauthorized) {
			return fault.New("people.password", fault.Unauthorized, "The current password is incorrect")
		}
		return err
	}
	return s.SetPassword(ctx, sender.Name, password)
}

func (s *Service) changeUser(ctx context.Context, name string, change func(access.User) error) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	u, err := s.user(ctx, name)
	if err != nil {
		return err
	}
	audit.Subject(ctx, "user "+u.Name)
	if err := s.mayManage(ctx, u); err != nil {
		return err
	}
	err = change(u)
	s.changed()
	return err
}

// mayManage lets the sender change only those other users who may do nothing that the sender may not do: whoever sets
// a password can log in with it.
func (s *Service) mayManage(ctx context.Context, u access.User) error {
	sender := access.Of(ctx)
	if !sender.Known() || sender.User == u.ID {
		return nil
	}
	bindings, err := s.Bindings(ctx, u.ID, uuid.Nil)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		target := access.Target{Project: b.Scope.Project, Environment: b.Scope.Environment}
		if verb, lacks := sender.Lacks(b.Role, target); lacks {
			return fault.New("people.user", fault.Forbidden, fmt.Sprintf(
				"%s may do %s on %s, which you may not do yourself", u.Name, verb, b.Scope)).
				Hint("ask an administrator of the server")
		}
	}
	return nil
}

// user returns the user with a name, with an error that says the name.
func (s *Service) user(ctx context.Context, name string) (access.User, error) {
	u, err := s.store.UserNamed(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return u, fault.New("people.user", fault.NotFound, "User with name "+name+" does not exist.")
	}
	return u, err
}
