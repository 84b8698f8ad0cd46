package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type dryRunsOf struct {
	inEnvironment
	Version int `arg:"version,required"`
}

func (s *server) dryRuns(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v2/dryrun/:version", func(ctx context.Context, a dryRunsOf) (reply, error) {
		id, err := s.control.StartDryRun(ctx, a.Env, a.Version)
		if err != nil {
			return reply{}, err
		}
		return v2(id)
	})
	call(s, g, http.MethodGet, "/api/v2/dryrun/:version", func(ctx context.Context, a dryRunsOf) (reply, error) {
		if _, err := s.control.Version(ctx, a.Env, a.Version); err != nil {
			return reply{}, err
		}
		runs, err := s.control.DryRuns(ctx, a.Env, a.Version)
		if err != nil {
			return reply{}, err
		}
		out := []any{}
		for _, run := range runs {
			out = append(out, dryRunOf(run))
		}
		return v2(out)
	})
	call(s, g, http.MethodGet, "/api/v2/dryrun/:version/:report_id", func(ctx context.Context, a struct {
		dryRunsOf
		ID uuid.UUID `arg:"report_id,required"`
	}) (reply, error) {
		run, diffs, err := s.control.DryRun(ctx, a.Env, a.ID)
		if err == nil && run.Version != a.Version {
			err = fault.New("api", fault.NotFound, "this version has no such dry run")
		}
		if err != nil {
			return reply{}, err
		}
		return v2(map[string]any{"summary": dryRunOf(run), "diff": diffsOf(diffs)})
	})
	call(s, g, http.MethodPost, "/api/v1/dryrun/:id", func(ctx context.Context, a oneVersion) (reply, error) {
		id, err := s.control.StartDryRun(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		run, _, err := s.control.DryRun(ctx, a.Env, id)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"dryrun": dryRunV1(run, nil)})
	})
	call(s, g, http.MethodGet, "/api/v1/dryrun", func(ctx context.Context, a struct {
		inEnvironment
		Version *int `arg:"version"`
	}) (reply, error) {
		numbers := []int{}
		if a.Version != nil {
			numbers = append(numbers, *a.Version)
		} else {
			page, err := s.control.Versions(ctx, a.Env, intent.ListQuery{Limit: maxPage, Sort: "version", Desc: true})
			if err != nil {
				return reply{}, err
			}
			for _, v := range page.Items {
				numbers = append(numbers, v.Number)
			}
		}
		out := []any{}
		for _, number := range numbers {
			runs, err := s.control.DryRuns(ctx, a.Env, number)
			if err != nil {
				return reply{}, err
			}
			for _, run := range runs {
				out = append(out, map[string]any{"id": run.ID, "version": run.Version, "date": stamp(run.Date), "total": run.Total, "todo": run.Todo})
			}
		}
		return v1(map[string]any{"dryruns": out})
	})
	call(s, g, http.MethodGet, "/api/v1/dryrun/:id", func(ctx context.Context, a struct {
		inEnvironment
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		run, diffs, err := s.control.DryRun(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"dryrun": dryRunV1(run, diffs)})
	})
}

func dryRunOf(r intent.DryRun) map[string]any {
	return map[string]any{"id": r.ID, "environment": r.Environment, "model": r.Version, "date": stamp(r.Date), "total": r.Total, "todo": r.Todo}
}

// dryRunV1 holds the changes per resource.
func dryRunV1(r intent.DryRun, diffs []intent.ResourceDiff) map[string]any {
	out := dryRunOf(r)
	resources := map[string]any{}
	for _, d := range diffs {
		changes := map[string]any{}
		for name, change := range d.Attributes {
			changes[name] = map[string]any{"current": change.Current, "desired": change.Desired}
		}
		resources[d.ID.AtVersion(r.Version)] = map[string]any{
			"id": d.ID.AtVersion(r.Version), "resource_id": d.ID, "id_fields": idFields(d.ID, r.Version), "changes": changes,
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
