package keeper

import (
	"context"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/source"
)

const (
	// compileRetention is how long compile reports are kept.
	compileRetention = 7 * 24 * time.Hour
	// mirrorRetention is how long an unused mirror of a repository is kept.
	mirrorRetention = 30 * 24 * time.Hour
)

// tidyHourly calls Tidy every hour until ctx ends.
func (r *Registry) tidyHourly(ctx context.Context) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := r.Tidy(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Error("the clean-up of old records failed", "error", err)
		}
	}
}

// Tidy deletes entries of the audit trail, compile reports, action logs, records of drift, notifications, webhooks
// and versions that are past their retention, and unused mirrors. It skips halted
// environments.
func (r *Registry) Tidy(ctx context.Context) error {
	envs, err := r.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	now := r.cfg.Now()
	if _, err := r.cfg.Store.DeleteCompilesBefore(ctx, now.Add(-compileRetention)); err != nil {
		return err
	}
	if err := r.cfg.Store.DeleteOutboxBefore(ctx, now.Add(-forge.OutboxRetention)); err != nil {
		return err
	}
	if keep := r.cfg.AuditRetention; keep > 0 {
		if err := r.cfg.Store.DeleteAuditBefore(ctx, now.Add(-keep)); err != nil {
			return err
		}
	}
	for _, e := range envs {
		if e.Halted {
			continue
		}
		if err := r.tidyEnvironment(ctx, e, now); err != nil {
			return err
		}
	}
	return r.tidyMirrors(ctx, envs)
}

func (r *Registry) tidyEnvironment(ctx context.Context, e intent.Environment, now time.Time) error {
	for setting, drop := range map[string]func(context.Context, intent.EnvironmentID, time.Time) (int, error){
		"resource_action_logs_retention": r.cfg.Store.DeleteActionsBefore,
		"drift_retention":                r.cfg.Store.DeleteDriftBefore,
		"notification_retention":         r.cfg.Store.DeleteNotificationsBefore,
		"delivery_retention":             r.cfg.Store.DeleteDeliveriesBefore,
	} {
		if _, err := drop(ctx, e.ID, now.AddDate(0, 0, -e.Int(setting))); err != nil {
			return err
		}
	}
	_, err := r.cfg.Store.PruneVersions(ctx, e.ID, e.Int("available_versions_to_keep"))
	return err
}

// tidyMirrors removes the mirrors of repositories that no environment and no module uses.
func (r *Registry) tidyMirrors(ctx context.Context, envs []intent.Environment) error {
	modules, err := r.cfg.Store.Modules(ctx)
	if err != nil {
		return err
	}
	commits, err := r.cfg.Store.UsedCommits(ctx)
	if err != nil {
		return err
	}
	var used []gitsync.Use
	for _, e := range envs {
		if e.Source.URL != "" {
			used = append(used, gitsync.Use{Source: source.Plain(e), Commits: commits[e.ID]})
		}
		for _, url := range modules[e.ID] {
			used = append(used, gitsync.Use{
				Source: gitsync.Source{URL: url, Trust: gitsync.Trust{Scope: e.ProjectID.String()}},
			})
		}
	}
	return r.cfg.Git.Tidy(ctx, used, r.cfg.Now().Add(-mirrorRetention))
}
