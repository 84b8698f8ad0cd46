package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

var (
	parameterList = list{
		sort: "name.asc", columns: map[string]kind{"name": word, "source": word, "updated": moment}, id: uuidID,
		filters: map[string]kind{"name": text, "source": text, "updated": timeRange},
	}
	factList = list{
		sort: "name.asc", columns: map[string]kind{"name": word, "resource_id": word}, id: uuidID,
		filters: map[string]kind{"name": text, "resource_id": text, "expires": truth},
	}
)

// setParameter are the arguments of storing a parameter; Value is text or
// anything that JSON can say.
type setParameter struct {
	inEnvironment
	Name      string         `arg:"name,required"`
	Source    string         `arg:"source,required"`
	Value     any            `arg:"value,required"`
	Metadata  map[string]any `arg:"metadata"`
	Recompile bool           `arg:"recompile"`
}

type setFact struct {
	setParameter
	Resource intent.ResourceID `arg:"resource_id,required"`
	Expires  bool              `arg:"expires"`
}

type setParameterV1 struct {
	inEnvironment
	Name      string         `arg:"id,required"`
	Source    string         `arg:"source,required"`
	Value     any            `arg:"value,required"`
	Resource  string         `arg:"resource_id"`
	Metadata  map[string]any `arg:"metadata"`
	Recompile bool           `arg:"recompile"`
	Expires   *bool          `arg:"expires"`
}

type oneParameter struct {
	inEnvironment
	Name     string `arg:"id,required"`
	Resource string `arg:"resource_id"`
}

func (s *server) parameters(g *gin.Engine) {
	for path, facts := range map[string]bool{"/api/v2/parameters": false, "/api/v2/facts": true} {
		l, show := parameterList, parameterOf
		if facts {
			l, show = factList, factOf
		}
		call(s, g, http.MethodGet, path, func(ctx context.Context, a struct {
			inEnvironment
			paging
		}) (reply, error) {
			q, err := l.query(a.paging)
			if err != nil {
				return reply{}, err
			}
			page, err := s.store.Parameters(ctx, a.Env, facts, q)
			if err != nil {
				return reply{}, err
			}
			return paged(path, l, q, page,
				func(p intent.Parameter) any { return show(a.inEnvironment, p) },
				func(p intent.Parameter) place {
					switch q.Sort {
					case "source":
						return at(p.Source, p.ID.String())
					case "updated":
						return atTime(p.Updated, p.ID.String())
					case "resource_id":
						return at(p.Resource.String(), p.ID.String())
					}
					return at(p.Name, p.ID.String())
				})
		})
	}
	call(s, g, http.MethodPut, "/api/v2/parameters/{name}", func(ctx context.Context, a setParameter) (reply, error) {
		p, err := s.setParameter(ctx, a, intent.ResourceID{}, false)
		if err != nil {
			return reply{}, err
		}
		return v2(parameterOf(a.inEnvironment, p))
	})
	call(s, g, http.MethodPut, "/api/v2/facts/{name}", func(ctx context.Context, a setFact) (reply, error) {
		p, err := s.setParameter(ctx, a.setParameter, a.Resource, a.Expires)
		if err != nil {
			return reply{}, err
		}
		return v2(factOf(a.inEnvironment, p))
	}, setFact{Expires: true})
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}/facts", func(ctx context.Context, a oneResource) (reply, error) {
		facts, err := s.factsOf(ctx, a)
		if err != nil {
			return reply{}, err
		}
		return v2(listed(facts, func(f intent.Parameter) any { return factOf(a.inEnvironment, f) }))
	})
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}/facts/{id}", func(ctx context.Context, a struct {
		oneResource
		Fact uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		facts, err := s.factsOf(ctx, a.oneResource)
		if err != nil {
			return reply{}, err
		}
		for _, f := range facts {
			if f.ID == a.Fact {
				return v2(factOf(a.inEnvironment, f))
			}
		}
		return reply{}, fault.New("api", fault.NotFound, "this resource has no fact with that id")
	})
	s.parametersV1(g)
}

