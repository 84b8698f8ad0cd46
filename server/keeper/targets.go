package keeper

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// HookTarget is an environment that a webhook may notify, with what can sign for it.
type HookTarget struct {
	Environment intent.EnvironmentID
	Name        string
	Source      intent.Source
	Modules     map[string]string // repositories of the modules that its project uses, by name
	Secrets     [][]byte
}

const (
	// targetsAge is how long the targets are good that were read: another process
	// may have changed them.
	targetsAge = time.Second
	// freshAge bounds how often they are read for webhooks that match none.
	freshAge = 100 * time.Millisecond
)

// targetCache has the targets as they were read last, so that a burst of
// webhooks does not read all environments for each.
type targetCache struct {
	stale atomic.Bool // this process changed an environment since

	mu   sync.Mutex
	last []HookTarget
	read time.Time
}

// changed says that an environment changed.
func (t *targetCache) changed() { t.stale.Store(true) }

// HookTargets lists the environments that are bound to a repository, with their
// webhook secrets. They may be a second old, unless fresh ones are asked for or
// this process changed an environment. The list is shared: it must not be changed.
func (r *Registry) HookTargets(ctx context.Context, fresh bool) ([]HookTarget, error) {
	asked := time.Now()
	t := &r.targets
	t.mu.Lock()
	defer t.mu.Unlock()
	age := targetsAge
	if fresh {
		age = freshAge
	}
	if !t.stale.Swap(false) && t.last != nil && asked.Sub(t.read) < age {
		return t.last, nil
	}
	read := time.Now()
	targets, err := r.readTargets(ctx)
	if err != nil {
		t.stale.Store(true)
		return nil, err
	}
	t.last, t.read = targets, read
	return targets, nil
}

func (r *Registry) readTargets(ctx context.Context) ([]HookTarget, error) {
	envs, err := r.cfg.Store.Environments(ctx)
	if err != nil {
		return nil, err
	}
	sealed, err := r.cfg.Store.HookSecrets(ctx)
	if err != nil {
		return nil, err
	}
	modules, err := r.cfg.Store.Modules(ctx)
	if err != nil {
		return nil, err
	}
	shared := map[intent.ProjectID][][]byte{}
	targets := []HookTarget{}
	for _, e := range envs {
		if e.Source.URL == "" {
			continue
		}
		t := HookTarget{Environment: e.ID, Name: e.Name, Source: e.Source, Modules: modules[e.ID]}
		if len(sealed[e.ID]) > 0 { // those of its own come before its project's
			t.Secrets = r.openHookSecrets(e.ID, sealed[e.ID])
		} else {
			if _, known := shared[e.ProjectID]; !known {
				if shared[e.ProjectID], err = r.projectHookSecrets(ctx, e.ProjectID); err != nil {
					return nil, err
				}
			}
			t.Secrets = shared[e.ProjectID]
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// openHookSecrets opens the webhook secrets of an environment; one that cannot be
// opened is logged.
func (r *Registry) openHookSecrets(env intent.EnvironmentID, sealed map[string][]byte) (out [][]byte) {
	for name, text := range sealed {
		plain, err := r.cfg.Sources.Open(env, name, text)
		if err != nil {
			r.cfg.Logger.Error("a webhook secret cannot be opened", "environment", env, "secret", name, "error", err)
			continue
		}
		if len(plain) > 0 {
			out = append(out, plain)
		}
	}
	return out
}

// projectHookSecrets opens the webhook secrets that a project's environments share.
func (r *Registry) projectHookSecrets(ctx context.Context, id intent.ProjectID) (out [][]byte, err error) {
	all, err := r.cfg.Sources.ProjectSecrets(ctx, id)
	if fault.Is(err, fault.Internal) {
		r.cfg.Logger.Error("a webhook secret of a project cannot be opened", "project", id, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{source.SecretWebhook, source.SecretWebhookPrevious} {
		if s := all[name]; s != "" {
			out = append(out, []byte(s))
		}
	}
	return out, nil
}
