package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

func (s *server) parameterCalls(c *calls) {
	const path, one = "/api/v2/parameters", "/api/v1/parameter/{id}"
	whole(c, http.MethodGet, path, "List the parameters.",
		access.SeeParameters, s.listParameters, pagesOf(store.ParameterList))
	v2(c, http.MethodPut, path+"/{name}", "Set a parameter.", access.SetParameters, s.setParameter)
	whole(c, http.MethodGet, one, "Show a parameter or a fact.",
		access.SeeParameters, s.getParameterV1, acts)
	whole(c, http.MethodPut, one, "Set a parameter or a fact.", access.SetParameters, s.setParameterV1)
	done[object](c, http.MethodDelete, one, "Delete a parameter or a fact.", access.SetParameters, s.deleteParameter)
	whole(c, http.MethodPost, "/api/v1/parameter", "List the parameters and facts whose metadata matches a query.",
		access.SeeParameters, s.findParametersV1)
	done[object](c, http.MethodPut, "/api/v1/parameters", "Set several parameters and facts.",
		access.SetParameters, s.setParametersV1)
}

// parameter is a value learnt or set for later compiles.
type parameter struct {
	ID          uuid.UUID      `json:"id"`
	Name        string         `json:"name"`
	Value       string         `json:"value"`
	Environment uuid.UUID      `json:"environment"`
	Source      string         `json:"source"`
	Updated     *timestamp     `json:"updated"`
	Metadata    map[string]any `json:"metadata"`
}

// fact is a parameter of a resource. Version 1 shows parameters in the same form, without a resource.
type fact struct {
	parameter
	ResourceID string `json:"resource_id"`
	Expires    bool   `json:"expires"`
}

type parameterEnvelope struct {
	Parameter fact `json:"parameter"`
}

type parametersEnvelope struct {
	Parameters []fact    `json:"parameters"`
	Expire     int       `json:"expire"`
	Now        timestamp `json:"now"`
}

// newParameter are the arguments of setting a parameter; Value is a text or any other JSON.
type newParameter struct {
	inEnvironment
	Name      string         `arg:"name,required"`
	Source    string         `arg:"source,required"`
	Value     any            `arg:"value,required"`
	Metadata  map[string]any `arg:"metadata"`
	Recompile bool           `arg:"recompile"`
}

