package gitsync

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// Config is what a Syncer needs.
type Config struct {
	// Mirrors is the folder that holds all mirrors. It is created when it is
	// missing. Several Syncers, and several processes, may share it.
	Mirrors string
	// Keep are patterns (path.Match) of names at the top of every checkout that
	// others write. A checkout does not remove them, and no commit may have them.
	Keep []string
	// FetchTimeout is the longest time that one fetch may take; 10 minutes when zero.
	FetchTimeout time.Duration
	// AskTimeout is the longest time that a repository may take to list its branches; 30 seconds when zero.
	AskTimeout time.Duration
	Logger     *slog.Logger
	// SSHAgent is the socket of an SSH agent. It is used for sources over SSH that have
	// no key; empty for none.
	SSHAgent string
	// Learned is called with each key of an SSH server that was accepted because of
	// Trust.AcceptNew, as a line of known_hosts, and with Trust.Scope. It may be nil.
	Learned func(scope, line string) error
	// Reach says which addresses repositories and proxies may have; nil: any.
	Reach *reach.Rules
	// Closed keeps repositories on the server's disk from having submodules beside them, which may be anybody's.
	Closed bool
}

// Syncer fetches repositories and checks commits out. It is safe for
// concurrent use, also by several processes with the same mirrors.
type Syncer struct {
	cfg      Config
	checkout keyed // by folder
	trees    treeCache

	mu      sync.Mutex
	flights map[flightKey]*flight
	clients map[clientKey]*http.Client
}

// New checks the configuration and makes a Syncer. A Syncer does not have to be
// closed.
func New(cfg Config) (*Syncer, error) {
	const op = "gitsync.New"
	if cfg.Mirrors == "" {
		return nil, fault.New(op, fault.Invalid, "Config.Mirrors is missing")
	}
	if cfg.Logger == nil {
		return nil, fault.New(op, fault.Invalid, "Config.Logger is missing")
	}
	for _, pattern := range cfg.Keep {
		if _, err := path.Match(pattern, "x"); err != nil || pattern == "" || strings.Contains(pattern, "/") {
			return nil, fault.New(op, fault.Invalid, "Config.Keep: not a pattern for a name: "+pattern)
		}
	}
	if cfg.FetchTimeout < 0 || cfg.AskTimeout < 0 {
		return nil, fault.New(op, fault.Invalid, "a timeout is negative")
	}
	mirrors, err := filepath.Abs(cfg.Mirrors) // checkouts refer to their mirror by this path
	if err != nil {
		return nil, fault.Wrap(op, fault.Unavailable, err).Say("the folder of the mirrors cannot be found")
	}
	cfg.Mirrors = mirrors
	if cfg.FetchTimeout == 0 {
		cfg.FetchTimeout = 10 * time.Minute
	}
	if cfg.AskTimeout == 0 {
		cfg.AskTimeout = 30 * time.Second
	}
	return &Syncer{cfg: cfg, flights: map[flightKey]*flight{}, clients: map[clientKey]*http.Client{}}, nil
}

// Has reports whether the mirror of a source has a commit; an empty one asks for the mirror alone. It may lack what
// another server process fetched.
func (s *Syncer) Has(src Source, commit string) bool {
	p, err := src.locate()
	if err != nil {
		return false
	}
	return s.mirrored(p) && (commit == "" || s.has(p, plumbing.NewHash(commit)))
}

func (s *Syncer) has(p place, commit plumbing.Hash) bool {
	has, err := withMirror(s.mirrorDir(p), func(m *mirror) (bool, error) { return m.has(commit), nil })
	return err == nil && has
}

func (s *Syncer) mirrored(p place) bool {
	_, err := os.Stat(filepath.Join(s.mirrorDir(p), "packed-refs"))
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// kept reports whether a name at the top of a checkout matches Config.Keep.
func (s *Syncer) kept(name string) bool {
	for _, pattern := range s.cfg.Keep {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}
