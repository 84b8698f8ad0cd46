package keeper

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// HookTargets lists the environments that are bound to a repository, with the
// secrets that webhooks about it are signed with.
func (r *Registry) HookTargets(ctx context.Context) ([]intent.HookTarget, error) {
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
	var targets []intent.HookTarget
	for _, e := range envs {
		if e.Source.URL == "" {
			continue
		}
		t := intent.HookTarget{Environment: e.ID, Name: e.Name, Source: e.Source, Modules: modules[e.ID]}
		if len(sealed[e.ID]) > 0 { // an environment's own secrets take precedence over its project's
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

// openHookSecrets opens the webhook secrets of an environment, and logs those that it
// cannot open.
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