type newParameterV1 struct {
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

type parameterQuery struct {
	inEnvironment
	Query map[string]any `arg:"query"`
}

type newParameters struct {
	inEnvironment
	Parameters []map[string]any `arg:"parameters,required"`
}

func (s *server) listParameters(ctx context.Context, a pageIn) (page[parameter], error) {
	q, err := a.query(store.ParameterList)
	if err != nil {
		return page[parameter]{}, err
	}
	found, err := s.store.Parameters(ctx, a.Env, false, q)
	return pageOf(address{path: "/api/v2/parameters", list: store.ParameterList}, q, found,
		func(p intent.Parameter) parameter { return parameterOf(a.Env, p) },
		func(p intent.Parameter) place { return parameterPlace(q.Sort, p) }), err
}

func parameterPlace(field string, p intent.Parameter) place {
	switch field {
	case "source":
		return at(p.Source, p.ID.String())
	case "updated":
		return atTime(p.Updated, p.ID.String())
	case "resource_id":
		return at(p.Resource.String(), p.ID.String())
	}
	return at(p.Name, p.ID.String())
}

func (s *server) setParameter(ctx context.Context, a newParameter) (parameter, error) {
	p, err := s.storeParameter(ctx, a, intent.ResourceID{}, false)
	return parameterOf(a.Env, p), err
}

func (s *server) getParameterV1(ctx context.Context, a oneParameter) (parameterEnvelope, error) {
	id, err := optionalID(a.Resource)
	if err != nil {
		return parameterEnvelope{}, err
	}
	p, err := s.store.Parameter(ctx, a.Env, a.Name, id)
	missing := fault.Is(err, fault.NotFound)
	if missing || err == nil && p.Expires && s.now().Sub(p.Updated) > s.factExpire {
		return parameterEnvelope{}, s.askFor(ctx, a.Env, id, missing)
	}
	return parameterEnvelope{factOf(a.Env, p)}, err
}

func (s *server) setParameterV1(ctx context.Context, a newParameterV1) (parameterEnvelope, error) {
	id, err := optionalID(a.Resource)
	if err != nil {
		return parameterEnvelope{}, err
	}
	expires := !id.IsZero()
	if a.Expires != nil {
		if id.IsZero() && *a.Expires {
			return parameterEnvelope{}, invalid("a parameter of an environment does not expire; only facts do")
		}
		expires = *a.Expires
	}
	p, err := s.storeParameter(ctx, newParameter{
		inEnvironment: a.inEnvironment, Name: a.Name, Source: a.Source, Value: a.Value, Metadata: a.Metadata,
		Recompile: a.Recompile,
	}, id, expires)
	return parameterEnvelope{factOf(a.Env, p)}, err
}

func (s *server) deleteParameter(ctx context.Context, a oneParameter) error {
	id, err := optionalID(a.Resource)
	if err != nil {
		return err
	}
	return as404(s.control.DeleteParameter(ctx, a.Env, a.Name, id), "")
}

func (s *server) findParametersV1(ctx context.Context, a parameterQuery) (parametersEnvelope, error) {
	out := parametersEnvelope{
		Parameters: []fact{}, Expire: int(s.factExpire / time.Second), Now: stamp(s.now()),
	}
	for _, facts := range []bool{false, true} {
		q := intent.ListQuery{Limit: store.MaxPage, Sort: "name"}
		for {
			found, err := s.store.Parameters(ctx, a.Env, facts, q)
			if err != nil {
				return out, err
			}
			for _, p := range found.Items {
				if metadataMatches(p.Metadata, a.Query) {
					out.Parameters = append(out.Parameters, factOf(a.Env, p))
				}
			}
			if found.After == 0 || len(found.Items) == 0 {
				break
			}
			last := found.Items[len(found.Items)-1]
			q.After = &intent.Bound{Value: &last.Name, ID: last.ID.String()}
		}
	}
	return out, nil
}

func (s *server) setParametersV1(ctx context.Context, a newParameters) error {
	for _, given := range a.Parameters {
		name, source, resource := textOf(given["id"]), textOf(given["source"]), textOf(given["resource_id"])
		if name == "" || source == "" || given["value"] == nil {
			return invalid("each parameter needs an id, a source and a value")
		}
		id, err := optionalID(resource)
		if err != nil {
			return err
		}
		metadata, _ := given["metadata"].(map[string]any)
		expires := !id.IsZero()
		if e, ok := given["expires"].(bool); ok {
			expires = e
		}
		if _, err := s.storeParameter(ctx, newParameter{
			inEnvironment: a.inEnvironment, Name: name, Source: source, Value: given["value"], Metadata: metadata,
		}, id, expires); err != nil {
			return err
		}
	}
	return nil
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

// storeParameter stores a parameter, or a fact when id is not zero, and asks for a compile when the client wants one.
func (s *server) storeParameter(
	ctx context.Context, a newParameter, id intent.ResourceID, expires bool,
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
		const message = "Recompile model because one or more parameters were updated"
		if _, _, err := s.control.RequestCompile(ctx, a.Env, control.CompileRequest{
			Trigger: intent.Trigger{Type: "param", Message: message},
		}); err != nil {
			return intent.Parameter{}, err
		}
	}
	return s.store.Parameter(ctx, a.Env, a.Name, id)
}

func parameterOf(env intent.EnvironmentID, p intent.Parameter) parameter {
	metadata := p.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return parameter{
		ID: p.ID, Name: p.Name, Value: p.Value, Environment: env, Source: p.Source, Updated: unlessZero(p.Updated),
		Metadata: metadata,
	}
}

func factOf(env intent.EnvironmentID, p intent.Parameter) fact {
	out := fact{parameter: parameterOf(env, p), Expires: p.Expires}
	if !p.Resource.IsZero() {
		out.ResourceID = p.Resource.String()
	}
	return out
}
