package keeper

import (
	"context"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

// Each environment is owned by one of the processes that have the role process. They do
// not talk to each other about it: each takes what nobody has, up to its share, and gives
// back what it has beyond that, one at a time and only while nothing of it runs.

// ownInterval is how often a process looks for environments that nobody owns.
const ownInterval = 2 * time.Second

// keepOwning takes environments, and gives some back, until ctx ends.
func (r *Registry) keepOwning(ctx context.Context) {
	moves := r.cfg.Bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Environment || e.Topic == bus.Lagged })
	defer moves.Close()
	ticker := time.NewTicker(ownInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.ownWakes:
		case <-moves.Events():
		}
		if err := r.balance(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("cannot look for environments to own", "error", err)
		}
	}
}

// balance looks once for environments to take or to give back.
func (r *Registry) balance(ctx context.Context) error {
	all, free, err := r.cfg.Store.FreeEnvironments(ctx)
	if err != nil {
		return err
	}
	peers := max(r.cfg.Peers(), 1)
	wanted := (len(all) + peers - 1) / peers
	owned := r.kept()
	r.share.Store([2]int{len(owned), wanted})
	exists := make(map[intent.EnvironmentID]bool, len(all))
	for _, env := range all {
		exists[env] = true
	}
	for _, env := range owned {
		if !exists[env] {
			r.forsake(env)
		}
	}
	r.mu.Lock()
	maps.DeleteFunc(r.away, func(env intent.EnvironmentID, _ bool) bool { return !exists[env] })
	r.mu.Unlock()
	r.takeSome(ctx, free, len(owned), wanted, peers)
	if len(owned) > wanted && len(free) == 0 {
		r.giveBack(ctx, owned)
	}
	return nil
}

// takeSome takes environments that nobody owns, up to this process's share. A process that died counts as a peer for
// some seconds: environments that were free at the last look too are taken beyond the share.
func (r *Registry) takeSome(ctx context.Context, free []intent.EnvironmentID, have, wanted, peers int) {
	var left []intent.EnvironmentID
	for _, env := range free {
		if r.leftOver[env] {
			left = append(left, env)
		}
	}
	others := max(peers-1, 1)
	most := max(wanted, have+(len(left)+others-1)/others)
	for i, env := range slices.Concat(left, free) {
		if have >= most || i >= len(left) && have >= wanted || ctx.Err() != nil {
			break
		}
		if r.take(ctx, env) {
			have++
		}
	}
	r.leftOver = make(map[intent.EnvironmentID]bool, len(free))
	for _, env := range free {
		r.leftOver[env] = true
	}
}

// take takes an environment, if nobody has it, and starts its keeper.
func (r *Registry) take(ctx context.Context, env intent.EnvironmentID) bool {
	held, err := r.cfg.Store.Own(ctx, env)
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("cannot take the environment yet", "environment", env, "error", err)
	}
	if held == nil {
		return false
	}
	if !r.keep(env, held) {
		held.Release()
		return false
	}
	return true
}

// keep starts the keeper of an environment that this process holds, unless it has one or ends.
func (r *Registry) keep(env intent.EnvironmentID, held *locks.Held) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil || r.keepers[env] != nil || r.away[env] {
		return false
	}
	ctx, cancel := context.WithCancel(r.ctx)
	k := newKeeper(r, env, cancel)
	r.keepers[env] = k
	r.ending.Go(func() {
		defer close(k.done)
		defer cancel()
		k.own(ctx, held.Lost())
		if k.clear.Load() {
			r.removeFolders(env)
		}
		held.Release()
		r.mu.Lock()
		if r.keepers[env] == k {
			delete(r.keepers, env)
		}
		r.mu.Unlock()
		wake(r.ownWakes)
	})
	return true
}

// forsake ends the keeper of an environment that another process deleted, and removes its files here.
func (r *Registry) forsake(env intent.EnvironmentID) {
	r.end(env, r.keeper(env))
	r.removeFolders(env)
}

func (r *Registry) removeFolders(env intent.EnvironmentID) {
	if err := r.Folders.Remove(env); err != nil {
		r.cfg.Logger.Warn("cannot remove the files of an environment", "environment", env, "error", err)
	}
}

// giveBack gives back one environment of which nothing runs, so that another process can take it.
func (r *Registry) giveBack(ctx context.Context, owned []intent.EnvironmentID) {
	for _, env := range owned {
		k := r.keeper(env)
		if k == nil || !k.idle(ctx) {
			continue
		}
		r.cfg.Logger.Info("gives an environment to another process", "environment", env)
		r.end(env, k)
		return
	}
}

// idle reports whether neither a compile nor a deployment of the environment is under way.
func (k *keeper) idle(ctx context.Context) bool {
	d := k.currentDeployer()
	if d == nil || k.compiling.Load() > 0 {
		return false
	}
	short, cancel := context.WithTimeout(ctx, idlePatience)
	defer cancel()
	return d.Wait(short) == nil
}

// idlePatience is how long a deployer has to say that nothing is under way.
const idlePatience = 20 * time.Millisecond

// kept lists the environments that have a keeper here, in a fixed order.
func (r *Registry) kept() []intent.EnvironmentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]intent.EnvironmentID, 0, len(r.keepers))
	for env := range r.keepers {
		out = append(out, env)
	}
	slices.SortFunc(out, func(a, b intent.EnvironmentID) int { return slices.Compare(a[:], b[:]) })
	return out
}

// Share returns how many environments this process owns, and how many it should own.
func (r *Registry) Share() (owned, wanted int) {
	if s, ok := r.share.Load().([2]int); ok {
		return s[0], s[1]
	}
	return 0, 0
}

// Keep takes a new environment, or one that Release kept away, unless another process was faster.
func (r *Registry) Keep(env intent.EnvironmentID) {
	r.mu.Lock()
	delete(r.away, env)
	ctx := r.ctx
	r.mu.Unlock()
	if ctx != nil && ctx.Err() == nil && r.keeper(env) == nil {
		r.take(ctx, env)
	}
}

// Release ends the keeper of an environment here, and gives the environment back. This process does not take it again
// before Keep. Release reports whether it had it.
func (r *Registry) Release(env intent.EnvironmentID) (had bool) {
	r.mu.Lock()
	k := r.keepers[env]
	r.away[env] = true
	r.mu.Unlock()
	r.end(env, k)
	return k != nil
}

// end ends a keeper, if there is one, and forgets the environment's turns.
func (r *Registry) end(env intent.EnvironmentID, k *keeper) {
	if k != nil {
		k.stop()
		<-k.done
	}
	r.compiles.forget(env)
	r.previewing.forget(env)
	r.disk.forget(env)
}

// Owns reports whether this process owns an environment.
func (r *Registry) Owns(env intent.EnvironmentID) bool { return r.Deployer(env) != nil }
