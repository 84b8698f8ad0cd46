// Package embedded is the world of `ordain deploy`: what a server has, for one project folder, for as long as one
// command runs, and without anything that listens on the network.
//
//	Open:   folder data/deploy ▸ lock ▸ private PostgreSQL (a Unix socket) ▸ store ▸ the one environment
//	Store:  a compiled document ─▶ a version, whose provenance is the folder and not a commit
//	Deploy: release ▸ deployer ─▶ scheduler ─▶ executor ─▶ handlers ▸ what became of each resource
//	DryRun: the same handlers, which only look; nothing is released
//	Close:  the same in reverse order
//
// There is no keeper, because nothing is followed: the command says when to compile and when to deploy. Everything that
// decides or records is what a server uses (package deployer, scheduler, executor and store), so that a deployment here
// does what it does there. What was deployed is in the record, and the next run deploys what differs.
//
// The package decides which resources this machine is for: those of agents that the model wants elsewhere
// (std::AgentConfig with autostart = false) stay as they are, unless the person says that they are here.
package embedded

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

// Config says what a World is for. Paths are absolute.
type Config struct {
	Project  string // the folder with project.yml
	StateDir string // everything that is kept
	CacheDir string // what can be made again, shared with others; empty: the one of the machine or the user
	// Environment is the id that the environment gets if this is the first run.
	Environment intent.EnvironmentID
	Python      string        // interpreter for executors; empty: the one that is found
	Version     string        // of this program, for provenance
	Timeout     time.Duration // of one run of a handler; 0: 10 minutes
	// Environ is what handlers get of the person's environment, as NAME=value.
	Environ []string
	// Program is the command that runs as `… compile`; only handlers that ask for a compile need it.
	Program []string
}

// World is everything that a deployment needs. Its methods are called by one goroutine.
type World struct {
	cfg       Config
	log       *slog.Logger
	layout    *layout.Layout
	db        *postgres.Server
	store     *store.Store
	env       intent.Environment
	maker     *venv.Maker
	python    venv.Interpreter
	executors *executor.Manager
	actions   *logfile.File // the resource action log
	undo      []func()      // what Close does, in reverse order
}

// closeTime is how long processes may take to end.
const closeTime = 20 * time.Second

// Open opens the state of a project folder, and makes it if there is none. What it started is stopped when it fails.
func Open(ctx context.Context, cfg Config) (_ *World, err error) {
	w := &World{cfg: cfg}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	if err := w.claim(); err != nil {
		return nil, err
	}
	if err := w.openStore(ctx); err != nil {
		return nil, err
	}
	if err := w.openEnvironment(ctx); err != nil {
		return nil, err
	}
	return w, w.openExecutors(ctx)
}

// Close ends the executors and the database, and lets others use the folder. It may be called more than once.
func (w *World) Close() {
	for i := len(w.undo) - 1; i >= 0; i-- {
		w.undo[i]()
	}
	w.undo = nil
}

// Environment returns the environment that the folder is.
func (w *World) Environment() intent.Environment { return w.env }

// Logs returns the folder of the log files.
func (w *World) Logs() string { return w.layout.LogDir() }

func (w *World) openStore(ctx context.Context) error {
	db, err := postgres.Start(ctx, postgres.Config{
		DataDir:   filepath.Join(w.layout.Postgres(), "data"),
		SocketDir: filepath.Join(w.layout.Postgres(), "socket"),
		CacheDir:  filepath.Join(w.layout.CacheDir(), "postgres"),
		Python:    w.cfg.Python,
		Logger:    w.log,
	})
	if err != nil {
		return w.noDatabase(err)
	}
	w.db = db
	w.undo = append(w.undo, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := db.Stop(ctx); err != nil {
			w.log.Error("the database did not stop", "error", err)
		}
	})
	w.store, err = store.Open(ctx, store.Config{URL: db.URL(), Logger: w.log})
	if err != nil {
		return err
	}
	w.undo = append(w.undo, w.store.Close)
	return nil
}

// noDatabase gives trouble with the private database an advice that fits this command, which has no --database.
func (w *World) noDatabase(err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return err
	}
	said := *known
	switch {
	case known.Kind == fault.Unavailable:
		said.Advice = "install PostgreSQL 13 or newer, or let ORDAIN_POSTGRES_BIN name the directory of its programs"
	case known.Kind == fault.Exhausted && strings.Contains(known.Advice, "space"):
		w.log.Error("the database did not start", "error", err)
		return fault.New("embedded.Open", fault.Exhausted, "the disk that holds "+w.cfg.StateDir+" is full").
			Hint("free some space, then run `ordain deploy` again, or name a folder elsewhere with --state-dir")
	default:
		said.Advice = strings.ReplaceAll(said.Advice, "choose another state directory", "name one with --state-dir")
	}
	return &said
}
