package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

type dryRunsOf struct {
	inEnvironment
	Version int `arg:"version,required"`
}

// dryRunChoice chooses what to look at; what is left out chooses all.
type dryRunChoice struct {
	Agents    []string `arg:"agents"`
	Types     []string `arg:"resource_types"`
	Resources []string `arg:"resource_ids"`
}

func (c dryRunChoice) filter() (intent.DryRunFilter, error) {
	f := intent.DryRunFilter{Agents: c.Agents, Types: c.Types}
	ids, err := resourceIDs(c.Resources)
	f.Resources = ids
	if err == nil &&
		(c.Agents != nil && len(c.Agents) == 0 || c.Types != nil && len(c.Types) == 0 || c.Resources != nil && len(c.Resources) == 0) {
		err = invalid("an empty list chooses nothing; leave it out to choose all")
	}
	return f, err
}

func resourceIDs(names []string) (ids []intent.ResourceID, err error) {
	for _, name := range names {
		id, err := intent.ParseResourceID(name)
		if err != nil {
			return nil, invalid("resource_ids: %v", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type dryRunReport struct {
	inEnvironment
	ID uuid.UUID `arg:"report_id,required"`
}

// dryRuns are Inmanta's calls and, beside them, calls for dry runs of commits:
//
//	GET  /api/v2/dryrun                            those of all versions and commits, newest first
//	POST /api/v2/dryrun                            {"version": 3} or {"commit": "main"}, and what to look at
//	GET  /api/v2/dryrun-report/<id>                one, whatever it is of
//	POST /api/v2/dryrun-report/<id>/cancel         end it
func (s *server) dryRuns(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v2/dryrun/{version}", func(ctx context.Context, a struct {
		dryRunsOf
		dryRunChoice
	}) (reply, error) {
		filter, err := a.filter()
		if err != nil {
			return reply{}, err
		}
		id, err := s.control.StartDryRun(ctx, a.Env, control.DryRunRequest{Version: a.Version, Filter: filter})
		if err != nil {
			return reply{}, err
		}
		return v2(id)
	})
	call(s, g, http.MethodPost, "/api/v2/dryrun", func(ctx context.Context, a struct {
		inEnvironment
		Version int    `arg:"version"`
		Commit  string `arg:"commit"`
		dryRunChoice
	}) (reply, error) {
		filter, err := a.filter()
		if err != nil {
			return reply{}, err
		}
		id, err := s.control.StartDryRun(
			ctx,
			a.Env,
			control.DryRunRequest{Version: a.Version, Commit: a.Commit, Filter: filter},
		)
		if err != nil {
			return reply{}, err
		}
		return v2(id)
	})
	call(s, g, http.MethodGet, "/api/v2/dryrun", func(ctx context.Context, a inEnvironment) (reply, error) {
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		return s.listDryRuns(ctx, a.Env, 0)
	})
	call(s, g, http.MethodGet, "/api/v2/dryrun/{version}", func(ctx context.Context, a dryRunsOf) (reply, error) {
		if _, err := s.store.Version(ctx, a.Env, a.Version); err != nil {
			return reply{}, err
		}
		return s.listDryRuns(ctx, a.Env, a.Version)
	})
	call(s, g, http.MethodGet, "/api/v2/dryrun/{version}/{report_id}", func(ctx context.Context, a struct {
		dryRunsOf
		ID uuid.UUID `arg:"report_id,required"`
	}) (reply, error) {
		return s.dryRunReport(ctx, a.Env, a.ID, a.Version)
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/dryrun-report/{report_id}",
		func(ctx context.Context, a dryRunReport) (reply, error) {
			return s.dryRunReport(ctx, a.Env, a.ID, 0)
		},
	)
	call(
		s,
		g,
		http.MethodPost,
		"/api/v2/dryrun-report/{report_id}/cancel",
		func(ctx context.Context, a dryRunReport) (reply, error) {
			if err := s.control.CancelDryRun(ctx, a.Env, a.ID); err != nil {
				return reply{}, err
			}
			return v2(nil)
		},
	)
	s.dryRunsV1(g)
}

func (s *server) listDryRuns(ctx context.Context, env intent.EnvironmentID, version int) (reply, error) {
	runs, err := s.store.DryRuns(ctx, env, version)
	if err != nil {
		return reply{}, err
	}
	return v2(listed(runs, dryRunOf))
}

// dryRunReport gives one with all it found; a version other than 0 must be its own.
func (s *server) dryRunReport(ctx context.Context, env intent.EnvironmentID, id uuid.UUID, version int) (reply, error) {
	run, diffs, err := s.store.DryRun(ctx, env, id)
	if err == nil && version != 0 && run.Version != version {
		err = fault.New("api", fault.NotFound, "this version has no such dry run")
	}
	if err != nil {
		return reply{}, err
	}
	gone, err := s.control.NoLongerManaged(ctx, run)
	if err != nil {
		return reply{}, err
	}
	summary := dryRunOf(run)
	counts := map[intent.DiffKind]int{}
	for _, d := range diffs {
		counts[d.Kind]++
	}
	summary["counts"] = map[string]any{
		"created": counts[intent.DiffAdded], "changed": counts[intent.DiffModified], "purged": counts[intent.DiffDeleted],
		"unchanged": counts[intent.DiffUnmodified], "unknown": counts[intent.DiffUnknown] + counts[intent.DiffAgentDown],
		"undefined": counts[intent.DiffUndefined] + counts[intent.DiffSkipped], "no_longer_managed": len(gone),
	}
	left := []any{}
	for _, id := range gone {
		left = append(left, id)
	}
	return v2(map[string]any{"summary": summary, "diff": dryDiffsOf(diffs), "no_longer_managed": left})
}

// dryDiffsOf shows results. Inmanta's clients know no other word than
// agent_down for what could not be told; unknown and reason say it better.
func dryDiffsOf(diffs []intent.ResourceDiff) []any {
	out := diffsOf(diffs)
	for i, d := range diffs {
		one := out[i].(map[string]any)
		one["unknown"], one["reason"], one["behind"] = d.Kind.Unknown(), nil, nil
		if d.Kind == intent.DiffUnknown {
			one["status"] = intent.DiffAgentDown
		}
		if d.Reason != "" {
			one["reason"] = d.Reason
		}
		if !d.Behind.IsZero() {
			one["behind"] = d.Behind
		}
	}
	return out
}

func (s *server) dryRunsV1(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v1/dryrun/{id}", func(ctx context.Context, a oneVersion) (reply, error) {
		id, err := s.control.StartDryRun(ctx, a.Env, control.DryRunRequest{Version: a.ID})
		if err != nil {
			return reply{}, err
		}
		run, _, err := s.store.DryRun(ctx, a.Env, id)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"dryrun": dryRunV1(run, nil)})
	})
	call(s, g, http.MethodGet, "/api/v1/dryrun", func(ctx context.Context, a struct {
		inEnvironment
		Version *int `arg:"version"`
	}) (reply, error) {
		version := 0
		if a.Version != nil {
			version = *a.Version
		}
		runs, err := s.store.DryRuns(ctx, a.Env, version)
		if err != nil {
			return reply{}, err
		}
		out := []any{}
		for _, run := range runs {
			if run.Version > 0 { // the model of the others is not there yet
				out = append(
					out,
					map[string]any{
						"id":      run.ID,
						"version": run.Version,
						"date":    stamp(run.Date),
						"total":   run.Total,
						"todo":    run.Todo,
					},
				)
			}
		}
		return v1(map[string]any{"dryruns": out})
	})
	call(s, g, http.MethodGet, "/api/v1/dryrun/{id}", func(ctx context.Context, a struct {
		inEnvironment
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		run, diffs, err := s.store.DryRun(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"dryrun": dryRunV1(run, diffs)})
	})
}

