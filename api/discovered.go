package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// discoveredCalls are about what discovery resources found outside of the model. Clients of the reference write a
// slash at the end of the path of a batch.
func (s *server) discoveredCalls(c *calls) {
	const path, one = "/api/v2/discovered", "/api/v2/discovered/{discovered_resource_id}"
	whole(c, http.MethodGet, path, "List the discovered resources.",
		access.SeeDiscovered, s.listDiscovered, pagesOf(store.DiscoveredList))
	v2(c, http.MethodGet, one, "Show a discovered resource.", access.SeeDiscovered, s.getDiscovered)
	done[noBody](c, http.MethodPost, one, "Report a discovered resource.", access.WriteDiscovered, s.reportDiscovered)
	done[noBody](c, http.MethodDelete, one, "Forget a discovered resource.", access.WriteDiscovered, s.forgetDiscovered)
	for _, path := range []string{path, path + "/"} {
		done[noBody](c, http.MethodPost, path, "Report several discovered resources.",
			access.WriteDiscovered, s.reportAllDiscovered)
		done[noBody](c, http.MethodDelete, path, "Forget several discovered resources.",
			access.WriteDiscovered, s.forgetAllDiscovered)
	}
}

type discovered struct {
	DiscoveredResourceID string          `json:"discovered_resource_id"`
	ResourceType         string          `json:"resource_type"`
	Agent                string          `json:"agent"`
	ResourceIDValue      string          `json:"resource_id_value"`
	Values               json.RawMessage `json:"values"`
	DiscoveryResourceID  string          `json:"discovery_resource_id"`
	DiscoveryResourceURI string          `json:"discovery_resource_uri"`
	ManagedResourceURI   *string         `json:"managed_resource_uri"`
	DiscoveredAt         timestamp       `json:"discovered_at"`
}

type oneDiscovered struct {
	inEnvironment
	ID intent.ResourceID `arg:"discovered_resource_id,required"`
}

type newDiscovered struct {
	oneDiscovered
	Discovery string         `arg:"discovery_resource_id,required"`
	Values    map[string]any `arg:"values,required"`
}

type newDiscoveredList struct {
	inEnvironment
	Found []map[string]any `arg:"discovered_resources,required"`
}

type discoveredIDs struct {
	inEnvironment
	IDs []string `arg:"discovered_resource_ids,required"`
}

func (s *server) listDiscovered(ctx context.Context, a pageIn) (page[discovered], error) {
	q, err := a.query(store.DiscoveredList)
	if err != nil {
		return page[discovered]{}, err
	}
	found, err := s.store.DiscoveredList(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/discovered", list: store.DiscoveredList}, q, found, discoveredOf,
		func(d intent.Discovered) place { return resourcePlace(q.Sort, d.ID, "") }), err
}

func (s *server) getDiscovered(ctx context.Context, a oneDiscovered) (discovered, error) {
	d, err := s.store.Discovered(ctx, a.Env, a.ID)
	return discoveredOf(d), err
}

func (s *server) reportDiscovered(ctx context.Context, a newDiscovered) error {
	d, err := s.discoveredResource(a.ID.String(), a.Discovery, a.Values)
	if err != nil {
		return err
	}
	return s.store.SetDiscovered(ctx, a.Env, []intent.Discovered{d})
}

// reportAllDiscovered stores all of a list, or nothing of it.
func (s *server) reportAllDiscovered(ctx context.Context, a newDiscoveredList) error {
	var found []intent.Discovered
	for _, f := range a.Found {
		values, _ := f["values"].(map[string]any)
		d, err := s.discoveredResource(textOf(f["discovered_resource_id"]), textOf(f["discovery_resource_id"]), values)
		if err != nil {
			return err
		}
		found = append(found, d)
	}
	return s.store.SetDiscovered(ctx, a.Env, found)
}

// discoveredResource reads a record as a client reports it.
func (s *server) discoveredResource(id, by string, values map[string]any) (d intent.Discovered, err error) {
	d.Found = s.now()
	if d.ID, err = intent.ParseResourceID(id); err != nil {
		return d, invalid("discovered_resource_id: %v", err)
	}
	if d.Discovery, err = intent.ParseResourceID(by); err != nil {
		return d, invalid("discovery_resource_id: %v", err)
	}
	if values == nil {
		return d, invalid("the values of %s are missing, or not an object", id)
	}
	if d.Record, err = json.Marshal(values); err != nil {
		return d, invalid("the values of %s: %v", id, err)
	}
	return d, nil
}

func (s *server) forgetDiscovered(ctx context.Context, a oneDiscovered) error {
	return s.store.DeleteDiscovered(ctx, a.Env, []intent.ResourceID{a.ID})
}

func (s *server) forgetAllDiscovered(ctx context.Context, a discoveredIDs) error {
	ids, err := parseIDs("discovered_resource_ids", a.IDs)
	if err != nil {
		return err
	}
	return s.store.DeleteDiscovered(ctx, a.Env, ids)
}

func discoveredOf(d intent.Discovered) discovered {
	address := func(id intent.ResourceID) string { return "/api/v2/resource/" + url.PathEscape(id.String()) }
	out := discovered{
		DiscoveredResourceID: d.ID.String(), ResourceType: d.ID.Type, Agent: d.ID.Agent, ResourceIDValue: d.ID.Value,
		Values: d.Record, DiscoveryResourceID: d.Discovery.String(), DiscoveryResourceURI: address(d.Discovery),
		DiscoveredAt: stamp(d.Found),
	}
	if d.Managed {
		out.ManagedResourceURI = new(address(d.ID))
	}
	return out
}
