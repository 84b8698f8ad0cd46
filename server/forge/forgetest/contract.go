package forgetest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// The documents that the forges publish of their APIs, cut down to what is used;
// openapi/README.md tells where they come from. GitLab's has no examples: of it
// there is a recorded answer.
//
//go:embed openapi/*.json
var published embed.FS

// contract holds a fake to what its forge publishes: every request that it gets,
// and every answer that it gives, by method, path, query, status and body. Fields
// that the document does not name are refused on both sides.
type contract struct {
	t      testing.TB
	kind   string
	doc    *openapi3.T
	router routers.Router
}

// newContract reads the document of a kind of forge.
func newContract(t testing.TB, kind string) *contract {
	raw, err := published.ReadFile("openapi/" + kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal("the published document: ", err)
	}
	if kind == "gitlab" {
		if err := labDoc(doc); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range doc.Components.Schemas {
		if !strings.HasPrefix(name, "repository-rule") { // each is a part of a rule
			strict(s)
		}
	}
	for _, path := range doc.Paths.Map() {
		for _, operation := range path.Operations() {
			if b := operation.RequestBody; b != nil {
				for _, media := range b.Value.Content {
					strict(media.Schema)
					if kind == "gitea" { // null is nothing there, and its own client sends it
						for _, p := range media.Schema.Value.Properties {
							p.Value.Nullable = true
						}
					}
				}
			}
			for _, r := range operation.Responses.Map() {
				for _, media := range r.Value.Content {
					strict(media.Schema)
				}
			}
		}
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &contract{t: t, kind: kind, doc: doc, router: router}
}

// strict lets objects have no other fields than those that are named. What is
// put together of several schemas is left as it is: each names a part.
func strict(ref *openapi3.SchemaRef) {
	if ref == nil || ref.Value == nil {
		return
	}
	s := ref.Value
	if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 {
		return
	}
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		s.AdditionalProperties.Has = new(bool)
		for _, inner := range s.Properties {
			strict(inner)
		}
	}
	strict(s.Items)
}

// options says shortly what is wrong.
func options() *openapi3filter.Options {
	o := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults: true, IncludeResponseStatus: true, MultiError: true,
	}
	o.WithCustomSchemaErrorFunc(func(err *openapi3.SchemaError) string {
		return strings.Join(err.JSONPointer(), ".") + ": " + err.Reason
	})
	return o
}

// check holds one exchange to the document.
func (c *contract) check(r *http.Request, body []byte, code int, answer []byte) {
	asked := r.Clone(context.Background())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	for _, long := range []string{"/git/refs/", "/pulls/main/"} { // what follows has slashes in it
		if before, name, ok := strings.Cut(asked.URL.Path, long); ok {
			asked.URL.Path, asked.URL.RawPath = before+long+strings.ReplaceAll(name, "/", "-"), ""
		}
	}
	fail := func(format string, args ...any) {
		c.t.Errorf("%s %s is not as the forge publishes it: %s", r.Method, r.URL, fmt.Sprintf(format, args...))
	}
	route, params, err := c.router.FindRoute(asked)
	if err != nil {
		fail("%v", err)
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request:    asked,
		PathParams: params,
		Route:      route,
		Options:    options(),
	}
	if code < 400 { // it may have refused what is wrong
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			fail("the request: %v", err)
		}
		known := map[string]bool{
			"page":  c.kind == "gitea",
			"limit": c.kind == "gitea",
		} // which its own client adds to every list
		for _, p := range append(route.Operation.Parameters, route.PathItem.Parameters...) {
			known[p.Value.Name] = p.Value.In == "query" || known[p.Value.Name]
		}
		for name := range r.URL.Query() {
			if !known[name] {
				fail("it has no parameter %s", name)
			}
		}
	}
	if route.Operation.Responses.Status(code) == nil {
		if code < 400 {
			fail("it never answers %d", code)
		}
		return // refusals are documented in part
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(answer)),
		Options: options(),
	})
	if err != nil {
		fail("the answer %d: %v", code, err)
	}
}

// example gives what the forge publishes as an answer of an operation, with some
// fields changed; of a list, its first item.
func (c *contract) example(method, path string, code string, change map[string]any) map[string]any {
	item := c.doc.Paths.Find("/repos/{owner}/{repo}/" + path)
	if item == nil { // its parameters have other names
		return change
	}
	operation := item.GetOperation(method)
	for _, e := range operation.Responses.Value(code).Value.Content.Get("application/json").Examples {
		text, err := json.Marshal(e.Value.Value)
		if err != nil {
			c.t.Error(err)
		}
		return filled(c.t, text, change)
	}
	return change // Gitea publishes none
}

// filled changes fields of a recorded answer.
func filled(t testing.TB, recorded []byte, change map[string]any) map[string]any {
	var v any
	if err := json.Unmarshal(recorded, &v); err != nil {
		t.Error(err)
	}
	if list, ok := v.([]any); ok {
		v = list[0]
	}
	out, _ := v.(map[string]any)
	overlay(out, change)
	return out
}

func overlay(onto, change map[string]any) {
	for name, value := range change {
		inner, isObject := value.(map[string]any)
		before, wasObject := onto[name].(map[string]any)
		if isObject && wasObject {
			overlay(before, inner)
			continue
		}
		onto[name] = value
	}
}
