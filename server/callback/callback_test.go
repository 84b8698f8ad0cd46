package callback

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var env = uuid.MustParse("11111111-2222-3333-4444-555555555555")

// echo is an API that answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Header.Get("X-Inmanta-tid") != env.String() {
		http.Error(w, "the call has no environment", http.StatusTeapot)
		return
	}
	_ = json.NewEncoder(w).Encode(r.Method + " " + r.URL.RequestURI() + " " + string(body))
}

func desk(t *testing.T) *Desk {
	t.Helper()
	d, err := New(env, func() http.Handler { return http.HandlerFunc(echo) })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func values(t *testing.T, list ...any) []json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	for _, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

func named(t *testing.T, pairs ...any) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = values(t, pairs[i+1])[0]
	}
	return out
}

// Handlers name a call and give arguments by position or by name. The desk puts them into
// the path, and the others into the query or the body.
func TestCallsBecomeRequests(t *testing.T) {
	rid := "fs::File[web/1,path=/a b]"
	for want, got := range map[string]func() (int, json.RawMessage, bool){
		"GET /api/v1/parameter/a%2Fb?resource_id=fs%3A%3AFile%5Bweb%2F1%2Cpath%3D%2Fa%20b%5D ": func() (int,
			json.RawMessage, bool) {
			return desk(t).Call(t.Context(), "get_param", values(t, env, "a/b", rid), nil)
		},
		`PUT /api/v1/parameter/state {"metadata":{},"recompile":true,"resource_id":"fs::File[web/1,path=/a b]",` +
			`"source":"fact","value":"x"}`: func() (int, json.RawMessage, bool) {
			return desk(t).Call(t.Context(), "set_param", nil, named(t, "tid", env, "id", "state", "source", "fact",
				"value", "x", "resource_id", rid, "metadata", map[string]any{}, "recompile", true, "expires", nil))
		},
		"GET /api/v2/resource?filter.agent=a&filter.agent=b&filter.status=failed&limit=5 ": func() (int,
			json.RawMessage, bool) {
			return desk(t).Call(t.Context(), "resource_list", nil, named(t, "limit", 5, "filter",
				map[string]any{"agent": []string{"a", "b"}, "status": "failed"}))
		},
		`DELETE /api/v2/discovered {"discovered_resource_ids":["x"]}`: func() (int, json.RawMessage, bool) {
			return desk(t).Call(t.Context(), "discovered_resource_delete_batch", nil, named(t, "tid", env,
				"discovered_resource_ids", []string{"x"}))
		},
		"GET /api/v1/environment/" + env.String() + "? ": func() (int, json.RawMessage, bool) {
			return desk(t).Call(t.Context(), "get_environment", values(t, env), nil)
		},
	} {
		code, body, known := got()
		var text string
		if err := json.Unmarshal(body, &text); err != nil || !known || code != 200 || text != want {
			t.Errorf("%d %t %v\n got %s\nwant %s", code, known, err, body, want)
		}
	}
}

// A handler can reach only its own environment, and only calls that the table lists.
func TestForbiddenCallsAreRejected(t *testing.T) {
	other := uuid.New()
	for why, args := range map[string]struct {
		name  string
		named map[string]json.RawMessage
	}{
		"own environment " + env.String(): {"get_param", named(t, "tid", other, "id", "x")},
		"own environment":                 {"get_environment", named(t, "id", other)},
		"not the id":                      {"get_param", named(t, "tid", 5, "id", "x")},
		"argument id is missing":          {"get_param", nil},
		`has no argument \"tdi\"`:         {"get_param", named(t, "tdi", env, "id", "x")},
		`cannot be \"..\"`:                {"get_param", named(t, "id", "..")},
	} {
		code, body, known := desk(t).Call(t.Context(), args.name, nil, args.named)
		if code != http.StatusBadRequest || !known || !strings.Contains(string(body), why) {
			t.Errorf("%s %v: %d %s, want %q", args.name, args.named, code, body, why)
		}
	}
	if code, body, _ := desk(t).Call(t.Context(), "get_param", values(t, env, "x"), named(t, "id", "y")); code != 400 ||
		!strings.Contains(string(body), "twice") {
		t.Errorf("one argument twice: %d %s", code, body)
	}
	for _, name := range []string{"release_version", "deploy", "set_setting", "delete_environment", "create_token",
		"no_such_call"} {
		if _, _, known := desk(t).Call(t.Context(), name, nil, nil); known {
			t.Errorf("handlers can call %s", name)
		}
	}
}

// An answer that does not fit into a frame is replaced by an error that says what to do.
func TestLargeAnswer(t *testing.T) {
	d, err := New(env, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				_, _ = fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, body, _ := d.Call(t.Context(), "resource_list", nil, nil); code != http.StatusRequestEntityTooLarge ||
		!strings.Contains(string(body), "limit") {
		t.Errorf("%d %s", code, body)
	}
}

// Any arguments get an answer and reach only the path of the call.
func FuzzCall(f *testing.F) {
	f.Add("get_facts", `["11111111-2222-3333-4444-555555555555", "a/../b"]`, `{}`)
	f.Add("resource_list", `[]`, `{"filter": {"a": [1, null, {"b": 2}]}, "limit": "x y"}`)
	f.Add("set_param", `[null]`, `{"id": "?a=b#c", "value": {}}`)
	f.Fuzz(func(t *testing.T, name, positional, named string) {
		var list []json.RawMessage
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(positional), &list) != nil || json.Unmarshal([]byte(named), &object) != nil {
			return // not arguments at all
		}
		reached := ""
		d, err := New(env, func() http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached = r.URL.EscapedPath() })
		})
		if err != nil {
			t.Fatal(err)
		}
		if code, _, known := d.Call(t.Context(), name, list, object); known && code < 200 {
			t.Errorf("code %d", code)
		}
		before, _, _ := strings.Cut(calls[name].path, "{")
		if reached != "" &&
			(!strings.HasPrefix(reached, before) || strings.Count(reached, "/") != strings.Count(calls[name].path,
				"/")) {
			t.Errorf("%s reached %s", name, reached)
		}
	})
}
