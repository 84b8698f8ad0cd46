// Package edge is what a request passes before it reaches a door: the API, the webhooks or the console.
//
//	connection ─▶ Listener: at most so many, none that stalls
//	request ─▶ Handler: client's address ─▶ /healthz, /readyz ─▶ host ─▶ origin ─▶ bounded concurrency
//	        ─▶ deadline of the body ─▶ a door
//	body ─▶ Bodies: read only while the bytes of all requests stay within a budget
//
// None of this knows people or permissions. It keeps out requests that a browser sends on behalf of a page of
// another site, and requests that would take the server's memory, connections or time from the others.
package edge

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config configures a Guard. Logger and Ping are required.
type Config struct {
	// BindAddress and PublicURL are addresses that clients may name in their Host header, besides loopback ones.
	BindAddress string
	PublicURL   string
	// AllowedHosts are further names.
	AllowedHosts []string
	// MaxConnections is how many connections may be open at a time; 1,000 when zero.
	MaxConnections int
	// HTTPS says that people reach the server with HTTPS only.
	HTTPS bool
	// Proxies are the addresses that are believed when they say for which client they ask.
	Proxies []netip.Prefix
	Logger  *slog.Logger
	// Ping reports whether the database answers.
	Ping func(context.Context) error
}

// Guard checks requests before they reach a door.
type Guard struct {
	hosts       *hosts
	proxies     proxies
	https       bool
	origins     *http.CrossOriginProtection
	connections *connections
	requests    chan struct{} // holds an item for each request that is being answered
	health      *health
}

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// New makes a guard. Run must run for /readyz to know the state of the database.
func New(cfg Config) (*Guard, error) {
	if cfg.Logger == nil || cfg.Ping == nil {
		return nil, errors.New("edge.New: Logger and Ping are required")
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 1000
	}
	h, err := newHosts(cfg)
	if err != nil {
		return nil, err
	}
	origins := http.NewCrossOriginProtection()
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		// A proxy that rewrites Host must not make the console's own pages look foreign.
		if err := origins.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, err
		}
	}
	return &Guard{
		hosts: h, proxies: cfg.Proxies, https: cfg.HTTPS, origins: origins,
		connections: newConnections(cfg.MaxConnections, cfg.Logger),
		// The rest of the connections is for health checks and for telling clients to come back later.
		requests: make(chan struct{}, max(1, cfg.MaxConnections*3/4)),
		health:   newHealth(cfg.Ping),
	}, nil
}

// Run watches the database until ctx ends.
func (g *Guard) Run(ctx context.Context) { g.health.run(ctx) }

// Server returns an HTTP server with the guard's limits. It serves from a listener that Listen returned.
func (g *Guard) Server(next http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           g.Handler(next),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnContext:       inContext,
	}
}

// Handler lets the requests through to next that pass all checks.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := connectionOf(r); c != nil {
			c.begin()
			defer c.end()
		}
		r = g.proxies.identify(r)
		g.strictTransport(w, r)
		if g.health.serve(w, r) {
			return
		}
		if !g.hosts.allow(r) {
			refuse(w, r, http.StatusMisdirectedRequest, "This server does not answer to the name "+clip(r.Host)+".",
				"Use its own address. If the name is right, add it to allowed-hosts in the section [server] of the "+
					"server's configuration, or set public-url there.")
			return
		}
		if g.foreign(r) {
			refuse(
				w,
				r,
				http.StatusForbidden,
				"A page of another site sent this request.",
				"Nothing was done. Open the console at its own address.",
			)
			return
		}
		select {
		case g.requests <- struct{}{}:
			defer func() { <-g.requests }()
		default:
			w.Header().Set("Retry-After", "2")
			refuse(w, r, http.StatusServiceUnavailable, "The server is busy with too many other requests.",
				"Try again in a moment.")
			return
		}
		limitBody(w, r)
		next.ServeHTTP(w, r)
	})
}

// clip bounds a text of a stranger that an answer quotes.
func clip(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

var refusal = template.Must(template.New("refusal").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.What}}</title>
<h1>{{.What}}</h1>
<p>{{.Do}}</p>
</html>
`))

// refuse answers in the form that the client of a path expects. It closes the connection, so that nobody waits for
// the rest of a body.
func refuse(w http.ResponseWriter, r *http.Request, status int, what, do string) {
	h := w.Header()
	h.Set("Connection", "close")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/hooks/") {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// An error here, and below, means that the client went away.
		_ = json.NewEncoder(w).Encode(struct {
			Message string `json:"message"`
		}{what + " " + do})
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = refusal.Execute(w, struct{ What, Do string }{what, do})
}
