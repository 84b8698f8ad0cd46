// Package server connects the parts of a running server: the private database, the
// store, Git, the builder, the keepers with their deployers and executors, the
// forge's outbox, control, and the doors.
//
//	layout, lock ▸ logs ▸ PostgreSQL ▸ store ▸ replica ▸ Python ▸ gitsync, builder ▸ keepers ▸ forge ▸ control ▸ HTTP
//
// Start starts them from left to right, and Stop stops them in reverse order. A process
// that has only some of the roles makes all parts, and starts those of its roles: one
// without the role process owns no environment, and one without the role api answers
// nothing but questions about its health. Nothing here decides anything: it shows what the
// program consists of.
package server

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/provider"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/console"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/eventbus"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/metrics"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/replica"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/webhooks"
)

// Config configures a server.
type Config struct {
	Options config.Config
	// Program is the command that runs as `… compile`; empty: this executable.
	Program []string
	Version string
	// Progress is called after each step of the start, for people who wait; may be nil.
	Progress func(step string, took time.Duration)
}

// Server is one server process.
type Server struct {
	cfg     Config
	log     *slog.Logger
	layout  *layout.Layout
	keepers *keeper.Registry
	forge   *forge.Service
	// processes runs recorded work.
	processes *process.Engine
	metrics   *metrics.Recorder
	clusters  Clusters
	control   *control.Control
	store     *store.Store
	bus       *bus.Bus
	peers     *replica.Service
	// connection connects the bus to those of other processes; nil: there are none.
	connection *eventbus.Service
	people     *people.Service
	tokens     *tokens.Service
	agents     *authority.Service
	gateway    *gateway.Gateway // the server of remote agents; nil: not in this process
	first      string           // the link that makes the first administrator
	rest       http.Handler     // the REST API, also for handlers
	guard      *edge.Guard      // before all doors
	url        string
	python     string                          // the version that handlers run in; empty: this process runs none
	names      []string                        // of hosts, in the server's certificate
	known      atomic.Pointer[secret.Redactor] // masks the server's own secrets in logs; nil at first
	hidden     []string                        // these secrets, apart from the key

	running service.Runner
	served  chan error
	// separation says for people how environments are separated.
	separation string
	undo       []func() // what Stop does, in reverse order
	wg         sync.WaitGroup
}

// New makes a server. It does not start or write anything.
func New(cfg Config) (*Server, error) {
	if len(cfg.Program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fault.Wrap("server.New", fault.Internal, err).Say("cannot find this program's own file")
		}
		cfg.Program = []string{self}
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, time.Duration) {}
	}
	return &Server{cfg: cfg, served: make(chan error, 1)}, nil
}

// URL returns the address of the console. Call it after Start.
func (s *Server) URL() string { return s.url }

// Control returns the verbs, once Start has returned.
func (s *Server) Control() *control.Control { return s.control }

// Store returns the record, once Start has returned.
func (s *Server) Store() *store.Store { return s.store }

// FirstLink returns the link that makes the first administrator, once Start has returned; empty: there are users, or
// nobody has to log in.
func (s *Server) FirstLink() string { return s.first }

// Bus returns the events of this server, once Start has returned.
func (s *Server) Bus() *bus.Bus { return s.bus }

// Layout returns the paths, once Start has returned.
func (s *Server) Layout() *layout.Layout { return s.layout }

// Start starts everything. If it fails, it stops what it has started. The end of ctx
// does not stop the server: Stop does, in order.
func (s *Server) Start(ctx context.Context) error {
	return s.running.Start(context.WithoutCancel(ctx), s.start)
}

