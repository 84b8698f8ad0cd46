package servertest

import (
	"context"
	"testing"
	"time"

	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/tokens"
)

// Password is the password of every person of a test.
const Password = "correct horse battery"

// RequireLogin makes people log in from now on, also with options. Doors are made after this.
func (s *Server) RequireLogin(options ...func(*people.Config)) {
	cfg := people.Config{
		Store: s.Store, Bus: s.Bus, Logger: s.Log, Enabled: true,
		Now: s.peoplesTime,
	}
	for _, set := range options {
		set(&cfg)
	}
	s.People = people.New(cfg)
	if err := s.makeTokens(context.Background()); err != nil {
		panic("servertest: " + err.Error())
	}
}

// makeTokens makes the service for tokens anew, which depends on People.
func (s *Server) makeTokens(ctx context.Context, options ...func(*tokens.Config)) (err error) {
	cfg := tokens.Config{
		Store: s.Store, People: s.People, Key: s.key, Logger: s.Log, Enabled: s.People.Enabled(),
		PublicURL: "https://ordain.example.org",
		Now:       s.peoplesTime,
	}
	for _, set := range options {
		set(&cfg)
	}
	s.Tokens, err = tokens.New(ctx, cfg)
	return err
}

// ConfigureTokens makes the service for tokens anew, with options. Doors are made after this.
func (s *Server) ConfigureTokens(t testing.TB, options ...func(*tokens.Config)) {
	t.Helper()
	if err := s.makeTokens(t.Context(), options...); err != nil {
		t.Fatal(err)
	}
}

// Key returns the key that seals secrets.
func (s *Server) Key() *secret.Key { return s.key }

// API returns who proves the senders of calls.
func (s *Server) API() access.Authenticator { return s.Tokens.API(s.People.API()) }

// peoplesTime is what the clock of People shows.
func (s *Server) peoplesTime() time.Time {
	at := time.Now()
	if stopped := s.stopped.Load(); stopped != nil {
		at = *stopped
	}
	return at.Add(time.Duration(s.ahead.Load()))
}

// StopPeoplesClock stops the clock of People, so that a slow test does not outlast what it looks at.
func (s *Server) StopPeoplesClock() {
	at := time.Now()
	s.stopped.Store(&at)
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
