// Package server wires the parts to one running server: the private database,
// the store, Git, the builder, executors, control, and the doors to it.
//
//	layout, lock ▸ logs ▸ PostgreSQL ▸ store ▸ Python runtime ▸ gitsync, builder, executors ▸ control ▸ HTTP
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
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/console"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
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

// Server is one server process. Start may be called once.
type Server struct {
	cfg     Config
	log     *slog.Logger
	layout  *layout.Layout
	control *control.Control
	rest    http.Handler // the REST API, also for handlers
	url     string

	cancel context.CancelFunc
	served chan error
	undo   []func() // what Stop does, last first
	once   sync.Once
	wg     sync.WaitGroup
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

// Control gives the verbs, once Start has returned.
func (s *Server) Control() *control.Control { return s.control }

// Layout gives the paths, once Start has returned.
func (s *Server) Layout() *layout.Layout { return s.layout }

// Start brings everything up. When it fails, what was started is stopped again.
func (s *Server) Start(ctx context.Context) (err error) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	o := s.cfg.Options
	if err := s.claim(); err != nil {
		return err
	}
	listener, err := listen(o.BindAddress, o.BindPort)
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() { _ = listener.Close() })
	s.url = "http://" + net.JoinHostPort(o.BindAddress, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	records, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	handler, err := s.wire(ctx, records)
	if err != nil {
		return err
	}
	if err := s.control.Start(ctx); err != nil {
		return err
	}
	s.undo = append(s.undo, s.control.Stop)
	serving, stopServing := context.WithCancel(ctx)
	s.wg.Go(func() { s.served <- serve(serving, listener, handler, s.log) })
	s.undo = append(s.undo, stopServing)
	s.log.Info("the server is up", "url", s.url, "version", s.cfg.Version, "pid", os.Getpid())
	return nil
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

// Stop ends everything in order. It may be called at any time, and twice.
func (s *Server) Stop() {
	s.once.Do(func() {
		for i := len(s.undo) - 1; i >= 0; i-- {
			s.undo[i]()
		}
		if s.cancel != nil {
			s.cancel()
		}
		s.wg.Wait()
	})
}

// claim makes the directories, takes the state directory for this process and opens the log.
func (s *Server) claim() (err error) {
	o := s.cfg.Options
	if s.layout, err = layout.New(layout.Config{StateDir: o.StateDir, LogDir: o.LogDir, CacheDir: o.CacheDir}); err != nil {
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

// openStore starts the private database, unless another is configured, and opens the store.
func (s *Server) openStore(ctx context.Context) (records *store.Store, err error) {
	url := s.cfg.Options.DatabaseURL
	if url == "" {
		err := s.step("PostgreSQL", func() error {
			db, err := postgres.Start(ctx, postgres.Config{
				DataDir:   filepath.Join(s.layout.Postgres(), "data"),
				SocketDir: filepath.Join(s.layout.Postgres(), "socket"),
				CacheDir:  filepath.Join(s.layout.CacheDir(), "postgres"),
				BinDir:    s.cfg.Options.PostgresBin,
				Python:    s.cfg.Options.Python,
				Logger:    s.log,
			})
			if err != nil {
				return err
			}
			url = db.URL()
			s.undo = append(s.undo, func() { s.stopDatabase(db) })
			watching, stop := context.WithCancel(ctx)
			s.undo = append(s.undo, stop)
			s.wg.Go(func() { s.keepDatabase(watching, db) })
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	err = s.step("tables", func() error {
		records, err = store.Open(ctx, store.Config{URL: url, Logger: s.log})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, records.Close)
	return records, nil
}

func (s *Server) stopDatabase(db *postgres.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := db.Stop(ctx); err != nil {
		s.log.Error("the database did not stop", "error", err)
	}
}

// keepDatabase starts the private database again whenever it ends by itself.
func (s *Server) keepDatabase(ctx context.Context, db *postgres.Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.Done():
		}
		for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
			if ctx.Err() != nil {
				return
			}
			s.log.Error("the database ended; starting it again", "last words", db.LastWords())
			err := db.Restart(ctx)
			if err == nil {
				s.log.Info("the database runs again")
				break
			}
			if ctx.Err() != nil {
				return
			}
			s.log.Error("the database does not start", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

// wire makes control and its doors.
func (s *Server) wire(ctx context.Context, records *store.Store) (http.Handler, error) {
	o := s.cfg.Options
	vault, err := secret.OpenKey(filepath.Join(s.layout.Server(), ".secret.key"))
	if err != nil {
		return nil, err
	}
	maker, err := venv.New(
		venv.Config{
			Python:   o.Python,
			CacheDir: s.layout.CacheDir(),
			ToolsDir: filepath.Join(s.layout.CacheDir(), "tools"),
			Logger:   s.log,
		},
	)
	if err != nil {
		return nil, err
	}
	if _, err := maker.Interpreter(ctx, ""); err != nil {
		return nil, err // nothing can be compiled or deployed without
	}
	learned := func(scope, line string) error { return s.learnHostKey(scope, line) }
	agent := ""
	if o.GitSSHAgent {
		if agent = os.Getenv("SSH_AUTH_SOCK"); agent == "" {
			s.log.Warn("git.ssh-agent is on, but the server was started without SSH_AUTH_SOCK")
		}
	}
	modules, err := gitsync.New(
		gitsync.Config{Mirrors: s.layout.Mirrors(), Logger: s.log, SSHAgent: agent, Learned: learned},
	)
	if err != nil {
		return nil, err
	}
	build, err := build.New(
		build.Config{
			Layout:  s.layout,
			Maker:   maker,
			Git:     modules,
			Program: s.cfg.Program,
			Timeout: o.CompileTimeout,
			Memory:  o.CompileMemory,
			Logger:  s.log,
		},
	)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, build.Close)
	syncer, err := gitsync.New(
		gitsync.Config{
			Mirrors:  s.layout.Mirrors(),
			Keep:     []string{".env", ".env-py*", ".env.new"},
			Logger:   s.log,
			SSHAgent: agent,
			Learned:  learned,
		},
	)
	if err != nil {
		return nil, err
	}
	watch, err := newWatcher(syncer, s.log)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, watch.Stop)
	events := &bus.Bus{}
	if s.control, err = control.New(control.Config{
		Store: records, Bus: events, Logger: s.log, Vault: vault, Git: git{syncer}, Watcher: watch, Builder: build,
		Deployers: &deployers{server: s, store: records, maker: maker, bus: events},
		Workspace: workspace{s.layout, build.Forget}, Version: s.cfg.Version, PublicURL: s.publicURL(), Compiles: o.CompileConcurrency,
	}); err != nil {
		return nil, err
	}
	if err := watch.start(ctx, s.control); err != nil {
		return nil, err
	}
	return s.doors(records, events)
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
	hooks, err := webhooks.New(webhooks.Config{Server: hooked{s.control}, Logger: s.log})
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
