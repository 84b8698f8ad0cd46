package control

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// keeper looks after one environment while this process owns it: it watches
// the source, runs the compiles one at a time and holds the deployer.
type keeper struct {
	control *Control
	env     intent.EnvironmentID
	log     *slog.Logger
	wake    chan struct{} // something to compile, or the environment changed
	stop    context.CancelFunc
	done    chan struct{}
	// deployer is set while the environment is owned; guarded by Control.mu.
	deployer Deployer
	applying sync.Mutex // one change of the environment at a time
	previews previews
	hooks    hooks
	promote  chan struct{} // what it follows, or how, changed
	// cancelled counts the compiles in a row that ended for a newer commit.
	cancelled int
}

// ownRetry is how long a replica waits before it tries again to own an environment.
const ownRetry = 2 * time.Second

// Start keeps every environment until the context ends or Stop is called.
func (c *Control) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.running != nil {
		c.mu.Unlock()
		return nil
	}
	c.running, c.cancel = context.WithCancel(ctx)
	c.mu.Unlock()
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range envs {
		if err := c.keep(ctx, e.ID); err != nil {
			return err
		}
	}
	c.wg.Go(c.tidy)
	c.wg.Go(c.lookForHooks)
	running := c.running
	c.wg.Go(func() { c.keepForges(running) })
	return nil
}

// Stop ends all keepers and waits for them. A compile that runs is broken off
// and starts over at the next start.
func (c *Control) Stop() {
	c.mu.Lock()
	if c.running == nil {
		c.mu.Unlock()
		return
	}
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
	c.mu.Lock()
	c.running, c.keepers = nil, make(map[intent.EnvironmentID]*keeper)
	c.mu.Unlock()
}

// keep starts a keeper for an environment if none runs.
func (c *Control) keep(_ context.Context, env intent.EnvironmentID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil || c.running.Err() != nil || c.keepers[env] != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(c.running)
	k := &keeper{
		control: c, env: env, log: c.cfg.Logger.With("environment", env),
		wake: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}),
		previews: previews{wake: make(chan struct{}, 1)}, hooks: hooks{wake: make(chan struct{}, 1)},
		promote: make(chan struct{}, 1),
	}
	c.keepers[env] = k
	c.wg.Go(func() {
		defer close(k.done)
		defer cancel()
		k.run(ctx)
	})
	return nil
}

// release ends the keeper of an environment and waits for it.
func (c *Control) release(env intent.EnvironmentID) {
	c.hookGeneration.Add(1)
	c.mu.Lock()
	k := c.keepers[env]
	delete(c.keepers, env)
	c.mu.Unlock()
	if k != nil {
		k.stop()
		<-k.done
	}
	c.compiles.forget(env)
	c.previewing.forget(env)
}

// wake tells the keeper of an environment to look again.
func (c *Control) wake(env intent.EnvironmentID) {
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k != nil {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// deployer gives the running deployer of an environment, or nil.
func (c *Control) deployer(env intent.EnvironmentID) Deployer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.keepers[env]; k != nil {
		return k.deployer
	}
	return nil
}

// environmentChanged tells pages, the watcher and the deployer.
func (c *Control) environmentChanged(ctx context.Context, env intent.EnvironmentID) {
	c.hookGeneration.Add(1)
	c.publish(env, bus.Environment, "")
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k == nil {
		return
	}
	if err := k.apply(ctx); err != nil {
		k.log.Error("the environment changed but cannot be read", "error", err)
		return
	}
	c.wake(env)
	c.wakePromotions(env)
}

// apply hands what the environment is now to its deployer and watcher, if it is
// owned. Who comes last reads last, so that an older state never wins.
func (k *keeper) apply(ctx context.Context) error {
	k.applying.Lock()
	defer k.applying.Unlock()
	k.control.mu.Lock()
	deployer := k.deployer
	k.control.mu.Unlock()
	if deployer == nil {
		return nil
	}
	e, err := k.control.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return err
	}
	deployer.Changed(e)
	k.control.watch(ctx, e)
	return nil
}

