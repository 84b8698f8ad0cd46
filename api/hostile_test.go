package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// examples fills in a value for each argument that a struct declares.
func examples(t reflect.Type, env string, all map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("arg"), ",")
		switch {
		case f.Type == reflect.TypeFor[jsonBody](), f.Type == reflect.TypeFor[fileBody]():
		case inlined(f):
			examples(f.Type, env, all)
		case name != "":
			all[name] = example(name, f.Type, env)
		}
	}
}

// example returns a value that an argument of a type takes.
func example(name string, t reflect.Type, env string) any {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return env
	case reflect.TypeFor[intent.ResourceID]():
		return "std::File[a,path=/x]"
	case reflect.TypeFor[versionedID]():
		return "std::File[a,path=/x],v=1"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return example(name, t.Elem(), env)
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int64:
		return 1
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Map {
			return []any{map[string]any{"id": "x", "source": "user", "value": "x"}}
		}
		return []any{"x"}
	case reflect.Map:
		return map[string]any{"x": "y"}
	}
	if name == "resource_id" {
		return "std::File[a,path=/x]"
	}
	return "x"
}

// No text in any argument of any call makes the server fail: neither one that is too long for the database, nor one
// with characters that it does not store, nor a number that is none.
func TestNoArgumentMakesTheServerFail(t *testing.T) {
	tool.Heavy(t, "asks every question with every argument")
	c, r := rich(t)
	env := r.Staging.ID.String()
	long := strings.Repeat("x", 100<<10)
	var deep any = "x"
	for range 150 {
		deep = []any{deep}
	}
	hostile := map[string]any{
		"100 kB": long, "9 kB of noise": noise(9000), "NUL": "a\x00b", "no UTF-8": "a\xffb",
		"a huge number": json.RawMessage(`1e999`), "an object": map[string]any{"a\x00": "\x00"},
		"an object with a long name": map[string]any{long: "x"},
		"a deep list":                deep,
		"lists":                      []any{map[string]any{"id": noise(9000), "source": "user", "value": "x"}},
		"a list of texts":            []any{"a\x00b", noise(9000)},
	}
	declared := (&server{}).calls(newRouter())
	for _, call := range declared {
		if call.method == http.MethodDelete {
			continue // would delete what the other calls need
		}
		all := map[string]any{}
		examples(call.args, env, all)
		for name := range all {
			for kind, value := range hostile {
				for _, own := range []string{"name", "project_id", "environment_id"} {
					if _, given := all[own]; given && call.method == http.MethodPut {
						all[own] = uuid.NewString() // one that is not taken
					}
				}
				status, text := c.try(call, all, name, value, env)
				// Inmanta answers the first two with 500; the third is about the repository that files of clusters
				// are in.
				known := strings.Contains(text, "the resource id needs a version") ||
					strings.Contains(text, "already") ||
					strings.Contains(text, "the host of https://git.example.com")
				if status >= 500 && !known {
					t.Errorf("%s %s with %s as %s: %d %.200s", call.method, call.path, kind, name, status, text)
				}
			}
		}
	}
}

// A name of 5 MB is refused, and the answer does not repeat it.
func TestNamesOfFiveMegabytes(t *testing.T) {
	c, r := rich(t)
	long := strings.Repeat("x", 5<<20)
	project, tooLong := r.Production.ProjectID.String(), noise(9000)
	for path, body := range map[string]string{
		"PUT /api/v2/project":     `{"name": "` + long + `"}`,
		"PUT /api/v2/environment": `{"project_id": "` + project + `", "name": "` + long + `"}`,

		"PUT /api/v2/parameters/" + url.PathEscape(tooLong): `{"source": "user", "value": "x"}`,

		"PUT /api/v1/parameters": `{"parameters": [{"id": "` + tooLong + `", "source": "user", "value": "x"}]}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		w := c.send(method, path, body)
		if w.Code != http.StatusBadRequest || w.Body.Len() > 64<<10 {
			t.Errorf("%s %.60s: %d, %d bytes: %.200s", method, path, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// try makes a call with one argument replaced.
func (c *client) try(call *declaration, all map[string]any, name string, value any, env string) (int, string) {
	c.t.Helper()
	path, query, body := call.path, url.Values{}, map[string]any{}
	for other, v := range all {
		if other == name {
			v = value
		}
		text, isText := v.(string)
		if !isText {
			encoded, err := json.Marshal(v)
			if err != nil {
				c.t.Fatal(err)
			}
			text = string(encoded)
		}
		switch {
		case strings.Contains(path, "{"+other+"}"):
			path = strings.Replace(path, "{"+other+"}", url.PathEscape(text), 1)
		case call.method == http.MethodGet || call.method == http.MethodHead:
			query.Set(other, text)
		default:
			body[other] = v
		}
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), call.method, path+"?"+query.Encode(),
		strings.NewReader(string(encoded)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(tidHeader, env)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// noise returns a text that does not become much shorter when it is compressed, which PostgreSQL does before it indexes
// a value.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(uuid.NewString())
	}
	return b.String()[:n]
}
