package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) factCalls(c *calls) {
	const path, ofResource = "/api/v2/facts", "/api/v2/resource/{rid}/facts"
	whole(c, http.MethodGet, path, "List the facts.", access.SeeParameters, s.listFacts, pagesOf(store.FactList))
	v2(c, http.MethodPut, path+"/{name}", "Set a fact of a resource.", access.SetParameters, s.setFact)
	v2(c, http.MethodGet, ofResource, "List the facts of a resource.", access.SeeParameters, s.listResourceFacts)
	v2(c, http.MethodGet, ofResource+"/{id}", "Show a fact of a resource.", access.SeeParameters, s.getResourceFact)
	v2(c, http.MethodPost, path+"/refresh", "Ask resources for their facts: those that are named, or all that have "+
		"facts which expire. The answer names them. Inmanta has no such call.", access.RefreshFacts, s.refreshFacts)
}

type newFact struct {
	newParameter
	Resource intent.ResourceID `arg:"resource_id,required"`
	Expires  bool              `arg:"expires"`
}

func (a *newFact) setDefaults() { a.Expires = true }

type oneFact struct {
	oneResource
	Fact uuid.UUID `arg:"id,required"`
}

func (s *server) listFacts(ctx context.Context, a pageIn) (page[fact], error) {
	q, err := a.query(store.FactList)
	if err != nil {
		return page[fact]{}, err
	}
	found, err := s.store.Parameters(ctx, a.Env, true, q)
	return pageOf(address{path: "/api/v2/facts", list: store.FactList}, q, found,
		func(p intent.Parameter) fact { return factOf(a.Env, p) },
		func(p intent.Parameter) place { return parameterPlace(q.Sort, p) }), err
}

func (s *server) setFact(ctx context.Context, a newFact) (fact, error) {
	p, err := s.storeParameter(ctx, a.newParameter, a.Resource, a.Expires)
	return factOf(a.Env, p), err
}

func (s *server) listResourceFacts(ctx context.Context, a oneResource) ([]fact, error) {
	q := intent.ListQuery{
		Limit: store.MaxPage, Sort: "name", Filters: map[string][]string{"resource_id": {a.ID.String()}},
	}
	found, err := s.store.Parameters(ctx, a.Env, true, q)
	out := []fact{}
	for _, p := range found.Items {
		if p.Resource == a.ID { // the filter accepts ids that contain this one
			out = append(out, factOf(a.Env, p))
		}
	}
	return out, err
}

func (s *server) getResourceFact(ctx context.Context, a oneFact) (fact, error) {
	facts, err := s.listResourceFacts(ctx, a.oneResource)
	if err != nil {
		return fact{}, err
	}
	for _, f := range facts {
		if f.ID == a.Fact {
			return f, nil
		}
	}
	return fact{}, fault.New("api", fault.NotFound, "this resource has no fact with that id")
}

func (s *server) refreshFacts(ctx context.Context, a someResources) ([]string, error) {
	named, err := parseIDs("resource_ids", a.Resources)
	if err != nil || a.Resources != nil && len(named) == 0 {
		return []string{}, err
	}
	asked, err := s.control.RefreshFacts(ctx, a.Env, named)
	return ids(asked), err
}

// askFor asks a resource for a fact that is missing or too old, and returns the error that tells the client to come
// back for it. A parameter that is missing is not a fact of any resource.
func (s *server) askFor(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, missing bool) error {
	gone := &bare{code: http.StatusGone}
	if missing {
		gone.code = http.StatusNotFound
	}
	if id.IsZero() {
		return gone
	}
	if _, err := s.control.RefreshFacts(ctx, env, []intent.ResourceID{id}); fault.Is(err, fault.NotFound) {
		return gone
	} else if err != nil {
		return err
	}
	return &bare{
		code: http.StatusServiceUnavailable, message: "The resource is asked for its facts: come back for it.",
	}
}
