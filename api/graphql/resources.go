package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/api/graphql/schema"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// Resources answers the root resources.
func (r resolvers) Resources(
	ctx context.Context, filter schema.ResourceFilter, first *int32, after *string, last *int32, before *string,
	orderBy []*schema.StrawberryOrder,
) (*schema.ResourceConnection, error) {
	return read(ctx, func() (*schema.ResourceConnection, error) {
		env := filter.Environment
		if err := r.door.cfg.Allow(ctx, access.SeeResources, env); err != nil {
			return nil, err
		}
		w, err := window(first, after, last, before, orders(orderBy))
		if err != nil {
			return nil, err
		}
		f, err := resourceFilter(filter)
		if err != nil {
			return nil, err
		}
		records := r.door.cfg.Store
		found, err := records.ResourceWindow(ctx, env, f, w, selected(ctx, "edges", "node", "attributes"))
		if err != nil {
			return nil, err
		}
		out := &schema.ResourceConnection{Edges: []*schema.ResourceEdge{}}
		var cursors []string
		out.PageInfo, cursors = pageInfo(w, found)
		for i, item := range found.Items {
			out.Edges = append(out.Edges, &schema.ResourceEdge{Cursor: cursors[i], Node: resource(env, item)})
		}
		out.TotalCount, err = total(ctx, func() (int, error) { return records.CountResources(ctx, env, f) })
		return out, err
	})
}

func resourceFilter(in schema.ResourceFilter) (store.ResourceFilter, error) {
	out := store.ResourceFilter{
		Type: texts(in.ResourceType), Agent: texts(in.Agent), Value: texts(in.ResourceIDValue),
		Purged: in.Purged, Deploying: in.IsDeploying, Orphan: in.IsOrphan,
	}
	if f := in.Blocked; f != nil {
		out.Blocked = choices(f.Eq, f.Neq)
	}
	if f := in.Compliance; f != nil {
		out.Compliance = choices(f.Eq, f.Neq)
	}
	if f := in.LastHandlerRun; f != nil {
		out.LastRun = choices(f.Eq, f.Neq)
	}
	if in.ModelVersion == nil {
		return out, nil
	}
	for name, given := range map[string]bool{
		"isOrphan": in.IsOrphan != nil, "isDeploying": in.IsDeploying != nil, "blocked": in.Blocked != nil,
		"compliance": in.Compliance != nil, "lastHandlerRun": in.LastHandlerRun != nil,
	} {
		if given {
			return out, invalid("%s is about the state now: it does not go with modelVersion", name)
		}
	}
	if out.Version = int(*in.ModelVersion); out.Version == 0 {
		out.Version = -1 // no version has this number
	}
	return out, nil
}

func texts(f *schema.StrFilter) *store.TextFilter {
	if f == nil {
		return nil
	}
	return &store.TextFilter{In: f.Eq, NotIn: f.Neq, Like: f.Contains, NotLike: f.NotContains}
}

// choices writes values of an enumeration as the record has them.
func choices[E ~string](in, notIn []E) *store.ChoiceFilter {
	lower := func(values []E) []string {
		if values == nil {
			return nil
		}
		out := make([]string, len(values))
		for i, v := range values {
			out[i] = strings.ToLower(string(v))
		}
		return out
	}
	return &store.ChoiceFilter{In: lower(in), NotIn: lower(notIn)}
}

func resource(env uuid.UUID, r store.FilteredResource) *schema.Resource {
	id := r.State.ID
	out := &schema.Resource{
		Environment: env, ResourceID: id.String(), Agent: id.Agent, ResourceType: id.Type, ResourceIDValue: id.Value,
		ResourceSet: uuid.NewSHA1(env, []byte(r.ResourceSet)), AttributeHash: &r.AttributeHash,
		IsUndefined: &r.Undefined, RequiresLength: int32(len(r.Requires)), Purged: r.Purged,
		ModelVersion: int32(r.Version), State: state(env, r),
	}
	if r.Attributes != nil {
		out.Attributes = withRequires(r.Attributes, r.Requires)
	}
	return out
}

// withRequires returns attributes with what the resource requires among them, as clients expect.
func withRequires(raw json.RawMessage, requires []intent.ResourceID) any {
	attributes := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers go out exactly as they came in
	if err := decoder.Decode(&attributes); err != nil || attributes == nil {
		attributes = map[string]any{}
	}
	ids := make([]string, len(requires))
	for i, id := range requires {
		ids[i] = id.String()
	}
	attributes["requires"] = ids
	return attributes
}

func state(env uuid.UUID, r store.FilteredResource) *schema.ResourcePersistentState {
	s, id := r.State, r.State.ID
	orphan := s.Orphaned > 0
	before := s
	before.IsDeploying, before.Orphaned = false, 0
	out := &schema.ResourcePersistentState{
		Environment: env, ResourceID: id.String(), ResourceType: id.Type, Agent: id.Agent, ResourceIDValue: id.Value,
		LastNonDeployingStatus: string(before.Status()), IsUndefined: r.Undefined,
		OrphanedAfter:  orNil(int32(s.Orphaned)),
		LastHandlerRun: strings.ToUpper(string(s.LastRun)), Blocked: strings.ToUpper(string(s.Blocked)),
		Created: r.FirstSeen, LastHandlerRunAt: s.LastRunAt, LastSuccess: s.LastSuccess,
		LastProducedEvents: s.LastEvents, LastDeployedAttributeHash: orNil(s.DeployedHash),
		LastDeployedVersion: orNil(int32(s.LastDeployed)), CurrentIntentAttributeHash: orNil(s.IntentHash),
		IsDeploying: &s.IsDeploying, LastHandlerRunCompliant: compliant(s),
		IsOrphan: orphan, IsOrphanExpression: orphan,
	}
	if !orphan {
		compliance := schema.Compliance(strings.ToUpper(string(s.Compliance)))
		out.Compliance, out.ComplianceExpression = &compliance, &compliance
	}
	return out
}

// compliant says whether the last run left the resource as it should be, of what the record knows: while the intent is
// newer than the run, how the run ended.
func compliant(s intent.ResourceState) *bool {
	switch {
	case s.LastRun == intent.RunNew:
		return nil
	case s.Compliance == intent.Compliant, s.Compliance == intent.NonCompliant:
		return ptr(s.Compliance == intent.Compliant)
	}
	return ptr(s.LastRun == intent.RunSuccessful)
}
