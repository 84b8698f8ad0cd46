package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

type notifyGet struct {
	ID        uuid.UUID `arg:"id,required"`
	Update    bool      `arg:"update"`
	Reinstall bool      `arg:"reinstall"`
}

type notify struct {
	notifyGet
	Metadata map[string]any `arg:"metadata"`
	// Partial compiles some resource sets only.
	Partial     bool     `arg:"partial"`
	RemovedSets []string `arg:"removed_resource_sets"`
}

var compileList = list{
	sort: "requested.desc", columns: map[string]kind{"requested": moment}, id: uuidID,
	filters: map[string]kind{"success": truth, "started": truth, "completed": truth, "requested": timeRange},
}

func (s *server) compiles(g *gin.Engine) {
	call(s, g, http.MethodPost, "/api/v1/notify/{id}", s.notify, notify{notifyGet: notifyGet{Update: true}})
	call(s, g, http.MethodGet, "/api/v1/notify/{id}", func(ctx context.Context, a notifyGet) (reply, error) {
		return s.notify(ctx, notify{notifyGet: a})
	}, notifyGet{Update: true})
	call(s, g, http.MethodHead, "/api/v1/notify/{id}", func(ctx context.Context, a justEnvironment) (reply, error) {
		compiling, err := s.control.IsCompiling(ctx, a.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return reply{}, err
		}
		if !compiling {
			return reply{code: http.StatusNoContent}, nil
		}
		return reply{}, nil
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v1/compilequeue",
		func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
			queue, err := s.store.OpenCompiles(ctx, a.Env)
			if err != nil {
				return reply{}, err
			}
			return v1(map[string]any{"queue": listed(queue, compileBase)})
		},
	)
	call(s, g, http.MethodGet, "/api/v2/compilereport", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := compileList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.Compiles(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/compilereport", compileList, q, page,
			compileV2,
			func(c intent.Compile) place { return atTime(c.Requested, c.ID.String()) })
	})
	call(s, g, http.MethodGet, "/api/v2/compilereport/{id}", func(ctx context.Context, a struct {
		inEnvironment
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		c, stages, err := s.store.Compile(ctx, a.ID)
		if err == nil && c.Environment != a.Env {
			err = fault.New("api", fault.NotFound, "The compile with the given id does not exist.")
		}
		if err != nil {
			return reply{}, err
		}
		out := compileV2(c)
		out["compile_data"] = compileData(c.Diagnostics)
		out["reports"] = stagesOf(stages)
		return v2(out)
	})
	call(s, g, http.MethodGet, "/api/v2/compiledata/{id}", func(ctx context.Context, a struct {
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		c, _, err := s.store.Compile(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(compileData(c.Diagnostics))
	})
	call(s, g, http.MethodGet, "/api/v1/compilereport", s.reportsV1)
	call(s, g, http.MethodGet, "/api/v1/compilereport/{id}", func(ctx context.Context, a struct {
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		c, stages, err := s.store.Compile(ctx, a.ID)
		if fault.Is(err, fault.NotFound) {
			return reply{}, &bare{code: http.StatusNotFound}
		}
		if err != nil {
			return reply{}, err
		}
		if c.Substitute != nil {
			if c, stages, err = s.store.Compile(ctx, *c.Substitute); err != nil {
				return reply{}, err
			}
		}
		out := compileV1(c)
		out["reports"] = stagesOf(stages)
		return v1(map[string]any{"report": out})
	})
}

// notify asks for a compile. It answers at once.
func (s *server) notify(ctx context.Context, a notify) (reply, error) {
	if err := s.mustExist(ctx, a.ID); err != nil {
		return reply{}, err
	}
	if len(a.Metadata) == 0 {
		a.Metadata = map[string]any{"type": "api", "message": "Recompile trigger through API call"}
	}
	trigger := intent.Trigger{Type: "api"}
	if t, ok := a.Metadata["type"].(string); ok && t != "" {
		trigger.Type = t
	}
	trigger.Message, _ = a.Metadata["message"].(string)
	_, warning, err := s.control.RequestCompile(ctx, a.ID, control.CompileRequest{
		Update: a.Update, Reinstall: a.Reinstall, Metadata: a.Metadata, Trigger: trigger,
		Partial: a.Partial, RemovedSets: a.RemovedSets,
	})
	if err != nil {
		return reply{}, err
	}
	if warning != "" {
		return v1(map[string]any{"metadata": map[string]any{"warnings": []string{warning}}})
	}
	return v1(nil)
}

// reportsV1 lists reports by the time they started, newest first. The store
// sorts by request, so a window of its answer is sorted here.
func (s *server) reportsV1(ctx context.Context, a struct {
	inEnvironment
	Start *string `arg:"start"`
	End   *string `arg:"end"`
	Limit int     `arg:"limit"`
}) (reply, error) {
	q, err := compileList.query(paging{Limit: a.Limit})
	if err != nil {
		return reply{}, err
	}
	window := func(given *string) (time.Time, error) {
		if given == nil {
			return time.Time{}, nil
		}
		t, err := parseTime(*given)
		if err != nil {
			return t, invalid("%q: %v", *given, err)
		}
		return t, nil
	}
	after, err := window(a.Start)
	if err != nil {
		return reply{}, err
	}
	before, err := window(a.End)
	if err != nil {
		return reply{}, err
	}
	if !after.IsZero() && !before.IsZero() {
		return reply{}, invalid("only one of start and end can be used at a time")
	}
	wanted := q.Limit
	q.Limit = maxPage
	page, err := s.store.Compiles(ctx, a.Env, q)
	if err != nil {
		return reply{}, err
	}
	out := []any{}
	for _, c := range page.Items {
		started := c.Requested // a request that waits counts by when it was made
		if c.Started != nil {
			started = *c.Started
		}
		if !after.IsZero() && !started.After(after) || !before.IsZero() && !started.Before(before) ||
			len(out) == wanted {
			continue
		}
		out = append(out, compileV1(c))
	}
	return v1(map[string]any{"reports": out})
}

// compileBase is what every answer about a compile has.
func compileBase(c intent.Compile) map[string]any {
	metadata := map[string]any{}
	for k, v := range c.Metadata {
		metadata[k] = v
	}
	if metadata["type"] == nil {
		metadata["type"] = c.Trigger.Type
	}
	if metadata["message"] == nil {
		metadata["message"] = c.Trigger.Message
	}
	if c.Revision != nil {
		metadata["commit"], metadata["branch"], metadata["author"], metadata["subject"] =
			c.Revision.Commit, c.Revision.Branch, c.Revision.Author, c.Revision.Subject
	}
	if c.SupersededBy != nil {
		metadata["superseded_by"] = c.SupersededBy
	}
	variables := c.Variables
	if variables == nil {
		variables = map[string]string{}
	}
	removed := c.RemovedSets
	if removed == nil {
		removed = []string{}
	}
	return map[string]any{
		"id": c.ID, "remote_id": nil, "environment": c.Environment,
		"requested": stamp(c.Requested), "started": maybe(c.Started),
		"do_export": c.Export, "force_update": c.Update, "metadata": metadata,
		"mergeable_environment_variables": map[string]string{},
		"requested_environment_variables": variables, "environment_variables": variables,
		"partial": c.Partial, "removed_resource_sets": removed, "exporter_plugin": nil,
		"notify_failed_compile": nil, "failed_compile_message": nil, "links": map[string]any{},
	}
}

func compileV2(c intent.Compile) map[string]any {
	out := compileBase(c)
	out["completed"], out["success"], out["version"] = maybe(c.Completed), c.Success, c.Version
	return out
}

func compileV1(c intent.Compile) map[string]any {
	out := compileV2(c)
	out["used_environment_variables"] = out["environment_variables"]
	out["handled"] = c.Completed != nil
	out["substitute_compile_id"] = c.Substitute
	out["soft_delete"] = false
	out["reinstall_project_and_venv"] = c.Reinstall
	return out
}

func stagesOf(stages []intent.Stage) []any {
	out := []any{}
	for _, s := range stages {
		out = append(out, map[string]any{
			"id": s.ID, "started": stamp(s.Started), "completed": maybe(s.Completed),
			"command": s.Command, "name": s.Name, "outstream": s.Output, "errstream": s.ErrOutput,
			"returncode": s.ReturnCode,
		})
	}
	return out
}

// compileData shows diagnostics as clients know them: lines and characters
// count from 0. Null when there is none.
func compileData(raw json.RawMessage) any {
	var diagnostics []diag.Diagnostic
	if len(raw) == 0 || json.Unmarshal(raw, &diagnostics) != nil {
		return nil
	}
	failures := []any{}
	for _, d := range diagnostics {
		if d.Severity == diag.Warning {
			continue
		}
		kind, message := d.ForPrograms()
		failures = append(failures, map[string]any{
			"category": category(d), "type": kind, "message": message, "location": locationOf(d.Location),
		})
	}
	return map[string]any{"errors": failures}
}

// category is one of the three that clients know.
func category(d diag.Diagnostic) string {
	switch {
	case d.Raised != nil:
		return "plugin_exception"
	case strings.Contains(d.Kind, "Parser"), strings.Contains(d.Kind, "InvalidNamespaceAccess"):
		return "parse_error"
	}
	return "runtime_error"
}

func locationOf(l *diag.Location) any {
	if l == nil {
		return nil
	}
	position := func(line, column int) map[string]int {
		return map[string]int{"line": max(0, line-1), "character": max(0, column-1)}
	}
	end := position(l.EndLine, l.EndColumn)
	if l.EndLine == 0 {
		// Only the line is known: its range ends where the next one begins.
		end = position(l.Line+1, 1)
		if l.EndColumn > 0 {
			end = position(l.Line, l.EndColumn)
		}
	}
	return map[string]any{"uri": l.File, "range": map[string]any{"start": position(l.Line, l.Column), "end": end}}
}