func dryRunOf(r intent.DryRun) map[string]any {
	out := map[string]any{
		"id": r.ID, "environment": r.Environment, "model": nil, "date": stamp(r.Date), "total": r.Total, "todo": r.Todo,
		"state": r.State(), "complete": r.Complete(), "unknown": r.Unknown, "ended": maybe(r.Ended), "reason": nil,
		"commit": nil, "compile": nil, "filter": nil,
	}
	if r.Version > 0 {
		out["model"] = r.Version
	}
	if r.Reason != "" {
		out["reason"] = r.Reason
	}
	if r.Commit != "" {
		out["commit"], out["compile"] = r.Commit, r.Compile
	}
	if !r.Filter.IsZero() {
		out["filter"] = map[string]any{
			"agents":         r.Filter.Agents,
			"resource_types": r.Filter.Types,
			"resource_ids":   r.Filter.Resources,
		}
	}
	return out
}

// dryRunV1 holds the changes per resource.
func dryRunV1(r intent.DryRun, diffs []intent.ResourceDiff) map[string]any {
	out := map[string]any{
		"id":          r.ID,
		"environment": r.Environment,
		"model":       r.Version,
		"date":        stamp(r.Date),
		"total":       r.Total,
		"todo":        r.Todo,
	}
	resources := map[string]any{}
	for _, d := range diffs {
		changes := map[string]any{}
		for name, change := range d.Attributes {
			changes[name] = map[string]any{"current": change.Current, "desired": change.Desired}
		}
		resources[d.ID.AtVersion(r.Version)] = map[string]any{
			"id": d.ID.AtVersion(
				r.Version,
			), "resource_id": d.ID, "id_fields": idFields(d.ID, r.Version), "changes": changes,
		}
	}
	out["resources"] = resources
	return out
}

func idFields(id intent.ResourceID, version int) map[string]any {
	return map[string]any{
		"entity_type": id.Type, "agent_name": id.Agent, "attribute": id.Attribute, "attribute_value": id.Value, "version": version,
	}
}
