package control

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// Config is what a Control is made of. All fields are needed.
type Config struct {
	Store     Store
	Bus       *bus.Bus
	Logger    *slog.Logger
	Vault     Vault     // seals secrets at rest
	Git       Git       // mirrors and checkouts
	Watcher   Watcher   // polls and watches the sources
	Builder   Builder   // virtual environment and compiler
	Deployers Deployers // one per environment
	Workspace Workspace // the environments' folders
	Version   string    // of this program, for provenance
	// Forges opens the forge of a repository; forge.New when nil.
	Forges func(forge.Config) (forge.Forge, error)
	// PublicURL is the console's address as people reach it, for links; empty: none are given.
	PublicURL string
	// Compiles is how many may run at a time, and as many previews beside them; 0: one for each processor, and two at least.
	Compiles int
	// Now is the clock; time.Now outside tests.
	Now func() time.Time
}

// Control is the server's verbs. It is safe for concurrent use.
type Control struct {
	cfg Config

	mu             sync.Mutex
	keepers        map[intent.EnvironmentID]*keeper
	running        context.Context // nil before Start and after Stop
	cancel         context.CancelFunc
	wg             sync.WaitGroup
	blames         blames
	arrivals       recorder // webhooks on their way into the record
	hookGeneration atomic.Uint64
	moving         sync.Map // by environment: one move of its source at a time
	forges         forges
	compiles       *turns
	previewing     *turns
}

// New checks the configuration; nothing runs before Start.
func New(cfg Config) (*Control, error) {
	switch {
	case cfg.Store == nil, cfg.Bus == nil, cfg.Logger == nil, cfg.Vault == nil, cfg.Git == nil,
		cfg.Watcher == nil, cfg.Builder == nil, cfg.Deployers == nil, cfg.Workspace == nil:
		return nil, fault.New("control.New", fault.Internal, "a part of the server is missing from control.Config")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Forges == nil {
		cfg.Forges = forge.New
	}
	if cfg.Compiles <= 0 {
		cfg.Compiles = max(2, runtime.NumCPU())
	}
	return &Control{
		compiles: newTurns(cfg.Compiles), previewing: newTurns(cfg.Compiles),
		cfg: cfg, keepers: make(map[intent.EnvironmentID]*keeper),
		forges: forges{wake: make(chan struct{}, 1)},
	}, nil
}

// Bus gives the events of this server.
func (c *Control) Bus() *bus.Bus { return c.cfg.Bus }

// Ping tells whether the server can work: nil, or what is wrong.
func (c *Control) Ping(ctx context.Context) error { return c.cfg.Store.Ping(ctx) }

// ProgramVersion is the version of this program.
func (c *Control) ProgramVersion() string { return c.cfg.Version }

func (c *Control) publish(env intent.EnvironmentID, topic bus.Topic, id string) {
	c.cfg.Bus.Publish(bus.Event{Environment: env, Topic: topic, ID: id})
}
