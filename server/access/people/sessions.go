package people

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// sessionValue is the one value that scs keeps for a session: an access.Session.
const sessionValue = "session"

func (s *Service) newSessions() *scs.SessionManager {
	m := scs.New()
	m.Lifetime, m.HashTokenInStore, m.Codec = s.lifetime, true, codec{}
	m.Store = sessionStore{s}
	m.Cookie.Name = "ordain_session"
	if strings.HasPrefix(s.public, "https://") {
		// The browser then makes sure that no other host and no page over HTTP has set it.
		m.Cookie.Name, m.Cookie.Secure = "__Host-ordain_session", true
	}
	return m
}

// codec writes the value of a session for sessionStore.
type codec struct{}

func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	session, _ := values[sessionValue].(access.Session)
	session.Deadline = deadline
	return json.Marshal(session)
}

func (codec) Decode(text []byte) (time.Time, map[string]any, error) {
	var session access.Session
	err := json.Unmarshal(text, &session)
	return session.Deadline, map[string]any{sessionValue: session}, err
}

// sessionStore is the store as scs wants it. Tokens arrive as hashes.
type sessionStore struct{ *Service }

func (s sessionStore) FindCtx(ctx context.Context, hash string) ([]byte, bool, error) {
	session, err := s.store.Session(ctx, hash, s.now())
	if fault.Is(err, fault.NotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	text, err := json.Marshal(session)
	return text, true, err
}

// CommitCtx stores a new session, or notes that one was used.
func (s sessionStore) CommitCtx(ctx context.Context, hash string, text []byte, _ time.Time) error {
	var session access.Session
	if err := json.Unmarshal(text, &session); err != nil {
		return err
	}
	session.Seen = s.now()
	session.Expires = session.Seen.Add(s.idle)
	if session.Expires.After(session.Deadline) {
		session.Expires = session.Deadline
	}
	if session.Hash == hash {
		return s.store.TouchSession(ctx, hash, session.Seen, session.Expires)
	}
	session.Hash = hash
	return s.store.StartSession(ctx, session)
}

func (s sessionStore) DeleteCtx(ctx context.Context, hash string) error {
	return s.store.DropSession(ctx, hash)
}

// scs calls the methods without a context only for stores that lack those above.
func (s sessionStore) Find(hash string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), hash)
}
func (s sessionStore) Delete(hash string) error { return s.DeleteCtx(context.Background(), hash) }

func (s sessionStore) Commit(hash string, text []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), hash, text, expires)
}

// Token is what proves a session, until it expires.
type Token struct {
	Text    string
	Expires time.Time // however much it is used
	User    access.User
}

// start starts a session for a user and ends the one of an earlier token, so that a token that somebody else planted is
// worth nothing.
func (s *Service) start(
	ctx context.Context, u access.User, client, earlier string, deadline time.Time,
) (Token, error) {
	ctx, err := s.sessions.Load(ctx, earlier)
	if err != nil {
		return Token{}, err
	}
	if err := s.sessions.RenewToken(ctx); err != nil {
		return Token{}, err
	}
	from := originOf(ctx)
	s.sessions.SetDeadline(ctx, deadline)
	s.sessions.Put(ctx, sessionValue, access.Session{
		ID: uuid.New(), User: u.ID, Client: client, Address: from.Address, Agent: from.Agent, Created: s.now(),
	})
	token, _, err := s.sessions.Commit(ctx)
	if fault.Is(err, fault.NotFound) { // the user was disabled or deleted a moment ago
		return Token{}, invalidLogin()
	}
	if err != nil {
		return Token{}, err
	}
	if earlier != "" {
		s.changed()
	}
	return Token{Text: token, Expires: deadline, User: u}, nil
}

// Renew replaces the token of the sender's session by a new one. The deadline of the session stays.
func (s *Service) Renew(ctx context.Context) (Token, error) {
	if err := s.needEnabled(); err != nil {
		return Token{}, err
	}
	sender := access.Of(ctx)
	sessions, err := s.Sessions(ctx, sender.User)
	if err != nil {
		return Token{}, err
	}
	for _, session := range sessions {
		if session.ID.String() != sender.Credential {
			continue
		}
		u, err := s.store.User(ctx, session.User)
		if err != nil {
			return Token{}, err
		}
		token, err := s.start(ctx, u, session.Client, "", session.Deadline)
		if err != nil {
			return Token{}, err
		}
		return token, s.EndSession(ctx, u.ID, session.ID)
	}
	return Token{}, fault.New(
		"people.Renew",
		fault.Invalid,
		"Only login sessions issued by this server can be renewed.",
	)
}

// SetCookie makes a browser keep a token until its deadline; the server forgets it earlier if nobody uses it.
func (s *Service) SetCookie(w http.ResponseWriter, t Token) {
	s.sessions.WriteSessionCookie(context.Background(), w, t.Text, t.Expires)
}

// ClearCookie makes a browser forget its token.
func (s *Service) ClearCookie(w http.ResponseWriter) {
	s.sessions.WriteSessionCookie(context.Background(), w, "", time.Time{})
}

// Logout ends the session of the sender.
func (s *Service) Logout(ctx context.Context) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	sender := access.Of(ctx)
	id, err := uuid.Parse(sender.Credential)
	if err == nil {
		err = s.EndSession(ctx, sender.User, id)
	}
	if err != nil {
		return fault.Wrap("people.Logout", fault.Invalid, err).Say("there is no login to end")
	}
	return nil
}

// Sessions lists the sessions of a user.
func (s *Service) Sessions(ctx context.Context, user uuid.UUID) ([]access.Session, error) {
	return s.store.Sessions(ctx, user, s.now())
}

// EndSession ends one session of a user.
func (s *Service) EndSession(ctx context.Context, user, id uuid.UUID) error {
	err := s.store.EndSession(ctx, user, id)
	s.changed()
	return err
}
