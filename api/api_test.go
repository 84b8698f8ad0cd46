package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/servertest"
)

// client speaks to an API under test.
type client struct {
	t       *testing.T
	handler http.Handler
	tid     string
}

func newClient(t *testing.T, s *servertest.Server, change ...func(*Config)) *client {
	t.Helper()
	cfg := Config{Control: s.Control, Store: s.Store, Version: servertest.Version, Logger: s.Log, Now: s.Now}
	for _, f := range change {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, handler: h}
}

func rich(t *testing.T) (*client, *servertest.Rich) {
	t.Helper()
	r := servertest.NewRich(t)
	c := newClient(t, r.Server)
	c.tid = r.Production.ID.String()
	return c, r
}

// send makes a request, and holds the answer to what the API publishes of itself.
func (c *client) send(method, path, body string) *httptest.ResponseRecorder {
	c.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if c.tid != "" {
		req.Header.Set(tidHeader, c.tid)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	c.validate(req, w)
	return w
}

// call makes a request, checks the status and gives the answer.
func (c *client) call(method, path, body string, code int) map[string]any {
	c.t.Helper()
	w := c.send(method, path, body)
	if w.Code != code {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, code, w.Body)
	}
	if w.Body.Len() == 0 {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
	}
	return out
}

// dig follows keys and indexes into an answer.
func dig(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%v: not an object at %v: %v", path, step, v)
			}
			if v, ok = object[key]; !ok {
				t.Fatalf("%v: no %v in %v", path, step, object)
			}
		case int:
			list, ok := v.([]any)
			if !ok || key >= len(list) {
				t.Fatalf("%v: no item %v in %v", path, step, v)
			}
			v = list[key]
		}
	}
	return v
}

// A newcomer makes a project and an environment, asks for a compile, and
// finds both under the shapes of version 1 and 2.
func TestFromNothingToACompile(t *testing.T) {
	s := servertest.New(t, servertest.Present)
	c := newClient(t, s)
	project := dig(t, c.call("PUT", "/api/v2/project", `{"name":"infra"}`, 200), "data", "id").(string)
	if got := c.call("PUT", "/api/v1/project", `{"name":"infra"}`, 500)["message"].(string); !strings.Contains(
		got,
		"project with this name already",
	) {
		t.Errorf("a taken name: %s", got)
	}
	body := `{"project_id":"` + project + `","name":"production","repository":"https://git.example.com/model.git","branch":"main"}`
	env := dig(t, c.call("PUT", "/api/v1/environment", body, 200), "environment")
	if dig(t, env, "project") != project || dig(t, env, "repo_branch") != "main" {
		t.Errorf("environment: %v", env)
	}
	id := dig(t, env, "id").(string)
	if got := dig(t, c.call("GET", "/api/v1/project", "", 200), "projects", 0, "environments", 0); got != id {
		t.Errorf("a project lists its environments by id: %v", got)
	}
	if got := dig(t, c.call("GET", "/api/v2/project", "", 200), "data", 0, "environments", 0, "name"); got != "production" {
		t.Errorf("a project of version 2 lists whole environments: %v", got)
	}
	if w := c.send("HEAD", "/api/v1/notify/"+id, ""); w.Code != 204 {
		t.Errorf("idle: %d", w.Code)
	}
	for _, body := range []string{"", "null", "{}", `{"update":false,"metadata":{"type":"cli","message":"by hand"}}`} {
		s.SetClock(s.Now().Add(time.Second))
		if got := c.call("POST", "/api/v1/notify/"+id, body, 200); len(got) != 0 {
			t.Errorf("notify %q: %v", body, got)
		}
	}
	if w := c.send("HEAD", "/api/v1/notify/"+id, ""); w.Code != 200 {
		t.Errorf("compiling: %d", w.Code)
	}
	c.tid = id
	queue := dig(t, c.call("GET", "/api/v1/compilequeue", "", 200), "queue").([]any)
	if len(queue) != 4 || dig(t, queue[3], "metadata", "message") != "by hand" ||
		dig(t, queue[3], "force_update") != false ||
		dig(t, queue[0], "force_update") != true {
		t.Errorf("queue: %v", queue)
	}
	if got := dig(t, queue[0], "metadata", "message"); got != "Recompile trigger through API call" {
		t.Errorf("without metadata: %v", got)
	}
	c.call("POST", "/api/v2/environment_settings/server_compile", `{"value":"false"}`, 200)
	warned := c.call("POST", "/api/v1/notify/"+id, "", 200)
	if got := dig(t, warned, "metadata", "warnings", 0).(string); !strings.Contains(got, "not enabled") {
		t.Errorf("warning: %v", got)
	}
}

