package keeper

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// keeper looks after one environment while this process owns it.
type keeper struct {
	*Registry
	env  intent.EnvironmentID
	log  *slog.Logger
	stop context.CancelFunc
	done chan struct{}

	compileWakes   chan struct{} // a compile is requested, or the environment changed
	deliveryWakes  chan struct{} // webhooks wait
	previewWakes   chan struct{} // a commit waits for its preview
	promotionWakes chan struct{} // what is followed, or how, changed
	requestWakes   chan struct{} // requests wait

	requests  requests
	compiling atomic.Int32 // compiles and previews under way
	clear     atomic.Bool  // the folders are to be removed when the keeper has ended

	// cancelled counts compiles in a row that were cancelled for a newer commit.
	cancelled int
	// failedLooks counts looks at the repository in a row that failed while webhooks waited.
	failedLooks int

	git gitHealth // what is known of the repository

	applying sync.Mutex // one change of the environment at a time

	mu       sync.Mutex
	latest   intent.Environment // as it was read last, for when the compile loop waits
	deployer Deployer           // set while the environment is owned
	dryRun   intent.ActionID    // whose commit is compiled for its preview
	cancel   context.CancelFunc // of that compile
	current  currentRun
}

func newKeeper(r *Registry, env intent.EnvironmentID, stop context.CancelFunc) *keeper {
	one := func() chan struct{} { return make(chan struct{}, 1) }
	return &keeper{
		Registry: r, env: env, log: r.cfg.Logger.With("environment", env), stop: stop, done: make(chan struct{}),
		compileWakes: one(), deliveryWakes: one(), previewWakes: one(), promotionWakes: one(),
		requestWakes: one(),
	}
}

// ownRetry is how long a process waits before it tries again what it could not do for an environment.
const ownRetry = 2 * time.Second

// own runs the loops of the environment until ctx ends or the ownership is lost.
func (k *keeper) own(ctx context.Context, lost <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lost:
			k.log.Warn("lost the environment: the connection that held it broke")
			cancel()
		case <-ctx.Done():
		}
	}()
	k.git.forget() // another process may have owned the environment
	deployer := k.startDeployer(ctx)
	if deployer == nil {
		return
	}
	defer k.stopDeployer(deployer)
	// A setting may have changed while the deployer was being made.
	if !k.persist(ctx, "read the environment again", func() error { return k.apply(ctx) }) {
		return
	}
	k.CompileForFacts(ctx, k.env)
	k.CompileForClusters(ctx, k.env, "while no process owned the environment")
	var loops sync.WaitGroup
	loops.Go(func() { k.keepPreviews(ctx) })
	loops.Go(func() { k.keepDeliveries(ctx) })
	loops.Go(func() { k.keepPromotions(ctx) })
	loops.Go(func() { k.keepRequests(ctx) })
	k.keepCompiles(ctx)
	cancel()
	loops.Wait()
}

// startDeployer starts the deployer of the environment. If it cannot, it logs the error and returns nil.
func (k *keeper) startDeployer(ctx context.Context) Deployer {
	var e intent.Environment
	if !k.persist(ctx, "read the environment", func() (err error) {
		e, err = k.cfg.Store.Environment(ctx, k.env)
		return err
	}) {
		return nil
	}
	if !k.persist(ctx, "prepare the environment's folders", func() error { return k.Folders.Prepare(e) }) {
		return nil
	}
	deployer, err := k.cfg.NewDeployer(e)
	if err == nil {
		err = deployer.Start(ctx)
	}
	if err != nil {
		k.log.Error("the scheduler cannot start", "error", err)
		pause(ctx, ownRetry)
		return nil
	}
	k.mu.Lock()
	k.deployer = deployer
	k.mu.Unlock()
	return deployer
}

func (k *keeper) stopDeployer(deployer Deployer) {
	k.applying.Lock()
	k.watcher.Forget(k.env)
	k.mu.Lock()
	k.deployer = nil
	k.mu.Unlock()
	k.applying.Unlock()
	deployer.Stop()
}

func (k *keeper) currentDeployer() Deployer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.deployer
}

// apply reads the environment and hands it to its deployer and watcher, if it is
// owned. The lock is held from before the read, so that an older state never
// follows a newer one.
func (k *keeper) apply(ctx context.Context) error {
	k.applying.Lock()
	defer k.applying.Unlock()
	deployer := k.currentDeployer()
	if deployer == nil {
		return nil
	}
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return err
	}
	k.remember(e)
	deployer.Changed(e)
	k.watch(ctx, e)
	return nil
}

// changed applies a change of the environment, and wakes the loops that may have to do something about it.
func (k *keeper) changed(ctx context.Context) {
	if err := k.apply(ctx); err != nil {
		k.log.Error("the environment changed but cannot be read", "error", err)
		return
	}
	wake(k.compileWakes)
	wake(k.promotionWakes)
}

// watch makes the watcher follow the environment's source, or stop if there is none.
// The watcher does not know which commits are compiled: it reports where the branch is,
// and known.go decides whether a compile is needed.
func (k *keeper) watch(ctx context.Context, e intent.Environment) {
	if e.Source.URL == "" || e.Halted || !e.Bool("server_compile") || e.Follows() != "" {
		k.watcher.Forget(e.ID)
		return
	}
	src, err := k.cfg.Sources.Of(ctx, e)
	if err != nil {
		k.log.Error("the source cannot be watched", "error", err)
		k.unreadable(ctx, 1, err)
		return
	}
	k.watcher.Watch(e.ID, src, time.Duration(e.Int("git_poll_interval"))*time.Second)
}

// remember stores the environment for the compile loop.
func (k *keeper) remember(e intent.Environment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = e
}

func (k *keeper) remembered() intent.Environment {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest
}