// start starts one part after another, and returns a function that waits for the end
// of ctx and then stops them. The parts have a context of their own, so that they also
// stop one after another.
func (s *Server) start(ctx context.Context) (run func(context.Context), err error) {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	end := func() {
		for i := len(s.undo) - 1; i >= 0; i-- {
			s.undo[i]()
		}
		s.undo = nil
		cancel()
		s.wg.Wait()
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	o := s.cfg.Options
	if err := s.claim(); err != nil {
		return nil, err
	}
	listener, err := listen(o.BindAddress, o.BindPort)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, func() { _ = listener.Close() })
	encryption, names, err := s.secure()
	if err != nil {
		return nil, err
	}
	s.names = names
	s.url = s.listensAt(listener.Addr().(*net.TCPAddr).Port, names)
	records, err := s.openStore(ctx, background)
	if err != nil {
		return nil, err
	}
	s.store = records
	handler, err := s.wire(ctx, records)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, s.control.Close)
	parts := []service.Service{s.peers}
	if s.connection != nil {
		parts = append(parts, s.connection)
	}
	if o.Has(config.RoleProcess) {
		parts = append(parts, s.keepers, s.forge, s.processes, s.metrics)
	}
	parts = append(parts, s.clusterParts()...)
	if o.Has(config.RoleAPI) {
		if err := s.welcome(ctx, background); err != nil {
			return nil, err
		}
	} else {
		handler = http.HandlerFunc(notHere)
	}
	if s.gateway != nil {
		parts = append(parts, s.gateway)
		s.wg.Go(func() { s.agents.Run(background) })
		s.wg.Go(func() { s.clusters.Provisioners.Run(background) })
	}
	for _, part := range parts {
		if err := part.Start(background); err != nil {
			return nil, err
		}
		s.undo = append(s.undo, part.Stop)
	}
	s.sayWhatIsMissing()
	serving, stopServing := context.WithCancel(background)
	s.wg.Go(func() { s.guard.Run(serving) })
	doors := s.guard.Server(handler, s.log)
	doors.TLSConfig = encryption
	s.wg.Go(func() { s.served <- serve(serving, s.guard.Listen(listener), doors) })
	s.undo = append(s.undo, stopServing)
	s.log.Info("the server is up", "url", s.url, "version", s.cfg.Version, "pid", os.Getpid())
	return func(ctx context.Context) {
		<-ctx.Done()
		end()
	}, nil
}

// Wait waits until ctx ends or the server cannot go on.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		s.served <- err
		return err
	}
}

// Stop stops everything in order and waits for it. It may be called at any time, and
// more than once.
func (s *Server) Stop() { s.running.Stop() }

// claim makes the directories, locks the state directory for this process and opens
// the log.
func (s *Server) claim() (err error) {
	o := s.cfg.Options
	s.layout, err = layout.New(layout.Config{StateDir: o.StateDir, LogDir: o.LogDir, CacheDir: o.CacheDir})
	if err != nil {
		return err
	}
	lock, err := s.layout.Lock()
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() { _ = lock.Unlock() })
	file, err := logfile.Open(s.layout.ServerLog(), s.logPolicy)
	if err != nil {
		return fault.Disk("server.Start", s.layout.ServerLog(), err)
	}
	s.undo = append(s.undo, func() { _ = file.Close() })
	s.log = newLog(maskedLog{s, file}, o.LogLevel)
	return s.layout.Sweep()
}

// logPolicy says how log files are rotated.
func (s *Server) logPolicy() logfile.Policy {
	o := s.cfg.Options
	return logfile.Policy{Size: int64(o.LogSize), Age: o.LogAge, Keep: o.LogKeep, Retention: o.LogRetention}
}

func newLog(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // config.Load has checked it
	return slog.New(logfile.Fold(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})))
}

// step runs one step of the start and reports how long it took.
func (s *Server) step(name string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	s.cfg.Progress(name, time.Since(began))
	return nil
}

// publicURL returns the address at which people reach the console, by default the one
// on which the server listens.
func (s *Server) publicURL() string {
	if u := s.cfg.Options.PublicURL; u != "" {
		return u
	}
	return s.url
}