// What every call has in common, by its rules.
func TestCommonRules(t *testing.T) {
	c, r := rich(t)
	t.Run("an argument that the call does not know is refused in the words that clients look for", func(t *testing.T) {
		for _, try := range [][2]string{{"/api/v2/project?extra=1", ""}, {"/api/v2/project", `{"name":"x","extra":1}`}} {
			method := "GET"
			if try[1] != "" {
				method = "PUT"
			}
			got := c.call(method, try[0], try[1], 400)["message"].(string)
			if !strings.HasPrefix(got, "Invalid request: request contains fields {'extra'} that are not declared") {
				t.Errorf("%s", got)
			}
		}
	})
	t.Run("an environment is named in the header, exists, and is echoed", func(t *testing.T) {
		other := newClient(t, r.Server)
		if got := other.call("GET", "/api/v2/resource", "", 400); !strings.Contains(
			got["message"].(string),
			"Field 'tid' is required.",
		) {
			t.Errorf("%v", got)
		}
		other.tid = "nonsense"
		if got := other.call("GET", "/api/v2/resource", "", 400); dig(
			t,
			got,
			"error_details",
			"validation_errors",
			0,
			"loc",
			0,
		) != "tid" {
			t.Errorf("%v", got)
		}
		other.tid = uuid.NewString()
		if got := other.call("GET", "/api/v2/resource", "", 404)["message"]; got != "Request or referenced resource does not exist: The given environment id does not exist!" {
			t.Errorf("%v", got)
		}
		w := c.send("GET", "/api/v2/resource", "")
		if w.Header().Get(tidHeader) != c.tid {
			t.Errorf("header not echoed: %v", w.Header())
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("content type %q", got)
		}
	})
	t.Run("an unknown path and a wrong verb get a page, not JSON", func(t *testing.T) {
		for path, code := range map[string]int{"/api/v2/nothing": 404, "/api/v2/compilereport/x/y": 404, "/api/v2/compilereport/": 404, "/api/v2/resource//logs": 404} {
			if w := c.send("GET", path, ""); w.Code != code ||
				!strings.Contains(w.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
			}
		}
		if w := c.send("DELETE", "/api/v2/health", ""); w.Code != 405 || !strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("OPTIONS is answered anywhere", func(t *testing.T) {
		w := c.send("OPTIONS", "/api/v2/anything/at/all", "")
		if w.Code != 200 || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), tidHeader) {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	})
	t.Run("a body that is no JSON, or no object, is refused", func(t *testing.T) {
		for _, body := range []string{"{", "[]", "1", `"x"`, "{} {}"} {
			c.call("PUT", "/api/v2/project", body, 400)
		}
	})
	t.Run("arguments of the wrong type are listed", func(t *testing.T) {
		got := c.call("PUT", "/api/v2/environment", `{"project_id":"nope","name":[1]}`, 400)
		if n := len(dig(t, got, "error_details", "validation_errors").([]any)); n != 2 {
			t.Errorf("%d errors: %v", n, got)
		}
	})
	t.Run("answers come in gzip when asked for, bodies too", func(t *testing.T) {
		req := httptest.NewRequest("GET", "/api/v2/project", nil)
		req.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, req)
		gz, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(gz)
		if err != nil || !json.Valid(text) || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s %v", text, err)
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write([]byte(`{"name":"zipped"}`)); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		req = httptest.NewRequest("PUT", "/api/v2/project", &packed)
		req.Header.Set("Content-Encoding", "gzip")
		w = httptest.NewRecorder()
		c.handler.ServeHTTP(w, req)
		if w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("a body that is too large is refused, also when it only grows large", func(t *testing.T) {
		small := newClient(t, r.Server, func(cfg *Config) { cfg.MaxBody = 1000 })
		small.call("PUT", "/api/v2/project", `{"name":"`+strings.Repeat("x", 2000)+`"}`, 413)
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write([]byte(`{"name":"` + strings.Repeat("x", 100_000) + `"}`)); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest("PUT", "/api/v2/project", &packed)
		req.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		small.handler.ServeHTTP(w, req)
		if w.Code != 413 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("an error of the server says no more than it should", func(t *testing.T) {
		broken := servertest.New(t, servertest.Present)
		broken.Store.Close()
		sick := newClient(t, broken)
		if got := sick.call("GET", "/api/v2/health", "", 500); !strings.HasPrefix(
			got["message"].(string),
			"An unexpected error occurred",
		) {
			t.Errorf("%v", got)
		}
		if got := dig(t, sick.call("GET", "/api/v1/serverstatus", "", 200), "data", "status"); got != "Error" {
			t.Errorf("%v", got)
		}
	})
}

// A resource id with slashes, plus signs, percent signs and brackets is one
// segment of a path.
func TestResourceIDsInPaths(t *testing.T) {
	c, r := rich(t)
	for _, value := range []string{"/etc/a b/c", "100%", "%2F", "a+b", "x]y[z", "a=b,c", "ü/☃", "?q#f"} {
		rid := "test::Odd[web01,name=" + value + "]"
		w := c.send("PUT", "/api/v2/facts/f?source=fact&value=1&resource_id="+url.QueryEscape(rid), "")
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", rid, w.Code, w.Body)
		}
		got := c.call("GET", "/api/v2/resource/"+url.PathEscape(rid)+"/facts", "", 200)
		if id := dig(t, got, "data", 0, "resource_id"); id != rid {
			t.Errorf("%s became %v", rid, id)
		}
		got = c.call("GET", "/api/v2/resource/"+url.QueryEscape(strings.ReplaceAll(rid, " ", "_"))+"/facts", "", 200)
		if strings.Contains(value, " ") != (len(dig(t, got, "data").([]any)) == 0) {
			t.Errorf("%s: %v", rid, got)
		}
	}
	got := c.call("GET", "/api/v2/resource/"+url.PathEscape(r.FailedFile.String()), "", 200)
	if dig(t, got, "data", "id_attribute_value") != r.FailedFile.Value || dig(t, got, "data", "status") != "failed" {
		t.Errorf("%v", got)
	}
	c.call("GET", "/api/v2/resource/nonsense", "", 400)
}

// A client that follows links blindly sees every row once, in either order.
func TestFollowingLinksSeesEverything(t *testing.T) {
	c, r := rich(t)
	for _, list := range []struct {
		path string
		want int
		id   string
	}{
		{"/api/v2/resource?limit=30&deploy_summary=true", 204, "resource_id"},
		{"/api/v2/resource?limit=30&sort=agent.ASC", 204, "resource_id"},
		{"/api/v2/resource?limit=7&sort=status.desc&filter.agent=WEB0&filter.status=!deployed", 18, "resource_id"},
		{"/api/v2/compilereport?limit=5", 32, "id"},
		{"/api/v2/compilereport?limit=5&sort=requested.asc", 32, "id"},
		{"/api/v2/compilereport?limit=2&filter.success=false", 5, "id"},
		{"/api/v2/desiredstate?limit=3", 10, "version"},
		{"/api/v2/desiredstate/7?limit=50&sort=resource_id_value.asc", 204, "resource_id"},
		{"/api/v2/agents?limit=4", 10, "name"},
		{"/api/v2/agents?limit=3&sort=paused.desc", 10, "name"},
	} {
		seen, pages := map[any]bool{}, 0
		next, last := list.path, ""
		for next != "" {
			got := c.call("GET", next, "", 200)
			if total := dig(t, got, "metadata", "total"); total != float64(list.want) {
				t.Fatalf("%s: total %v, want %d", next, total, list.want)
			}
			if before := dig(t, got, "metadata", "before"); before != float64(len(seen)) {
				t.Errorf("%s: before %v, want %d", next, before, len(seen))
			}
			for _, item := range dig(t, got, "data").([]any) {
				key := dig(t, item, list.id)
				if seen[key] {
					t.Fatalf("%s: %v twice", next, key)
				}
				seen[key] = true
			}
			links := dig(t, got, "links").(map[string]any)
			if pages == 0 && (links["prev"] != nil || links["first"] != nil) {
				t.Errorf("%s: the first page has pages before it: %v", next, links)
			}
			last = next
			next, _ = links["next"].(string)
			pages++
		}
		if len(seen) != list.want {
			t.Errorf("%s: %d rows, want %d", list.path, len(seen), list.want)
		}
		// And back again.
		back := 1
		for last != "" {
			links := dig(t, c.call("GET", last, "", 200), "links").(map[string]any)
			if last, _ = links["prev"].(string); last != "" {
				back++
			}
		}
		if back != pages {
			t.Errorf("%s: %d pages there, %d back", list.path, pages, back)
		}
	}
	got := c.call("GET", "/api/v2/resource?limit=1&deploy_summary=true&filter.agent=web01", "", 200)
	if self := dig(t, got, "links", "self").(string); !strings.Contains(self, "deploy_summary=True") ||
		!strings.Contains(self, "filter.agent=web01") {
		t.Errorf("self: %s", self)
	}
	if n := dig(t, got, "metadata", "deploy_summary", "by_state", "deployed"); n != 186.0 {
		t.Errorf("deployed: %v", n)
	}
	_ = r
}

// Paging, sorting and filtering refuse what they do not know.
func TestListsRefuseWhatTheyDoNotKnow(t *testing.T) {
	c, _ := rich(t)
	for _, path := range []string{
		"/api/v2/resource?limit=1001", "/api/v2/resource?limit=-1", "/api/v2/resource?limit=x", "/api/v2/resource?sort=colour.asc",
		"/api/v2/resource?sort=agent", "/api/v2/resource?sort=agent.up", "/api/v2/resource?filter.colour=red",
		"/api/v2/resource?start=a&first_id=b&end=c&last_id=d", "/api/v2/compilereport?filter.success=perhaps",
		"/api/v2/compilereport?filter.success=true&filter.success=false", "/api/v2/compilereport?filter.requested=2026-11-21",
		"/api/v2/compilereport?filter.requested=ge:yesterday", "/api/v2/compilereport?start=yesterday", "/api/v2/compilereport?first_id=7",
		"/api/v2/desiredstate?filter.version=ge:x", "/api/v2/desiredstate?first_id=3", "/api/v2/agents?filter=web",
	} {
		c.call("GET", path, "", 400)
	}
	if n := dig(t, c.call("GET", "/api/v2/compilereport?filter.requested=ge:2026-11-21+15:00:00", "", 200), "metadata", "total"); n != 6.0 {
		t.Errorf("with a real plus sign between date and time: %v", n)
	}
	if n := dig(t, c.call("GET", "/api/v2/compilereport?filter.started=true&filter.completed=false", "", 200), "metadata", "total"); n != 1.0 {
		t.Errorf("running: %v", n)
	}
	if n := dig(t, c.call("GET", "/api/v2/resource?limit=0", "", 200), "metadata", "page_size"); n != 1000.0 {
		t.Errorf("limit 0: %v", n)
	}
}

// Settings are read, changed, refused and put back, in both versions.
func TestSettings(t *testing.T) {
	c, _ := rich(t)
	if got := dig(t, c.call("GET", "/api/v2/environment_settings", "", 200), "data", "settings", "git_poll_interval"); got != 30.0 {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v1/environment_settings/available_versions_to_keep", `{"value":"42"}`, 200)
	if got := dig(t, c.call("GET", "/api/v1/environment_settings/available_versions_to_keep", "", 200), "value"); got != 42.0 {
		t.Errorf("text is converted: %v", got)
	}
	c.call("POST", "/api/v2/environment_settings/available_versions_to_keep", `{"value":"many"}`, 500)
	c.call("POST", "/api/v2/environment_settings/colour", `{"value":"red"}`, 404)
	if got := c.call("DELETE", "/api/v2/environment_settings/available_versions_to_keep", "", 200); len(got) != 1 ||
		got["data"] != nil {
		t.Errorf("%v", got)
	}
	got := c.call("GET", "/api/v2/environment_settings/available_versions_to_keep", "", 200)
	if dig(t, got, "data", "settings", "available_versions_to_keep") != 100.0 ||
		dig(t, got, "data", "definition", "auto_deploy", "type") != "bool" {
		t.Errorf("%v", got)
	}
	// What project.yml decides cannot be changed here, and says why.
	c.call(
		"POST",
		"/api/v2/protected_environment_settings",
		`{"settings":{"recompile_backoff":3},"protected_by":"project.yml"}`,
		200,
	)
	c.call(
		"POST",
		"/api/v2/protected_environment_settings",
		`{"settings":{"recompile_backoff":3},"protected_by":"me"}`,
		400,
	)
	if got := c.call("POST", "/api/v2/environment_settings/recompile_backoff", `{"value":1}`, 403)["message"].(string); !strings.Contains(
		got,
		"decided by project.yml",
	) {
		t.Errorf("%s", got)
	}
	definition := dig(t, c.call("GET", "/api/v2/environment_settings/recompile_backoff", "", 200), "data", "definition")
	if dig(t, definition, "recompile_backoff", "protected") != true ||
		dig(t, definition, "recompile_backoff", "protected_by") != "project.yml" ||
		dig(t, definition, "auto_deploy", "protected") != false {
		t.Errorf("%v", definition)
	}
	c.call("POST", "/api/v2/protected_environment_settings", `{"settings":{},"protected_by":"project.yml"}`, 200)
	c.call("POST", "/api/v2/environment_settings/recompile_backoff", `{"value":1}`, 200)
	c.call("POST", "/api/v2/environment_settings/protected_environment", `{"value":true}`, 200)
	if got := c.call("DELETE", "/api/v2/environment/"+c.tid, "", 403)["message"].(string); !strings.HasPrefix(
		got,
		"Access denied: ",
	) {
		t.Errorf("%s", got)
	}
	c.call("DELETE", "/api/v2/decommission/"+c.tid, "", 403)
}

// Versions are promoted once; the diff goes from the older to the newer.
func TestVersions(t *testing.T) {
	c, r := rich(t)
	if got := c.call("POST", "/api/v2/desiredstate/99/promote", "null", 404)["message"].(string); strings.Contains(
		got,
		"Request or referenced",
	) {
		t.Errorf("this old error has no prefix: %s", got)
	}
	c.call("POST", "/api/v2/desiredstate/7/promote", "", 409)
	if w := c.send("POST", "/api/v2/desiredstate/8/promote", `{"trigger_method":"push_full_deploy"}`); w.Code != 200 ||
		w.Body.Len() != 0 {
		t.Errorf("promote: %d %s", w.Code, w.Body)
	}
	c.call("GET", "/api/v2/desiredstate/diff/7/6", "", 400)
	diffs := dig(t, c.call("GET", "/api/v2/desiredstate/diff/6/7", "", 200), "data").([]any)
	if len(diffs) != 14 {
		t.Errorf("%d differences", len(diffs))
	}
	for _, d := range diffs {
		if dig(t, d, "status") == "added" {
			if dig(t, d, "attributes", "purged", "to_value_compare") != "False" ||
				dig(t, d, "attributes", "purged", "from_value_compare") != "" {
				t.Errorf("%v", d)
			}
			if got := dig(t, d, "attributes", "tags", "to_value_compare"); got != "[\n    \"web\",\n    \"public\"\n]" {
				t.Errorf("%v", got)
			}
		}
	}
	c.call("DELETE", "/api/v1/version/1", "", 200)
	c.call("GET", "/api/v1/version/1", "", 404)
	got := c.call("GET", "/api/v1/version?start=1&limit=2", "", 200)
	if got["count"] != 9.0 || dig(t, got, "versions", 0, "version") != 9.0 ||
		len(dig(t, got, "versions").([]any)) != 2 {
		t.Errorf("%v", got)
	}
	one := c.call("GET", "/api/v1/version/7?include_logs=true&log_filter=deploy&limit=2", "", 200)
	for _, x := range dig(t, one, "resources").([]any) {
		if dig(t, x, "resource_id") == r.FailedFile.String() && len(dig(t, x, "actions").([]any)) != 2 {
			t.Errorf("%v", dig(t, x, "actions"))
		}
	}
}

// Agents are paused, but not in a halted environment; all at once too.
func TestAgentsAndHalt(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	c.call("POST", "/api/v2/agent/web01/pause", "", 200)
	if message := c.call("POST", "/api/v2/agent/web0l/pause", "", 404)["message"].(string); !strings.Contains(
		message,
		"web0l",
	) {
		t.Error(message)
	}
	c.call("POST", "/api/v2/agent/web01/dance", "", 400)
	c.call("POST", "/api/v2/agents/keep_paused_on_resume", "", 403)
	if got := dig(t, c.call("GET", "/api/v2/agents?filter.status=paused", "", 200), "metadata", "total"); got != 2.0 {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v2/agents/unpause", "", 200)
	for range 2 { // halting twice is fine
		c.call("POST", "/api/v2/actions/environment/halt", "null", 200)
	}
	c.call("POST", "/api/v2/agents/pause", "", 403)
	if got := dig(t, c.call("GET", "/api/v1/agent", "", 200), "agents", 0); dig(t, got, "state") != "paused" ||
		dig(t, got, "last_failover") != "" {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v2/dryrun/7", "null", 409)
	c.call("POST", "/api/v2/actions/environment/resume", "null", 200)
	id := dig(t, c.call("POST", "/api/v2/dryrun/7", "null", 200), "data").(string)
	if got := dig(t, c.call("GET", "/api/v2/dryrun/7/"+id, "", 200), "data", "summary", "todo"); got != 204.0 {
		t.Errorf("%v", got)
	}
	c.call("GET", "/api/v2/dryrun/6/"+id, "", 404)
	if got := dig(t, c.call("POST", "/api/v1/deploy", `{"agent_trigger_method":"push_incremental_deploy","agents":["web03"]}`, 200), "agents", 0); got != "web03" {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v1/deploy", `{"agents":["stranger"]}`, 404)
	told := strings.Join(r.Told(), "\n")
	for _, want := range []string{"pause web01=true", "pause =false", "dry run " + id, "deploy full=false [web03]"} {
		if !strings.Contains(told, want) {
			t.Errorf("the deployer was not told %q:\n%s", want, told)
		}
	}
}

// Parameters and facts, old and new.
func TestParameters(t *testing.T) {
	c, r := rich(t)
	if w := c.send("GET", "/api/v1/parameter/unknown", ""); w.Code != 404 || w.Body.Len() != 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	c.call(
		"PUT",
		"/api/v2/parameters/size",
		`{"source":"user","value":"12","metadata":{"unit":"GB"},"recompile":true}`,
		200,
	)
	c.call("PUT", "/api/v2/parameters/size", `{"source":"rumour","value":"12"}`, 400)
	list := c.call("POST", "/api/v1/parameter", `{"query":{"unit":"GB"}}`, 200)
	if got := dig(t, list, "parameters").([]any); len(got) != 1 || dig(t, got[0], "value") != "12" ||
		dig(t, list, "expire") != 3600.0 {
		t.Errorf("%v", list)
	}
	queue, err := r.Store.OpenCompiles(t.Context(), r.Production.ID)
	if err != nil || len(queue) != 2 || queue[1].Trigger.Type != "param" {
		t.Errorf("the compile that was asked for is not in the queue: %v %v", queue, err)
	}
	c.call(
		"PUT",
		"/api/v1/parameters",
		`{"parameters":[{"id":"a","source":"fact","value":"1","resource_id":"`+r.HealthyDir.String()+`"}]}`,
		200,
	)
	facts := dig(t, c.call("GET", "/api/v2/facts?filter.name=a", "", 200), "data").([]any)
	if len(facts) != 1 || dig(t, facts[0], "resource_id") != r.HealthyDir.String() ||
		dig(t, facts[0], "expires") != true {
		t.Errorf("%v", facts)
	}
	c.call("DELETE", "/api/v1/parameter/size", "", 200)
	c.call("DELETE", "/api/v1/parameter/size", "", 404)
}

// Files are kept under the hash of their content, and compared by line.
func TestFiles(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	const one, two = "9534e28ef6b45e6a98ab84dfe0bdf64c71adb55a", "c2dcf53bc0b9f2ef24c7e9ee1e3a3d4b6de4e0c1"
	put := func(content string) (hash string) {
		body := `{"content":"` + content + `"}`
		message := c.call("PUT", "/api/v1/file/"+two, body, 400)["message"].(string)
		_, rest, _ := strings.Cut(message, "has the hash ")
		hash, _, _ = strings.Cut(rest, " ")
		c.call("PUT", "/api/v1/file/"+hash, body, 200)
		return hash
	}
	a := put("b25lCnR3bwp0aHJlZQo=")     // one two three
	b := put("b25lCjIKdGhyZWUKZm91cgo=") // one 2 three four
	if got := c.call("GET", "/api/v1/file/"+a, "", 200)["content"]; got != "b25lCnR3bwp0aHJlZQo=" {
		t.Errorf("%v", got)
	}
	if w := c.send("HEAD", "/api/v1/file/"+one, ""); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
	if got := dig(t, c.call("POST", "/api/v1/file", `{"files":["`+a+`","`+one+`"]}`, 200), "files").([]any); len(
		got,
	) != 1 ||
		got[0] != one {
		t.Errorf("%v", got)
	}
	lines := dig(t, c.call("POST", "/api/v1/filediff", `{"file_id_1":"`+a+`","file_id_2":"`+b+`"}`, 200), "diff").([]any)
	want := []any{"--- ", "+++ ", "@@ -1,3 +1,4 @@", " one", "-two", "+2", " three", "+four"}
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d: %q, want %q", i, lines[i], want[i])
		}
	}
}

// There is no user, and that is said as the web console expects.
func TestCurrentUser(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	c.call("GET", "/api/v2/current_user", "", 404)
	if got := c.call("GET", "/api/v2/health", "", 200); got["data"] != nil {
		t.Errorf("%v", got)
	}
}
