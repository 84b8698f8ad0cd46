// Package server wires the parts to one running server: the private database,
// the store, Git, the builder, the keepers with their deployers and executors, the
// forge's outbox, control, and the doors.
//
//	layout, lock ▸ logs ▸ PostgreSQL ▸ store ▸ Python ▸ gitsync, builder ▸ keepers ▸ forge ▸ control ▸ HTTP
//
// Start goes from left to right and Stop back. Nothing here decides anything;
// reading it is reading what the program consists of.
package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/console"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/webhooks"
)

// Config is what a server is made of.
type Config struct {
	Options config.Config
	// Program is the command that runs as `… compile`; empty: this executable.
	Program []string
	Version string
	// Progress gets a line for each step of the start, for people who wait; nil drops them.
	Progress func(step string, took time.Duration)
}

// Server is one server process.
type Server struct {
	cfg     Config
	log     *slog.Logger
	layout  *layout.Layout
	keepers *keeper.Registry
	forge   *forge.Service
	control *control.Control
	store   *store.Store
	rest    http.Handler // the REST API, also for handlers
	url     string

	running service.Runner
	served  chan error
	undo    []func() // what the end does, last first
	wg      sync.WaitGroup
}

// New checks what can be checked without touching anything.
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

// URL is where the console is, once Start has returned.
func (s *Server) URL() string { return s.url }

// Control returns the verbs, once Start has returned.
func (s *Server) Control() *control.Control { return s.control }

// Store returns the record, once Start has returned.
func (s *Server) Store() *store.Store { return s.store }

// Layout gives the paths, once Start has returned.
func (s *Server) Layout() *layout.Layout { return s.layout }

// Start brings everything up. When it fails, what was started is stopped again.
// The server goes on when ctx ends: Stop ends it, in order.
func (s *Server) Start(ctx context.Context) error {
	return s.running.Start(context.WithoutCancel(ctx), s.start)
}

// start brings up one part after another, and returns what waits for the end of
// ctx and brings them down again. The parts run on a context of their own, so
// that they end one after another, too.
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
	s.url = "http://" + net.JoinHostPort(o.BindAddress, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	records, err := s.openStore(ctx, background)
	if err != nil {
		return nil, err
	}
	s.store = records
	handler, err := s.wire(ctx, records)
	if err != nil {
		return nil, err
	}
	for _, part := range []service.Service{s.keepers, s.forge} {
		if err := part.Start(background); err != nil {
			return nil, err
		}
		s.undo = append(s.undo, part.Stop)
	}
	serving, stopServing := context.WithCancel(background)
	s.wg.Go(func() { s.served <- serve(serving, listener, handler, s.log) })
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

// Stop ends everything in order, and waits for it. It may be called at any time, and again.
func (s *Server) Stop() { s.running.Stop() }

// claim makes the directories, takes the state directory for this process and opens the log.
func (s *Server) claim() (err error) {
	o := s.cfg.Options
	if s.layout, err = layout.New(layout.Config{StateDir: o.StateDir, LogDir: o.LogDir,
		CacheDir: o.CacheDir}); err != nil {
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
	s.log = newLog(file, o.LogLevel)
	return s.layout.Sweep()
}

// logPolicy says how log files are rotated.
func (s *Server) logPolicy() logfile.Policy {
	o := s.cfg.Options
	return logfile.Policy{Size: int64(o.LogSize), Age: o.LogAge, Keep: o.LogKeep, Retention: o.LogRetention}
}

func newLog(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // config.Load let only levels pass
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}

// step times one step of the start.
func (s *Server) step(name string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	s.cfg.Progress(name, time.Since(began))
	return nil
}

// publicURL is where people reach the console; what was not said is where it listens.
func (s *Server) publicURL() string {
	if u := s.cfg.Options.PublicURL; u != "" {
		return u
	}
	return s.url
}

// doors mounts what answers HTTP.
func (s *Server) doors(records *store.Store, events *bus.Bus) (http.Handler, error) {
	var err error
	if s.rest, err = api.New(api.Config{
		Control: s.control, Store: records, Logger: s.log, Version: s.cfg.Version, FactExpire: s.cfg.Options.FactExpire,
	}); err != nil {
		return nil, err
	}
	hooks, err := webhooks.New(webhooks.Config{Server: s.keepers, Logger: s.log})
	if err != nil {
		return nil, err
	}
	pages, err := console.New(console.Config{
		Control: s.control, Store: records, Bus: events, Version: s.cfg.Version, Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	return byPrefix(s.rest, hooks, pages), nil
}

// byPrefix sends requests to their door. It leaves paths as they are, which
// http.ServeMux does not: a resource id in a path may hold anything.
func byPrefix(rest, hooks, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/api/"):
			rest.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/hooks/"):
			hooks.ServeHTTP(w, r)
		case path == "/console" || strings.HasPrefix(path, "/console/"):
			http.Redirect(w, r, "/", http.StatusMovedPermanently)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}
