package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// eventCalls tell a handler what happened to the resources that its resource requires.
func (s *server) eventCalls(c *calls) {
	const one = "/api/v2/resource/{rvid}"
	v2(c, http.MethodGet, one+"/events",
		"List what was done to the requirements of a resource, which is being deployed, since it last succeeded.",
		access.SeeResources, s.listEvents)
	v2(c, http.MethodGet, one+"/did_dependency_change",
		"Tell whether a requirement of a resource, which is being deployed, changed since it last succeeded.",
		access.SeeResources, s.didDependencyChange)
}

type oneVersionedResource struct {
	inEnvironment
	ID string `arg:"rvid,required"`
}

type eventSearch struct {
	oneVersionedResource
	Without intent.Change `arg:"exclude_change"`
}

// listEvents returns the deployments of each requirement, newest first.
func (s *server) listEvents(ctx context.Context, a eventSearch) (map[string][]resourceAction, error) {
	id, version, err := intent.ParseResourceVersionID(a.ID)
	if err != nil || version == 0 {
		return nil, invalid("%s is not a resource version id", a.ID)
	}
	r, err := s.store.VersionResource(ctx, a.Env, version, id)
	if err != nil {
		return nil, err
	}
	state, err := s.state(ctx, a.Env, id)
	if err != nil {
		return nil, err
	}
	if state == nil || !state.IsDeploying {
		return nil, fault.New("api", fault.Invalid, a.ID+" is not being deployed now").
			Hint("events are for the handler that deploys a resource")
	}
	out := map[string][]resourceAction{}
	for _, need := range r.Requires {
		out[need.String()] = []resourceAction{}
	}
	found, err := s.store.ActionsOfRequirements(ctx, a.Env, r.Requires, state.LastSuccess, a.Without)
	for _, action := range found {
		name := action.Resource.String()
		out[name] = append(out[name], actionOf(action))
	}
	return out, err
}

func (s *server) didDependencyChange(ctx context.Context, a oneVersionedResource) (bool, error) {
	events, err := s.listEvents(ctx, eventSearch{a, intent.NoChange})
	for _, actions := range events {
		if len(actions) > 0 {
			return true, err
		}
	}
	return false, err
}
