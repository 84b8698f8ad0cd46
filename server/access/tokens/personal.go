package tokens

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// maxPersonal is how many tokens one person may have.
const maxPersonal = 100

// byPersonal returns the owner of a token, limited to the token's roles and scope.
func (s *Service) byPersonal(ctx context.Context, text string, now time.Time) (proof, error) {
	if !wellFormed(text, personalPrefix) {
		return proof{}, refused()
	}
	t, err := s.Store.PersonalToken(ctx, hashOf(text))
	switch {
	case fault.Is(err, fault.NotFound):
		return proof{}, refused()
	case err != nil:
		return proof{}, err
	case !now.Before(t.Expires):
		return proof{}, refused()
	}
	owner, err := s.Store.User(ctx, t.User)
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && owner.Disabled:
		return proof{}, refused()
	case err != nil:
		return proof{}, err
	}
	p := access.Principal{Kind: access.Token, Name: owner.Name, User: owner.ID, Credential: t.ID.String()}
	if p.Bindings, err = s.People.Bindings(ctx, owner.ID, uuid.Nil); err != nil {
		return proof{}, err
	}
	if p.Within, err = s.within(ctx, t); err != nil {
		return proof{}, err
	}
	if len(p.Within) == 0 { // no role of the token exists any more; an empty limit would be none
		return proof{}, refused()
	}
	return proof{principal: p, expires: t.Expires, used: dueAt(t.LastUsed, now, func() error {
		return s.Store.UsedPersonalToken(context.WithoutCancel(ctx), t.ID, now)
	})}, nil
}

// within returns what a token allows at most.
func (s *Service) within(ctx context.Context, t access.PersonalToken) ([]access.Binding, error) {
	roles, err := s.People.Roles(ctx)
	var out []access.Binding
	for _, r := range roles {
		if slices.Contains(t.Roles, r.Name) {
			out = append(out, access.Binding{Role: r, Scope: t.Scope})
		}
	}
	return out, err
}

// CreatePersonal makes a token for the sender, who must be a person: its name, roles and scope are those of t. The text
// is not kept: this is the only time that it can be shown.
func (s *Service) CreatePersonal(
	ctx context.Context, t access.PersonalToken, lifetime time.Duration,
) (access.PersonalToken, string, error) {
	if err := s.needEnabled(); err != nil {
		return t, "", err
	}
	sender := access.Of(ctx)
	if sender.Kind != access.Person {
		return t, "", fault.New("tokens.CreatePersonal", fault.Forbidden, "only a person can make a token").
			Hint("log in first")
	}
	t.ID, t.User, t.Created = uuid.New(), sender.User, s.Now().Truncate(time.Microsecond)
	t.Expires = t.Created.Add(lifetime)
	if err := s.checkPersonal(ctx, t); err != nil {
		return t, "", err
	}
	present, err := s.Store.PersonalTokens(ctx, t.User)
	if err != nil {
		return t, "", err
	}
	if len(present) >= maxPersonal {
		return t, "", fault.New("tokens.CreatePersonal", fault.Conflict,
			fmt.Sprintf("you have %d tokens already", len(present))).Hint("revoke those that you do not need")
	}
	text := newText(personalPrefix)
	if err := s.Store.AddPersonalToken(ctx, t, hashOf(text)); err != nil {
		return t, "", err
	}
	audit.Subject(ctx, "the personal token "+t.Name)
	audit.Change(ctx, nil, map[string]any{
		"id": t.ID, "name": t.Name, "roles": t.Roles, "scope": t.Scope.String(), "expires": t.Expires,
	})
	return t, text, nil
}

func (s *Service) checkPersonal(ctx context.Context, t access.PersonalToken) error {
	bad := func(format string, args ...any) error {
		return fault.New("tokens.CreatePersonal", fault.Invalid, fmt.Sprintf(format, args...))
	}
	if err := checkName("a token", t.Name); err != nil {
		return err
	}
	roles, err := s.People.Roles(ctx)
	if err != nil {
		return err
	}
	if len(t.Roles) == 0 || len(t.Roles) > 20 {
		return bad("a token needs at least one role, and at most 20")
	}
	for _, name := range t.Roles {
		if !slices.ContainsFunc(roles, func(r access.Role) bool { return r.Name == name }) {
			return bad("there is no role %q", name)
		}
	}
	switch {
	case !t.Expires.After(t.Created):
		return bad("say when the token expires")
	case t.Expires.After(t.Created.Add(s.MaxLifetime)):
		return bad("a token may last at most %d days on this server", int(s.MaxLifetime.Hours()/24))
	case len(t.Scope.Tag) > 100:
		return bad("a tag should be at most 100 bytes long")
	}
	return nil
}

// checkName checks the name that somebody gives to something.
func checkName(what, name string) error {
	if strings.TrimSpace(name) != name || name == "" || utf8.RuneCountInString(name) > 100 ||
		!utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fault.New("tokens.name", fault.Invalid, "the name of "+what+" is a line of 1 to 100 characters")
	}
	return nil
}

// Personal lists the sender's own tokens.
func (s *Service) Personal(ctx context.Context) ([]access.PersonalToken, error) {
	return s.Store.PersonalTokens(ctx, access.Of(ctx).User)
}

// RevokePersonal revokes one of the sender's own tokens.
func (s *Service) RevokePersonal(ctx context.Context, id uuid.UUID) error {
	audit.Subject(ctx, "the personal token "+id.String())
	err := s.Store.DeletePersonalToken(ctx, access.Of(ctx).User, id)
	s.known.forget()
	if fault.Is(err, fault.NotFound) {
		return fault.New("tokens.RevokePersonal", fault.NotFound, "you have no such token")
	}
	return err
}
