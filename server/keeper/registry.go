package keeper

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// Config holds the parts of a Registry. All fields are required, unless their comment
// says otherwise.
type Config struct {
	Store   *store.Store
	Bus     *bus.Bus
	Logger  *slog.Logger
	Layout  *layout.Layout
	Git     Git
	Builder Builder
	Sources *source.Opener
	Forges  *forge.Opener
	// NewDeployer makes the deployer of an environment.
	NewDeployer func(e intent.Environment) (Deployer, error)
	// NewWatcher replaces gitsync.NewWatcher in tests; it may be nil.
	NewWatcher func(gitsync.WatcherConfig) (Watcher, error)
	// Clusters reads cluster files; nil: they are ignored.
	Clusters Clusters
	Version  string // of this program, for provenance
	// Peers returns how many processes share the environments, this one included; nil means one.
	Peers func() int
	// Compiles is how many compiles may run at a time, and also how many previews;
	// 0: one for each processor, and at least two.
	Compiles int
	// AuditRetention is how long entries of the audit trail are kept; 0: for ever.
	AuditRetention time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Registry has the keepers of all environments. It is safe for concurrent use.
type Registry struct {
	cfg     Config
	Folders Folders
	inbox   inbox
	// moving has a lock per environment, so that its moves are handled one after another.
	moving     sync.Map
	compiles   *turns
	previewing *turns
	projects   *projectTurns // the quotas of both
	disk       diskUse
	running    service.Runner
	ownWakes   chan struct{}                 // there may be environments to take
	leftOver   map[intent.EnvironmentID]bool // that nobody owned at the last look; of keepOwning
	share      atomic.Value                  // [2]int: how many environments are owned here, and should be

	mu      sync.Mutex
	ctx     context.Context // nil while the registry does not run
	keepers map[intent.EnvironmentID]*keeper
	away    map[intent.EnvironmentID]bool // not to be taken until Keep
	ending  sync.WaitGroup                // of the keepers
	watcher Watcher
}

// New checks the configuration. Nothing runs before Start.
func New(cfg Config) (*Registry, error) {
	switch {
	case cfg.Store == nil, cfg.Bus == nil, cfg.Logger == nil, cfg.Layout == nil, cfg.Git == nil,
		cfg.Builder == nil, cfg.Sources == nil, cfg.Forges == nil, cfg.NewDeployer == nil:
		return nil, fault.New("keeper.New", fault.Internal, "a part of the server is missing from keeper.Config")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Compiles <= 0 {
		cfg.Compiles = max(2, runtime.NumCPU())
	}
	if cfg.Peers == nil {
		cfg.Peers = func() int { return 1 }
	}
	if cfg.NewWatcher == nil {
		cfg.NewWatcher = func(c gitsync.WatcherConfig) (Watcher, error) { return gitsync.NewWatcher(c) }
	}
	r := &Registry{
		cfg: cfg, Folders: Folders{layout: cfg.Layout, builder: cfg.Builder},
		keepers: map[intent.EnvironmentID]*keeper{}, projects: newProjectTurns(), ownWakes: make(chan struct{}, 1),
		away: map[intent.EnvironmentID]bool{},
	}
	r.compiles, r.previewing = newTurns(cfg.Compiles, r.projects), newTurns(cfg.Compiles, r.projects)
	r.disk.layout, r.disk.now = cfg.Layout, cfg.Now
	r.inbox.record = r.recordBatch
	return r, nil
}

// Start takes environments that nobody owns, and starts a keeper for each; they run until Stop is called.
func (r *Registry) Start(ctx context.Context) error { return r.running.Start(ctx, r.start) }

// Stop ends all keepers and waits for them. A running compile is interrupted and starts
// over at the next start.
func (r *Registry) Stop() { r.running.Stop() }

// start starts the watcher.
func (r *Registry) start(ctx context.Context) (func(context.Context), error) {
	watcher, err := r.cfg.NewWatcher(gitsync.WatcherConfig{
		Tips: r.cfg.Git, Logger: r.cfg.Logger, OnMove: r.noticed, OnLook: r.looked,
	})
	if err == nil {
		err = watcher.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.ctx, r.watcher = ctx, watcher
	r.mu.Unlock()
	if err := r.balance(ctx); err != nil {
		r.mu.Lock()
		r.ctx = nil
		r.mu.Unlock()
		watcher.Stop()
		return nil, err
	}
	return r.run, nil
}

// run runs the loops that environments share until ctx ends; then it waits for the keepers.
func (r *Registry) run(ctx context.Context) {
	defer r.cfg.Bus.Answer(questionExecutors, r.answerExecutors)()
	defer r.cfg.Bus.Answer(questionTurn, r.answerTurn)()
	var shared sync.WaitGroup
	shared.Go(func() { r.tidyHourly(ctx) })
	shared.Go(func() { r.lookForDeliveries(ctx) })
	shared.Go(func() { r.lookForRequests(ctx) })
	shared.Go(func() { r.keepOwning(ctx) })
	<-ctx.Done()
	r.mu.Lock()
	r.ctx = nil // no keeper starts any more
	watcher := r.watcher
	r.mu.Unlock()
	watcher.Stop()
	r.ending.Wait()
	shared.Wait()
	r.mu.Lock()
	clear(r.keepers)
	r.mu.Unlock()
}

// keeper returns the keeper of an environment, or nil.
func (r *Registry) keeper(env intent.EnvironmentID) *keeper {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keepers[env]
}

// Deployer returns the deployer of an environment that this process owns, or nil.
func (r *Registry) Deployer(env intent.EnvironmentID) Deployer {
	if k := r.keeper(env); k != nil {
		return k.currentDeployer()
	}
	return nil
}

// Owned lists the environments that this process owns.
func (r *Registry) Owned() (owned []intent.EnvironmentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for env, k := range r.keepers {
		if k.currentDeployer() != nil {
			owned = append(owned, env)
		}
	}
	return owned
}

// EnvironmentChanged notifies pages, and the watcher, the deployer and the loops of the owner if that is this process,
// that an environment, its settings or its secrets changed.
func (r *Registry) EnvironmentChanged(ctx context.Context, env intent.EnvironmentID) {
	r.publish(env, bus.Environment, "")
	if k := r.keeper(env); k != nil {
		k.changed(ctx)
	}
}

func (r *Registry) publish(env intent.EnvironmentID, topic bus.Topic, id string) {
	r.cfg.Bus.Publish(bus.Event{Environment: env, Topic: topic, ID: id})
}

// now returns the time with the precision of the database.
func (r *Registry) now() time.Time { return r.cfg.Now().UTC().Truncate(time.Microsecond) }