// run owns the environment, as long as it can, until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		release, lost, ok, err := k.control.cfg.Store.Own(ctx, k.env)
		if err != nil || !ok {
			if err != nil && ctx.Err() == nil {
				k.log.Warn("cannot take the environment yet", "error", err)
			}
			pause(ctx, ownRetry)
			continue
		}
		k.own(ctx, lost)
		release()
	}
}

// own keeps the environment until ctx ends or the ownership is lost.
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
	c := k.control
	var e intent.Environment
	if !k.persist(ctx, "read the environment", func() (err error) {
		e, err = c.cfg.Store.Environment(ctx, k.env)
		return err
	}) {
		return
	}
	if !k.persist(ctx, "prepare the environment's folders", func() error { return c.cfg.Workspace.Prepare(e) }) {
		return
	}
	deployer, err := c.cfg.Deployers.New(e)
	if err == nil {
		err = deployer.Start(ctx)
	}
	if err != nil {
		k.log.Error("the scheduler cannot start", "error", err)
		pause(ctx, ownRetry)
		return
	}
	c.mu.Lock()
	k.deployer = deployer
	c.mu.Unlock()
	defer func() {
		k.applying.Lock()
		c.cfg.Watcher.Forget(k.env)
		c.mu.Lock()
		k.deployer = nil
		c.mu.Unlock()
		k.applying.Unlock()
		deployer.Stop()
	}()
	// A setting that changed while the deployer was made reached nobody.
	if !k.persist(ctx, "read the environment again", func() error { return k.apply(ctx) }) {
		return
	}
	c.factsChanged(ctx, k.env)
	var wg sync.WaitGroup
	wg.Go(func() { k.keepPreviews(ctx) })
	wg.Go(func() { k.keepHooks(ctx) })
	wg.Go(func() { k.keepPromotions(ctx) })
	k.loop(ctx)
	cancel()
	wg.Wait()
}

// loop runs compiles as they are asked for.
func (k *keeper) loop(ctx context.Context) {
	c := k.control
	var lastEnd time.Time
	for ctx.Err() == nil {
		e, err := c.cfg.Store.Environment(ctx, k.env)
		if fault.Is(err, fault.NotFound) {
			return
		}
		if err != nil {
			pause(ctx, ownRetry)
			continue
		}
		var next time.Time // of the compile schedule
		if schedule, err := intent.ParseInterval(e.Text("auto_full_compile")); err == nil && schedule != nil {
			next = schedule.Next(c.cfg.Now())
		}
		if !e.Halted && e.Bool("server_compile") {
			gap := time.Duration(e.Float("recompile_backoff") * float64(time.Second))
			pause(ctx, gap-c.cfg.Now().Sub(lastEnd))
			worked, err := k.compileNext(ctx)
			if err != nil {
				if ctx.Err() == nil {
					k.log.Error("cannot look for work", "error", err)
					pause(ctx, ownRetry)
				}
				continue
			}
			if worked {
				lastEnd = c.cfg.Now()
				continue
			}
		}
		k.sleep(ctx, e, next)
	}
}

// compileNext runs the next compile, when one waits and it is the environment's turn.
func (k *keeper) compileNext(ctx context.Context) (worked bool, err error) {
	c := k.control
	if open, err := c.cfg.Store.OpenCompiles(ctx, k.env); err != nil || len(open) == 0 {
		return false, err
	}
	began := time.Now()
	c.arrivals.storm.over(ctx, began)
	turn, err := c.compiles.take(ctx, k.env)
	if err != nil {
		return false, err
	}
	defer turn.release()
	e, err := c.cfg.Store.Environment(ctx, k.env)
	if err != nil || e.Halted || !e.Bool("server_compile") { // since it waits for its turn
		return err == nil, err
	}
	compile, err := c.cfg.Store.StartCompile(ctx, k.env, c.cfg.Now())
	if err != nil || compile == nil {
		return false, err
	}
	// Settings that were made before it was asked for count.
	if !k.persist(ctx, "read the environment", func() (err error) {
		e, err = c.cfg.Store.Environment(ctx, k.env)
		return err
	}) {
		return true, nil // it is still open, and starts over
	}
	k.compile(ctx, e, *compile, turn, began)
	return true, nil
}

