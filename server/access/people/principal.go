package people

import (
	"context"
	"crypto/sha256"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// Console returns who proves the senders of requests for pages: by the cookie of a session.
func (s *Service) Console() access.Authenticator {
	if !s.enabled {
		return access.Off{}
	}
	return byCookie{s}
}

// API returns who proves the senders of calls: by the token in the header Authorization. Cookies do not count.
func (s *Service) API() access.Authenticator {
	if !s.enabled {
		return access.Off{}
	}
	return byBearer{s}
}

type byCookie struct{ *Service }

// Authenticate returns a stranger for a cookie that has expired: the page then asks them to log in.
func (s byCookie) Authenticate(r *http.Request) (access.Principal, error) {
	// A page that follows events in the background is no sign that somebody is there.
	used := r.Header.Get("Accept") != "text/event-stream"
	p, _, err := s.bySession(r.Context(), s.Cookie(r), access.ConsoleClient, used)
	return p, err
}

type byBearer struct{ *Service }

// sessionToken is the form of the tokens of sessions. Other tokens look different.
var sessionToken = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

func (s byBearer) Authenticate(r *http.Request) (access.Principal, error) {
	token := bearer(r)
	switch {
	case r.Header.Get("Authorization") == "":
		return access.Principal{}, nil
	case sessionToken.MatchString(token):
		p, ok, err := s.bySession(r.Context(), token, access.APIClient, true)
		if err != nil || ok {
			return p, err
		}
	}
	return access.Principal{}, fault.New("people.Authenticate", fault.Unauthorized,
		"the token is wrong, or it has expired or was revoked").Hint("log in again")
}

// Cookie returns the token that a browser sends, or an empty string.
func (s *Service) Cookie(r *http.Request) string {
	c, err := r.Cookie(s.sessions.Cookie.Name)
	if err != nil || !sessionToken.MatchString(c.Value) {
		return ""
	}
	return c.Value
}

// bearer returns the token in the header Authorization.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// bySession returns the user of a session for one kind of client; ok is false if there is no such session. used says
// that this keeps the session from expiring.
func (s *Service) bySession(
	ctx context.Context, token, client string, used bool,
) (p access.Principal, ok bool, err error) {
	if token == "" {
		return p, false, nil
	}
	now := s.now()
	key := sha256.Sum256([]byte(client + token))
	entry, hit, generation := s.known.get(key, now)
	if hit && !(used && now.Sub(entry.seen) > s.writeAfter()) {
		return entry.principal, true, nil
	}
	loaded, err := s.sessions.Load(ctx, token)
	if err != nil {
		return p, false, err
	}
	session, ok := s.sessions.Get(loaded, sessionValue).(access.Session)
	if !ok || session.Client != client {
		return p, false, nil
	}
	u, err := s.store.User(ctx, session.User)
	if fault.Is(err, fault.NotFound) || err == nil && u.Disabled {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	if used && now.Sub(session.Seen) > s.writeAfter() {
		if _, _, err := s.sessions.Commit(loaded); err != nil {
			return p, false, err
		}
		session.Seen = now
	}
	if p, err = s.principal(ctx, u); err != nil {
		return p, false, err
	}
	p.Credential = session.ID.String()
	s.known.put(key, entryOf(p, session, now), generation)
	return p, true, nil
}

// writeAfter is how stale the time may be at which a session was last used, so that not every request writes.
func (s *Service) writeAfter() time.Duration { return min(time.Minute, s.idle/10) }

// principal returns a user with what they may do.
func (s *Service) principal(ctx context.Context, u access.User) (access.Principal, error) {
	p := access.Principal{Kind: access.Person, Name: u.Name, User: u.ID}
	var err error
	p.Bindings, err = s.Bindings(ctx, u.ID, uuid.Nil)
	return p, err
}

// Principal returns what a user may do, whether they are logged in or not. Somebody who is disabled may do nothing.
func (s *Service) Principal(ctx context.Context, name string) (access.Principal, error) {
	u, err := s.user(ctx, name)
	if err != nil {
		return access.Principal{}, err
	}
	if u.Disabled {
		return access.Principal{Kind: access.Person, Name: u.Name, User: u.ID}, nil
	}
	return s.principal(ctx, u)
}

// Bindings returns the roles of a user, directly or through groups, and those of a token.
func (s *Service) Bindings(ctx context.Context, user, token uuid.UUID) ([]access.Binding, error) {
	subject := ""
	if token != uuid.Nil {
		subject = token.String()
	}
	grants, err := s.store.GrantsFor(ctx, user, subject)
	if err != nil {
		return nil, err
	}
	roles, err := s.Roles(ctx)
	if err != nil {
		return nil, err
	}
	var out []access.Binding
	for _, g := range grants {
		for _, role := range roles {
			if role.Name != g.Role {
				continue
			}
			b := access.Binding{Role: role, Scope: g.Scope}
			if g.Kind == access.OfGroup {
				b.Through = "the group " + g.Subject
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// Generation returns a number that changes whenever somebody may do more or less than before.
func (s *Service) Generation() int { return s.known.now() }

// cache keeps principals for a moment, so that not every request reads the database. A change in this process clears
// it; a change by another process counts when the moment is over.
type cache struct {
	mu         sync.Mutex
	generation int
	entries    map[[32]byte]entry
}

type entry struct {
	principal access.Principal
	seen      time.Time // when the session was last used, as the store has it
	until     time.Time
}

const (
	cacheTime = 2 * time.Second
	cacheSize = 10_000
)

func newCache() *cache { return &cache{entries: map[[32]byte]entry{}} }

func entryOf(p access.Principal, session access.Session, now time.Time) entry {
	until := now.Add(cacheTime)
	if session.Expires.Before(until) {
		until = session.Expires
	}
	return entry{principal: p, seen: session.Seen, until: until}
}

// get returns what is kept under a key, and the generation, which put needs.
func (c *cache) get(key [32]byte, now time.Time) (e entry, hit bool, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, hit = c.entries[key]
	if hit && !now.Before(e.until) {
		delete(c.entries, key)
		hit = false
	}
	return e, hit, c.generation
}

// put keeps an entry, unless something changed since get.
func (c *cache) put(key [32]byte, e entry, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if len(c.entries) >= cacheSize {
		clear(c.entries)
	}
	c.entries[key] = e
}

func (c *cache) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	clear(c.entries)
}
