package servertest

import (
	"testing"
	"time"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
)

// Password is the password of every person of a test.
const Password = "correct horse battery"

// RequireLogin makes people log in from now on, also with options. Doors are made after this.
func (s *Server) RequireLogin(options ...func(*people.Config)) {
	cfg := people.Config{
		Store: s.Store, Bus: s.Bus, Logger: s.Log, Enabled: true,
		Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
	}
	for _, set := range options {
		set(&cfg)
	}
	s.People = people.New(cfg)
}

// LetPeopleWait moves the clock of People, which else shows the real time.
func (s *Server) LetPeopleWait(d time.Duration) { s.ahead.Add(int64(d)) }

// AddPerson makes a user with roles. The bindings name built-in roles, or roles that exist.
func (s *Server) AddPerson(t testing.TB, name string, bindings ...access.Binding) access.User {
	t.Helper()
	u, err := s.People.AddUser(t.Context(), name, Password)
	if err != nil {
		t.Fatal(err)
	}
	administrator, _ := access.Off{}.Authenticate(nil) // never fails
	ctx := access.With(t.Context(), administrator)
	for _, b := range bindings {
		target := access.Target{Project: b.Scope.Project, Environment: b.Scope.Environment}
		g := access.Grant{Kind: access.OfUser, Subject: name, Role: b.Role.Name, Scope: b.Scope}
		if _, err := s.People.Give(ctx, g, target); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// Login logs a person in, and returns the token for the header Authorization or, with access.ConsoleClient, for the
// cookie.
func (s *Server) Login(t testing.TB, client, name string) people.Token {
	t.Helper()
	token, err := s.People.Login(t.Context(), client, name, Password, "")
	if err != nil {
		t.Fatal(err)
	}
	return token
}