func (s *server) parametersV1(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v1/parameter/{id}", func(ctx context.Context, a oneParameter) (reply, error) {
		id, err := optionalID(a.Resource)
		if err != nil {
			return reply{}, err
		}
		p, err := s.store.Parameter(ctx, a.Env, a.Name, id)
		missing := fault.Is(err, fault.NotFound)
		if err != nil && !missing {
			return reply{}, err
		}
		if missing || p.Expires && time.Since(p.Updated) > s.factExpire {
			return reply{}, s.askFor(ctx, a.Env, id, missing)
		}
		return v1(map[string]any{"parameter": parameterV1(a.inEnvironment, p)})
	})
	call(s, g, http.MethodPut, "/api/v1/parameter/{id}", func(ctx context.Context, a setParameterV1) (reply, error) {
		id, err := optionalID(a.Resource)
		if err != nil {
			return reply{}, err
		}
		expires := !id.IsZero()
		if a.Expires != nil {
			if id.IsZero() && *a.Expires {
				return reply{}, invalid("a parameter of an environment does not expire; only facts do")
			}
			expires = *a.Expires
		}
		p, err := s.setParameter(ctx, setParameter{
			inEnvironment: a.inEnvironment, Name: a.Name, Source: a.Source, Value: a.Value, Metadata: a.Metadata, Recompile: a.Recompile,
		}, id, expires)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"parameter": parameterV1(a.inEnvironment, p)})
	})
	call(s, g, http.MethodDelete, "/api/v1/parameter/{id}", func(ctx context.Context, a oneParameter) (reply, error) {
		id, err := optionalID(a.Resource)
		if err != nil {
			return reply{}, err
		}
		err = s.store.DeleteParameter(ctx, a.Env, a.Name, id)
		if fault.Is(err, fault.NotFound) {
			return reply{}, &bare{code: http.StatusNotFound}
		}
		if err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
	call(s, g, http.MethodPost, "/api/v1/parameter", func(ctx context.Context, a struct {
		inEnvironment
		Query map[string]any `arg:"query"`
	}) (reply, error) {
		out := []any{}
		for _, facts := range []bool{false, true} {
			q := intent.ListQuery{Limit: maxPage, Sort: "name"}
			for {
				page, err := s.store.Parameters(ctx, a.Env, facts, q)
				if err != nil {
					return reply{}, err
				}
				for _, p := range page.Items {
					if metadataMatches(p.Metadata, a.Query) {
						out = append(out, parameterV1(a.inEnvironment, p))
					}
				}
				if page.After == 0 || len(page.Items) == 0 {
					break
				}
				last := page.Items[len(page.Items)-1]
				q.After = &intent.Bound{Value: &last.Name, ID: last.ID.String()}
			}
		}
		return v1(map[string]any{"parameters": out, "expire": int(s.factExpire.Seconds()), "now": stamp(s.now())})
	})
	call(s, g, http.MethodPut, "/api/v1/parameters", func(ctx context.Context, a struct {
		inEnvironment
		Parameters []map[string]any `arg:"parameters,required"`
	}) (reply, error) {
		for _, given := range a.Parameters {
			id, source, resource := textOf(given["id"]), textOf(given["source"]), textOf(given["resource_id"])
			if id == "" || source == "" || given["value"] == nil {
				return reply{}, invalid("each parameter needs an id, a source and a value")
			}
			rid, err := optionalID(resource)
			if err != nil {
				return reply{}, err
			}
			metadata, _ := given["metadata"].(map[string]any)
			expires := !rid.IsZero()
			if e, ok := given["expires"].(bool); ok {
				expires = e
			}
			if _, err := s.setParameter(ctx, setParameter{
				inEnvironment: a.inEnvironment, Name: id, Source: source, Value: given["value"], Metadata: metadata,
			}, rid, expires); err != nil {
				return reply{}, err
			}
		}
		return v1(nil)
	})
}

func textOf(v any) string { s, _ := v.(string); return s }

func optionalID(text string) (intent.ResourceID, error) {
	if text == "" {
		return intent.ResourceID{}, nil
	}
	id, err := intent.ParseResourceID(text)
	if err != nil {
		return id, invalid("%v", err)
	}
	return id, nil
}

func metadataMatches(metadata, query map[string]any) bool {
	for key, want := range query {
		x, err := json.Marshal(metadata[key])
		if err != nil {
			return false
		}
		y, err := json.Marshal(want)
		if err != nil || string(x) != string(y) {
			return false
		}
	}
	return true
}

func (s *server) setParameter(
	ctx context.Context,
	a setParameter,
	id intent.ResourceID,
	expires bool,
) (intent.Parameter, error) {
	value, ok := a.Value.(string)
	if !ok {
		encoded, err := json.Marshal(a.Value)
		if err != nil {
			return intent.Parameter{}, invalid("the value cannot be stored: %v", err)
		}
		value = string(encoded)
	}
	switch a.Source {
	case "fact", "plugin", "user", "report":
	default:
		return intent.Parameter{}, invalid("%q is not a source: want fact, plugin, user or report", a.Source)
	}
	if err := s.control.SetParameter(ctx, a.Env, intent.Parameter{
		ID: uuid.New(), Name: a.Name, Value: value, Source: a.Source, Resource: id,
		Updated: s.now(), Expires: expires, Metadata: a.Metadata,
	}); err != nil {
		return intent.Parameter{}, err
	}
	if a.Recompile {
		if _, _, err := s.control.RequestCompile(ctx, a.Env, control.CompileRequest{
			Trigger: intent.Trigger{Type: "param", Message: "Recompile model because one or more parameters were updated"},
		}); err != nil {
			return intent.Parameter{}, err
		}
	}
	return s.store.Parameter(ctx, a.Env, a.Name, id)
}

// factsOf lists the facts of one resource.
func (s *server) factsOf(ctx context.Context, a oneResource) ([]intent.Parameter, error) {
	q := intent.ListQuery{Limit: maxPage, Sort: "name", Filters: map[string][]string{"resource_id": {a.ID.String()}}}
	page, err := s.store.Parameters(ctx, a.Env, true, q)
	if err != nil {
		return nil, err
	}
	var out []intent.Parameter
	for _, p := range page.Items {
		if p.Resource == a.ID { // the filter matches parts
			out = append(out, p)
		}
	}
	return out, nil
}

func parameterOf(in inEnvironment, p intent.Parameter) map[string]any {
	metadata := p.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		"id": p.ID, "name": p.Name, "value": p.Value, "environment": in.Env,
		"source": p.Source, "updated": maybe(&p.Updated), "metadata": metadata,
	}
}

func factOf(in inEnvironment, p intent.Parameter) map[string]any {
	out := parameterOf(in, p)
	out["resource_id"], out["expires"] = p.Resource, p.Expires
	return out
}

func parameterV1(in inEnvironment, p intent.Parameter) map[string]any {
	out := parameterOf(in, p)
	out["expires"], out["resource_id"] = p.Expires, ""
	if !p.Resource.IsZero() {
		out["resource_id"] = p.Resource
	}
	return out
}
