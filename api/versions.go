package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

var (
	versionList = list{
		sort: "version.desc", columns: map[string]kind{"version": number},
		filters: map[string]kind{"version": numberRange, "date": timeRange, "status": text, "released": truth},
	}
	versionResourceList = list{
		sort: "resource_type.desc", columns: map[string]kind{"resource_type": word, "agent": word, "resource_id_value": word}, id: textID,
		filters: map[string]kind{"resource_type": text, "agent": text, "resource_id_value": text},
	}
)

type oneVersion struct {
	inEnvironment
	ID int `arg:"id,required"`
}

func (s *server) versions(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v1/version", s.versionsV1)
	call(s, g, http.MethodGet, "/api/v1/version/{id}", s.versionV1)
	call(s, g, http.MethodPost, "/api/v1/version/{id}", func(ctx context.Context, a struct {
		oneVersion
		Push    bool    `arg:"push"`
		Trigger *string `arg:"agent_trigger_method"`
	}) (reply, error) {
		if err := s.control.Release(ctx, a.Env, a.ID); err != nil {
			return reply{}, err
		}
		v, err := s.store.Version(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		progress, err := s.progress(ctx, a.inEnvironment)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"model": versionV1(v, progress)})
	})
	call(s, g, http.MethodDelete, "/api/v1/version/{id}", func(ctx context.Context, a oneVersion) (reply, error) {
		if err := s.control.DeleteVersion(ctx, a.Env, a.ID); err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
	call(s, g, http.MethodGet, "/api/v2/desiredstate", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := versionList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.Versions(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/desiredstate", versionList, q, page,
			desiredState,
			func(v intent.Version) place { return at(strconv.Itoa(v.Number), "") })
	})
	call(s, g, http.MethodPost, "/api/v2/desiredstate/{version}/promote", func(ctx context.Context, a struct {
		inEnvironment
		Version int     `arg:"version,required"`
		Trigger *string `arg:"trigger_method"`
	}) (reply, error) {
		err := s.control.Release(ctx, a.Env, a.Version)
		if fault.Is(err, fault.NotFound) {
			return reply{}, &bare{code: http.StatusNotFound, message: "The request version does not exist."}
		}
		if err != nil {
			return reply{}, err
		}
		return nothing()
	})
	call(s, g, http.MethodGet, "/api/v2/desiredstate/{version}", func(ctx context.Context, a struct {
		inEnvironment
		paging
		Version int `arg:"version,required"`
	}) (reply, error) {
		q, err := versionResourceList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		if _, err := s.store.Version(ctx, a.Env, a.Version); err != nil {
			return reply{}, err
		}
		page, err := s.store.VersionResourcePage(ctx, a.Env, a.Version, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/desiredstate/"+strconv.Itoa(a.Version), versionResourceList, q, page,
			func(r intent.Resource) any { return versionedResource(r.ID, r.Version, r.Requires) },
			func(r intent.Resource) place { return resourcePlace(q.Sort, r.ID, "") })
	})
	call(s, g, http.MethodGet, "/api/v2/desiredstate/{version}/resource/{rid}", func(ctx context.Context, a struct {
		inEnvironment
		Version int               `arg:"version,required"`
		ID      intent.ResourceID `arg:"rid,required"`
	}) (reply, error) {
		r, err := s.store.VersionResource(ctx, a.Env, a.Version, a.ID)
		if err != nil {
			return reply{}, err
		}
		out := resourceBase(r.ID, attributesOf(r))
		out["resource_version_id"], out["version"] = r.ID.AtVersion(r.Version), r.Version
		return v2(out)
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/desiredstate/{version}/resource/{rid}/provenance",
		func(ctx context.Context, a struct {
			inEnvironment
			Version int               `arg:"version,required"`
			ID      intent.ResourceID `arg:"rid,required"`
		}) (reply, error) {
			explained, err := s.control.Explain(ctx, a.Env, a.Version, a.ID)
			if err != nil {
				return reply{}, err
			}
			return v2(explained)
		},
	)
	call(s, g, http.MethodGet, "/api/v2/desiredstate/diff/{from}/{to}", func(ctx context.Context, a struct {
		inEnvironment
		From int `arg:"from,required"`
		To   int `arg:"to,required"`
	}) (reply, error) {
		diffs, err := s.control.DiffVersions(ctx, a.Env, a.From, a.To)
		if err != nil {
			return reply{}, err
		}
		return v2(diffsOf(diffs))
	})
}

// versionsV1 lists versions from the newest on; start counts rows.
func (s *server) versionsV1(ctx context.Context, a struct {
	inEnvironment
	Start *int `arg:"start"`
	Limit *int `arg:"limit"`
}) (reply, error) {
	if a.Limit == nil && a.Start != nil {
		return reply{}, invalid("start needs a limit too")
	}
	q, err := versionList.query(paging{})
	if err != nil {
		return reply{}, err
	}
	start, limit := 0, maxPage
	if a.Start != nil {
		start = max(0, *a.Start)
	}
	if a.Limit != nil {
		if *a.Limit > maxPage || *a.Limit < 0 {
			return reply{}, invalid("the parameter limit can not exceed %d", maxPage)
		}
		if *a.Limit > 0 {
			limit = *a.Limit
		}
	}
	progress, err := s.progress(ctx, a.inEnvironment)
	if err != nil {
		return reply{}, err
	}
	out, count := []any{}, 0
	for seen := 0; ; {
		page, err := s.store.Versions(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		count = page.Total
		for _, v := range page.Items {
			if seen >= start && len(out) < limit {
				out = append(out, versionV1(v, progress))
			}
			seen++
		}
		if len(out) == limit || page.After == 0 || len(page.Items) == 0 {
			break
		}
		last := strconv.Itoa(page.Items[len(page.Items)-1].Number)
		q.Before = &intent.Bound{Value: &last}
	}
	return v1(map[string]any{"versions": out, "start": a.Start, "limit": a.Limit, "count": count})
}

// versionV1 gives one version with its resources.
func (s *server) versionV1(ctx context.Context, a struct {
	oneVersion
	IncludeLogs *bool   `arg:"include_logs"`
	LogFilter   *string `arg:"log_filter"`
	Limit       int     `arg:"limit"`
}) (reply, error) {
	v, err := s.store.Version(ctx, a.Env, a.ID)
	if err != nil {
		return reply{}, err
	}
	all, err := s.store.VersionResources(ctx, a.Env, a.ID)
	if err != nil {
		return reply{}, err
	}
	states, err := s.statuses(ctx, a.inEnvironment)
	if err != nil {
		return reply{}, err
	}
	var logs map[intent.ResourceID][]intent.Action
	if a.IncludeLogs != nil && *a.IncludeLogs {
		var kind intent.ActionKind
		if a.LogFilter != nil {
			kind = intent.ActionKind(*a.LogFilter)
		}
		if logs, err = s.actionsOfVersion(ctx, a.inEnvironment, a.ID, kind, a.Limit); err != nil {
			return reply{}, err
		}
	}
	progress, err := s.progress(ctx, a.inEnvironment)
	if err != nil {
		return reply{}, err
	}
	out := []any{}
	for _, r := range all {
		one := resourceV1(a.Env, r, states[r.ID])
		if a.IncludeLogs != nil && *a.IncludeLogs {
			actions := []any{}
			for _, action := range logs[r.ID] {
				actions = append(actions, actionOf(action))
			}
			one["actions"] = actions
		}
		out = append(out, one)
	}
	return v1(map[string]any{"model": versionV1(v, progress), "resources": out, "unknowns": []any{}})
}

// progress is how far the active version is deployed, in the keys that
// clients of version 14 read.
type progress struct {
	active int
	counts map[intent.Status]int
}

func (s *server) progress(ctx context.Context, in inEnvironment) (progress, error) {
	var p progress
	active, err := s.store.ActiveVersion(ctx, in.Env)
	if err != nil || active == nil {
		return p, err
	}
	p.active = active.Number
	p.counts, err = s.store.ResourceCounts(ctx, in.Env)
	return p, err
}

// of gives deployed, done and result of a version.
func (p progress) of(v intent.Version) (deployed bool, done int, result string) {
	if v.Released == nil {
		return false, 0, "pending"
	}
	if v.Number != p.active {
		return true, v.Total, "success"
	}
	result = "success"
	for status, n := range p.counts {
		switch status {
		case intent.StatusAvailable, intent.StatusDeploying:
			if n > 0 {
				result = "deploying"
			}
			continue
		case intent.StatusDeployed:
		default:
			if n > 0 && result == "success" {
				result = "failed"
			}
		}
		done += n
	}
	return result != "deploying", done, result
}

func versionV1(v intent.Version, p progress) map[string]any {
	deployed, done, result := p.of(v)
	return map[string]any{
		"environment": v.Environment, "version": v.Number, "date": stamp(v.Created), "total": v.Total,
		"released": v.Released != nil, "version_info": map[string]any{"export_metadata": exportMetadata(v)},
		"undeployable": []string{}, "skipped_for_undeployable": []string{}, "partial_base": nil,
		"pip_config": nil, "project_constraints": nil, "is_suitable_for_partial_compiles": false,
		"deployed": deployed, "done": done, "result": result, "status": map[string]any{},
	}
}

func exportMetadata(v intent.Version) map[string]any {
	p := v.Provenance
	return map[string]any{
		"type": p.Trigger.Type, "message": p.Trigger.Message, "compile": p.Compile, "commit": p.Commit,
		"branch": p.Branch, "author": p.Author, "subject": p.Subject,
	}
}

func desiredState(v intent.Version) map[string]any {
	labels := []any{}
	if t := v.Provenance.Trigger; t.Type != "" {
		labels = append(labels, map[string]any{"name": t.Type, "message": t.Message})
	}
	return map[string]any{
		"version": v.Number, "date": stamp(v.Created), "total": v.Total, "labels": labels,
		"status": v.Status, "released": v.Released != nil, "hold": holdOf(v, false),
	}
}

// versionedResource is one line of a list of resources.
func versionedResource(id intent.ResourceID, version int, requires []intent.ResourceID) map[string]any {
	needs := []string{}
	for _, r := range requires {
		needs = append(needs, r.AtVersion(version))
	}
	return map[string]any{
		"resource_id": id, "resource_version_id": id.AtVersion(version), "id_details": idDetails(id), "requires": needs,
	}
}

func idDetails(id intent.ResourceID) map[string]any {
	return map[string]any{
		"resource_type":     id.Type,
		"agent":             id.Agent,
		"attribute":         id.Attribute,
		"resource_id_value": id.Value,
	}
}

func resourcePlace(column string, id intent.ResourceID, status intent.Status) place {
	value := id.Type
	switch column {
	case "agent":
		value = id.Agent
	case "resource_id_value":
		value = id.Value
	case "resource_id":
		value = id.String()
	case "status":
		value = string(status)
	}
	return at(value, id.String())
}

// attributesOf gives the attributes of a resource with what it requires among
// them, as clients expect.
func attributesOf(r intent.Resource) map[string]any {
	return withRequires(r.Attributes, r.Requires)
}

func withRequires(raw json.RawMessage, requires []intent.ResourceID) map[string]any {
	attributes := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers go out exactly as they came in
	if err := decoder.Decode(&attributes); err != nil || attributes == nil {
		attributes = map[string]any{}
	}
	needs := []string{}
	for _, id := range requires {
		needs = append(needs, id.String())
	}
	attributes["requires"] = needs
	return attributes
}

func resourceBase(id intent.ResourceID, attributes map[string]any) map[string]any {
	return map[string]any{
		"resource_id": id, "resource_type": id.Type, "agent": id.Agent,
		"id_attribute": id.Attribute, "id_attribute_value": id.Value, "attributes": attributes,
	}
}

func resourceV1(env any, r intent.Resource, state *intent.ResourceState) map[string]any {
	out := map[string]any{
		"environment": env, "model": r.Version, "resource_id": r.ID,
		"resource_version_id": r.ID.AtVersion(r.Version), "resource_type": r.ID.Type, "agent": r.ID.Agent,
		"resource_id_value": r.ID.Value, "attributes": attributesOf(r), "attribute_hash": r.AttributeHash,
		"resource_set": r.ResourceSet, "status": intent.StatusAvailable, "is_undefined": len(r.Undefined) > 0,
		"last_deploy": nil, "provides": []string{},
	}
	if r.ResourceSet == "" {
		out["resource_set"] = nil
	}
	if state != nil {
		out["status"] = state.Status()
		out["last_deploy"] = maybe(state.LastRunAt)
	}
	return out
}