// doors makes the guard and the handlers of the API, the webhooks and the console.
func (s *Server) doors(
	ctx context.Context, records *store.Store, events *bus.Bus, key *secret.Key,
) (_ http.Handler, err error) {
	o := s.cfg.Options
	if s.guard, err = edge.New(edge.Config{
		BindAddress: o.BindAddress, PublicURL: o.PublicURL, AllowedHosts: slices.Concat(o.AllowedHosts, s.names),
		HTTPS: strings.HasPrefix(s.publicURL(), "https:"), Proxies: o.TrustedProxies,
		MaxConnections: o.Connections, Logger: s.log, Ping: records.Ping,
	}); err != nil {
		return nil, err
	}
	enabled := o.Auth != config.AuthOff
	s.people = people.New(people.Config{
		Store: records, Bus: events, Logger: s.log, Enabled: enabled,
		PublicURL: s.publicURL(), Idle: o.SessionIdle, Lifetime: o.SessionLifetime,
	})
	if s.tokens, err = tokens.New(ctx, tokens.Config{
		Store: records, People: s.people, Key: key, Logger: s.log, Enabled: enabled, PublicURL: s.publicURL(),
		MaxLifetime: o.TokenLifetime, Keys: keysOf(o.JWT), Issuers: o.CIIssuers, Reach: s.reachable(),
	}); err != nil {
		return nil, err
	}
	trail := &audit.Recorder{Store: records, Logger: s.log}
	if s.rest, err = api.New(api.Config{
		Control: s.control, Store: records, Logger: s.log, Version: s.cfg.Version, FactExpire: o.FactExpire,
		Isolation: s.separation, Separated: s.separation == separated,
		Python: s.python, Sockets: []string{s.url},
		MaxUpload: int64(o.UploadSize), Auth: s.tokens.API(s.people.API()), People: s.people, Tokens: s.tokens,
		Audit: trail, Agents: s.agents,
		Clusters: s.clusters.Clusters, Catalogue: s.clusters.Catalogue, Resources: s.clusters.Resources,
		Provisioners: s.clusters.Provisioners,
	}); err != nil {
		return nil, err
	}
	hooks, err := webhooks.New(webhooks.Config{Server: s.keepers, Logger: s.log})
	if err != nil {
		return nil, err
	}
	pages, err := console.New(console.Config{
		Control: s.control, Store: records, Bus: events, Version: s.cfg.Version, Logger: s.log,
		Auth: s.people.Console(), People: s.people, Tokens: s.tokens, Agents: s.agents,
		Clusters: s.clusters.Clusters, Catalogue: s.clusters.Catalogue, Resources: s.clusters.Resources,
		Provisioners: s.clusters.Provisioners,
		Provider:     s.provider(key), Audit: trail,
		Idle:       func() bool { return s.peers.With(config.RoleProcess) == 0 },
		FactExpire: s.cfg.Options.FactExpire,
		Disk:       func() (free, size int64, err error) { return diskSpace(o.StateDir) },
		Separation: s.separation, Separated: s.separation == separated,
	})
	if err != nil {
		return nil, err
	}
	return byPrefix(s.rest, withCounts(s.people.API(), hooks), pages, s.webConsole()), nil
}

// withCounts lets only those see the counts of webhooks, which are about all projects, who may see what the whole
// server does. Like webhooks, they are found by the end of the path.
func withCounts(auth access.Authenticator, hooks http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "counts" {
			r, err := access.Enter(auth, r)
			if err == nil {
				err = access.Check(r.Context(), access.SeeServerAudit, access.Target{}, nil)
			}
			switch {
			case fault.Is(err, fault.Unauthorized):
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			case fault.Is(err, fault.Forbidden):
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			case err != nil:
				http.Error(w, "the sender cannot be looked up now; ask again", http.StatusServiceUnavailable)
				return
			}
		}
		hooks.ServeHTTP(w, r)
	})
}

// keysOf returns the sections of the configuration with keys for JWTs, always in the same order.
func keysOf(sections map[string]map[string]string) (out []tokens.KeyConfig) {
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		out = append(out, tokens.KeyConfig{Section: name, Options: sections[name]})
	}
	return out
}

// provider returns the identity provider at which people log in, or nil.
func (s *Server) provider(key *secret.Key) *provider.Provider {
	o := s.cfg.Options
	if o.Auth != config.AuthOIDC || o.OIDCIssuer == "" {
		return nil
	}
	return provider.New(provider.Config{
		Issuer: o.OIDCIssuer, ClientID: o.OIDCClient, ClientSecret: o.OIDCSecret, Scopes: o.OIDCScopes,
		UsernameClaim: o.OIDCUsernameClaim, GroupsClaim: o.OIDCGroupsClaim, Name: o.OIDCName,
		PublicURL: s.publicURL(), Key: key, Logger: s.log,
	})
}

// welcome makes the link for the first administrator, if there is to be one, and removes what expires.
func (s *Server) welcome(ctx, background context.Context) (err error) {
	if s.first, err = s.people.FirstLink(ctx); err != nil {
		return err
	}
	if s.first != "" {
		// The link itself is a secret: the command that started the server prints it.
		s.log.Warn("there is no user yet; the link that makes the first administrator was printed at the start")
	}
	if s.people.Enabled() {
		tidying, stop := context.WithCancel(background)
		s.undo = append(s.undo, stop)
		s.wg.Go(func() { s.people.Run(tidying) })
		s.wg.Go(func() { s.tokens.Run(tidying) })
	}
	return nil
}

// byPrefix passes requests to the handler for their path. It does not change paths,
// as http.ServeMux would: a resource id in a path may contain anything.
func byPrefix(rest, hooks, pages, webConsole http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch at := r.URL.Path; {
		case strings.HasPrefix(at, "/api/"):
			rest.ServeHTTP(w, r)
		case strings.HasPrefix(at, "/hooks/"):
			hooks.ServeHTTP(w, r)
		case at == "/console" || strings.HasPrefix(at, "/console/"):
			webConsole.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}