// sleep waits until there may be something to compile.
func (k *keeper) sleep(ctx context.Context, e intent.Environment, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(k.control.cfg.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-k.wake:
	case <-due:
		_, _, err := k.control.RequestCompile(ctx, e.ID, CompileRequest{
			Update: true, Trigger: intent.Trigger{Type: "schedule", Message: "auto_full_compile is due"},
		})
		if err != nil && ctx.Err() == nil {
			k.log.Error("the scheduled compile could not be asked for", "error", err)
		}
	}
}

// persist is patiently for what nobody waits for: an error is logged.
func (k *keeper) persist(ctx context.Context, what string, do func() error) bool {
	err := k.patiently(ctx, what, do)
	if err != nil && ctx.Err() == nil {
		k.log.Error("could not "+what, "error", err)
	}
	return err == nil
}

// patiently repeats what needs the database while it is away, until it is
// done, ctx ends, or the trouble is not one that passes.
func (k *keeper) patiently(ctx context.Context, what string, do func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := do()
		if err == nil || !fault.Is(err, fault.Unavailable) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.log.Warn("could not "+what+" yet", "error", err)
		pause(ctx, wait)
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tidy drops what is older than its retention, every hour.
func (c *Control) tidy() {
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := c.Tidy(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Error("the clean-up of old records failed", "error", err)
		}
	}
}

// compileRetention is how long compile reports are kept.
const compileRetention = 7 * 24 * time.Hour

// mirrorRetention is how long the mirror of a repository is kept that no
// environment and no module uses.
const mirrorRetention = 30 * 24 * time.Hour

// tidyMirrors removes the mirrors of repositories that nobody uses any more.
func (c *Control) tidyMirrors(ctx context.Context, envs []intent.Environment) error {
	modules, err := c.cfg.Store.Modules(ctx)
	if err != nil {
		return err
	}
	commits, err := c.cfg.Store.UsedCommits(ctx)
	if err != nil {
		return err
	}
	var used []GitUse
	for _, e := range envs {
		if e.Source.URL != "" {
			used = append(used, GitUse{plainSource(e), commits[e.ID]})
		}
		for _, url := range modules[e.ID] {
			used = append(used, GitUse{GitSource: GitSource{URL: url}})
		}
	}
	return c.cfg.Git.Tidy(ctx, used, c.cfg.Now().Add(-mirrorRetention))
}

// Tidy drops compile reports, action logs, records of drift, notifications, webhooks and versions that are older than
// their environments want to keep, and mirrors that nobody uses. Halted environments are left alone.
func (c *Control) Tidy(ctx context.Context) error {
	envs, err := c.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	now := c.cfg.Now()
	if _, err := c.cfg.Store.DeleteCompilesBefore(ctx, now.Add(-compileRetention)); err != nil {
		return err
	}
	if err := c.cfg.Store.DeleteOutboxBefore(ctx, now.Add(-outboxRetention)); err != nil {
		return err
	}
	for _, e := range envs {
		if e.Halted {
			continue
		}
		days := e.Int("resource_action_logs_retention")
		if _, err := c.cfg.Store.DeleteActionsBefore(ctx, e.ID, now.AddDate(0, 0, -days)); err != nil {
			return err
		}
		if _, err := c.cfg.Store.DeleteDriftBefore(ctx, e.ID, now.AddDate(0, 0, -e.Int("drift_retention"))); err != nil {
			return err
		}
		if _, err := c.cfg.Store.DeleteNotificationsBefore(ctx, e.ID, now.AddDate(0, 0, -e.Int("notification_retention"))); err != nil {
			return err
		}
		if _, err := c.cfg.Store.DeleteDeliveriesBefore(ctx, e.ID, now.AddDate(0, 0, -e.Int("delivery_retention"))); err != nil {
			return err
		}
		if _, err := c.cfg.Store.PruneVersions(ctx, e.ID, e.Int("available_versions_to_keep")); err != nil {
			return err
		}
	}
	return c.tidyMirrors(ctx, envs)
}
