package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

var discoveredList = list{
	sort: "discovered_resource_id.asc", id: textID,
	columns: map[string]kind{
		"discovered_resource_id": word,
		"resource_type":          word,
		"agent":                  word,
		"resource_id_value":      word,
	},
	filters: map[string]kind{"resource_type": text, "agent": text, "resource_id_value": text, "managed": truth},
}

type oneDiscovered struct {
	inEnvironment
	ID intent.ResourceID `arg:"discovered_resource_id,required"`
}

// reported is a record as a client sends it.
type reported struct {
	id, by string
	values map[string]any
}

// discovered are the calls about what discovery resources found outside.
func (s *server) discovered(g *gin.Engine) {
	const path, one = "/api/v2/discovered", "/api/v2/discovered/{discovered_resource_id}"
	call(s, g, http.MethodGet, path, func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := discoveredList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.DiscoveredList(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged(path, discoveredList, q, page, discoveredOf, func(d intent.Discovered) place {
			id := d.ID.String()
			return at(
				map[string]string{"resource_type": d.ID.Type, "agent": d.ID.Agent, "resource_id_value": d.ID.Value, "discovered_resource_id": id}[q.Sort],
				id,
			)
		})
	})
	call(s, g, http.MethodGet, one, func(ctx context.Context, a oneDiscovered) (reply, error) {
		d, err := s.store.Discovered(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(discoveredOf(d))
	})
	call(s, g, http.MethodPost, one, func(ctx context.Context, a struct {
		oneDiscovered
		Discovery string         `arg:"discovery_resource_id,required"`
		Values    map[string]any `arg:"values,required"`
	}) (reply, error) {
		return s.reportDiscovered(ctx, a.inEnvironment, []reported{{a.ID.String(), a.Discovery, a.Values}})
	})
	call(s, g, http.MethodDelete, one, func(ctx context.Context, a oneDiscovered) (reply, error) {
		return s.forgetDiscovered(ctx, a.inEnvironment, []string{a.ID.String()})
	})
	for _, path := range []string{path, path + "/"} { // clients of the reference write a slash
		s.discoveredBatch(g, path)
	}
}

func (s *server) discoveredBatch(g *gin.Engine, path string) {
	call(s, g, http.MethodPost, path, func(ctx context.Context, a struct {
		inEnvironment
		Found []map[string]any `arg:"discovered_resources,required"`
	}) (reply, error) {
		var list []reported
		for _, f := range a.Found {
			values, _ := f["values"].(map[string]any)
			list = append(
				list,
				reported{textOf(f["discovered_resource_id"]), textOf(f["discovery_resource_id"]), values},
			)
		}
		return s.reportDiscovered(ctx, a.inEnvironment, list)
	})
	call(s, g, http.MethodDelete, path, func(ctx context.Context, a struct {
		inEnvironment
		IDs []string `arg:"discovered_resource_ids,required"`
	}) (reply, error) {
		return s.forgetDiscovered(ctx, a.inEnvironment, a.IDs)
	})
}

// reportDiscovered stores all of a list, or nothing of it.
func (s *server) reportDiscovered(ctx context.Context, in inEnvironment, list []reported) (reply, error) {
	now := s.now()
	var found []intent.Discovered
	for _, r := range list {
		id, err := intent.ParseResourceID(r.id)
		if err != nil {
			return reply{}, invalid("discovered_resource_id: %v", err)
		}
		by, err := intent.ParseResourceID(r.by)
		if err != nil {
			return reply{}, invalid("discovery_resource_id: %v", err)
		}
		if r.values == nil {
			return reply{}, invalid("the values of %s are missing, or no object", id)
		}
		record, err := json.Marshal(r.values)
		if err != nil {
			return reply{}, invalid("the values of %s: %v", id, err)
		}
		found = append(found, intent.Discovered{ID: id, Discovery: by, Record: record, Found: now})
	}
	if err := s.store.SetDiscovered(ctx, in.Env, found); err != nil {
		return reply{}, err
	}
	return nothing()
}

func (s *server) forgetDiscovered(ctx context.Context, in inEnvironment, names []string) (reply, error) {
	var ids []intent.ResourceID
	for _, name := range names {
		id, err := intent.ParseResourceID(name)
		if err != nil {
			return reply{}, invalid("%v", err)
		}
		ids = append(ids, id)
	}
	if err := s.store.DeleteDiscovered(ctx, in.Env, ids); err != nil {
		return reply{}, err
	}
	return nothing()
}

func discoveredOf(d intent.Discovered) any {
	address := func(id intent.ResourceID) string { return "/api/v2/resource/" + url.PathEscape(id.String()) }
	out := map[string]any{
		"discovered_resource_id": d.ID, "resource_type": d.ID.Type, "agent": d.ID.Agent, "resource_id_value": d.ID.Value,
		"values": d.Record, "discovery_resource_id": d.Discovery, "discovery_resource_uri": address(d.Discovery),
		"managed_resource_uri": nil, "discovered_at": stamp(d.Found),
	}
	if d.Managed {
		out["managed_resource_uri"] = address(d.ID)
	}
	return out
}
