package tokens

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// Config configures a Service. All fields are required unless their comment says otherwise.
type Config struct {
	Store  *store.Store
	People People
	Key    *secret.Key // seals the key that signs tokens
	Logger *slog.Logger
	// Enabled: callers have to prove who they are. Otherwise there are no tokens.
	Enabled bool
	// PublicURL is the address of the server, which CI jobs name as the audience of their tokens.
	PublicURL string
	// MaxLifetime is the longest that a personal token may last; a year when zero.
	MaxLifetime time.Duration
	// Keys are further keys of which JWTs are accepted; may be empty.
	Keys []KeyConfig
	// Reach says which addresses issuers may have; nil: none that reach.Guarded lists.
	Reach *reach.Rules
	// Issuers are the addresses of the issuers that administrators of a project may trust. Administrators of the
	// server may trust any.
	Issuers []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// People knows users and their roles; *people.Service does.
type People interface {
	Bindings(ctx context.Context, user, token uuid.UUID) ([]access.Binding, error)
	Roles(ctx context.Context) ([]access.Role, error)
	// Generation changes whenever somebody may do more or less than before.
	Generation() int
}

// Service makes, knows and revokes tokens. It is safe for concurrent use.
type Service struct {
	Config
	keys    []*key // the first one signs
	signs   bool   // it comes from the configuration
	issuers *issuers
	known   *cache
}

// usedEvery is how stale the time may be at which a token was last used, so that not every request writes.
const usedEvery = time.Minute

// keepEnded is how long people can see that a token expired or was revoked.
const keepEnded = 30 * 24 * time.Hour

// maxToken is the size in bytes of the largest token that is looked at.
const maxToken = 16 << 10

// New returns a service. It makes the key that signs the tokens of environments if there is none yet.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxLifetime == 0 {
		cfg.MaxLifetime = 365 * 24 * time.Hour
	}
	if cfg.Reach == nil {
		cfg.Reach = &reach.Rules{Refuse: reach.Guarded()}
	}
	s := &Service{Config: cfg, issuers: newIssuers(cfg.Reach), known: newCache()}
	if !cfg.Enabled {
		return s, nil
	}
	return s, s.openKeys(ctx)
}

// API returns the authenticator of calls: by a token of this package, or else by that of a session.
func (s *Service) API(sessions access.Authenticator) access.Authenticator {
	if !s.Enabled {
		return sessions
	}
	return authenticator{s, sessions}
}

type authenticator struct {
	*Service
	sessions access.Authenticator
}

func (a authenticator) Authenticate(r *http.Request) (access.Principal, error) {
	text := bearer(r)
	kind := kindOf(text)
	if kind == "" {
		return a.sessions.Authenticate(r)
	}
	if len(text) > maxToken {
		return access.Principal{}, refused()
	}
	digest := digestOf(text)
	now := a.Now()
	generation := a.People.Generation()
	if p, ok := a.known.get(digest, generation, now); ok {
		return p, nil
	}
	ticket := a.known.ticket()
	var found proof
	var err error
	switch kind {
	case personalPrefix:
		found, err = a.byPersonal(r.Context(), text, now)
	case jobPrefix:
		found, err = a.byJob(r.Context(), text, now)
	case jwtKind:
		found, err = a.byJWT(r.Context(), text, now)
	}
	if err != nil {
		return access.Principal{}, err
	}
	if found.used != nil {
		if err := found.used(); err != nil {
			a.Logger.Warn("cannot note that a token was used", "token", found.principal.Credential, "error", err)
		}
	}
	a.known.put(digest, found, generation, ticket, now)
	return found.principal, nil
}

// proof is what a token proves.
type proof struct {
	principal access.Principal
	expires   time.Time    // zero: never
	used      func() error // notes that the token was used; nil: that was noted a moment ago
}

// jwtKind is the kind of tokens that are JWTs.
const jwtKind = "jwt"

// kindOf returns the prefix of a token, jwtKind, or an empty string for a token that is none of ours.
func kindOf(text string) string {
	switch {
	case strings.HasPrefix(text, personalPrefix):
		return personalPrefix
	case strings.HasPrefix(text, jobPrefix):
		return jobPrefix
	case strings.Count(text, ".") == 2:
		return jwtKind
	}
	return ""
}

// bearer returns the token in the header Authorization.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// refused is the answer to every token that does not count, so that nobody learns why.
func refused() error {
	return fault.New("tokens.Authenticate", fault.Unauthorized,
		"the token is wrong, or it has expired or was revoked").Hint("make a new one")
}

// dueAt returns a function that notes the use of a token unless that was done a moment ago.
func dueAt(last *time.Time, now time.Time, note func() error) func() error {
	if last != nil && now.Sub(*last) < usedEvery {
		return nil
	}
	return note
}

// needEnabled fails if callers do not have to prove who they are.
func (s *Service) needEnabled() error {
	if s.Enabled {
		return nil
	}
	return fault.New("tokens", fault.Invalid, "Authentication is disabled, generating a token is not allowed").
		Hint("start the server with the option [server] auth = database")
}

// Run removes tokens that ended long ago, now and then, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.Now()
		if err := s.Store.ForgetTokens(ctx, now, now.Add(-keepEnded)); err != nil && ctx.Err() == nil {
			s.Logger.Warn("old tokens could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
