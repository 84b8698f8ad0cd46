package people

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/store"
)

// Config configures a Service. Store, Bus and Logger are required.
type Config struct {
	Store  *store.Store
	Bus    *bus.Bus // hears when somebody may do less than before
	Logger *slog.Logger
	// Enabled: people have to log in. Otherwise everybody is the local administrator, and there are no logins.
	Enabled bool
	// PublicURL is the address of the console, such as https://ordain.example.org. Cookies are secure if it is https.
	PublicURL string
	// Idle ends a session that is not used for so long; 8 hours when zero.
	Idle time.Duration
	// Lifetime ends a session however much it is used; 7 days when zero.
	Lifetime time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service knows who may log in. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	bus      *bus.Bus
	log      *slog.Logger
	enabled  bool
	public   string
	idle     time.Duration
	lifetime time.Duration
	now      func() time.Time
	hasher   *hasher
	turns    turns
	sessions *scs.SessionManager
	known    *cache
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Idle == 0 {
		cfg.Idle = 8 * time.Hour
	}
	if cfg.Lifetime == 0 {
		cfg.Lifetime = 7 * 24 * time.Hour
	}
	s := &Service{
		store: cfg.Store, bus: cfg.Bus, log: cfg.Logger, enabled: cfg.Enabled, public: cfg.PublicURL,
		idle: cfg.Idle, lifetime: cfg.Lifetime, now: cfg.Now, hasher: newHasher(),
		turns: newTurns(), known: newCache(),
	}
	s.sessions = s.newSessions()
	return s
}

// Enabled reports whether people have to log in.
func (s *Service) Enabled() bool { return s.enabled }

// Run removes expired sessions now and then until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		if err := s.store.Forget(ctx, s.now(), s.now().Add(-forgetFailures)); err != nil && ctx.Err() == nil {
			s.log.Warn("expired sessions could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// changed forgets what is kept of principals, and has live pages look again whether they may be shown.
func (s *Service) changed() {
	s.known.clear()
	s.bus.Publish(bus.Event{Topic: bus.People})
}

// needEnabled fails if nobody can log in.
func (s *Service) needEnabled() error {
	if s.enabled {
		return nil
	}
	return fault.New("people", fault.Invalid, "Server authentication should be enabled.").
		Hint("start the server with the option [server] auth = database")
}

// Origin says where a login comes from.
type Origin struct {
	Address string
	Agent   string // the name of the program
}

type originKey struct{}

// WithOrigin returns a context that carries where a request comes from.
func WithOrigin(r *http.Request) context.Context {
	return context.WithValue(r.Context(), originKey{}, Origin{Address: edge.ClientAddress(r), Agent: r.UserAgent()})
}

func originOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	o.Agent = strings.ToValidUTF8(o.Agent, "?")
	if len(o.Agent) > 300 {
		o.Agent = strings.ToValidUTF8(o.Agent[:300], "")
	}
	return o
}
