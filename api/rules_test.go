package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/servertest"
)

// The rules that all calls share.
func TestCommonRules(t *testing.T) {
	c, r := rich(t)
	t.Run("an argument that the call does not know is rejected in the words that clients look for", func(t *testing.T) {
		const message = "Invalid request: request contains fields {'extra'} that are not declared"
		c.call("GET", "/api/v2/project?extra=1", "", 400).says(message)
		c.call("PUT", "/api/v2/project", `{"name":"x","extra":1}`, 400).says(message)
	})
	t.Run("an environment is named in the header, exists, and is echoed", func(t *testing.T) {
		other := newClient(t, r.Server)
		other.call("GET", "/api/v2/resource", "", 400).says("Field 'tid' is required.")
		other.tid = "nonsense"
		other.call("GET", "/api/v2/resource", "", 400).is("tid", "error_details", "validation_errors", 0, "loc", 0)
		other.tid = uuid.NewString()
		other.call("GET", "/api/v2/resource", "", 404).
			is("Request or referenced resource does not exist: The given environment id does not exist!", "message")
		w := c.send("GET", "/api/v2/resource", "")
		if w.Header().Get(tidHeader) != c.tid {
			t.Errorf("the header is not echoed: %v", w.Header())
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("the content type is %q", got)
		}
	})
	t.Run("an unknown path and a wrong verb get a page, not JSON", func(t *testing.T) {
		for request, status := range map[string]int{
			"GET /api/v2/nothing": 404, "GET /api/v2/compilereport/x/y": 404, "GET /api/v2/compilereport/": 404,
			"GET /api/v2/resource//logs": 404, "DELETE /api/v2/health": 405,
		} {
			method, path, _ := strings.Cut(request, " ")
			w := c.send(method, path, "")
			if w.Code != status || !strings.Contains(w.Header().Get("Content-Type"), "text/html") ||
				!strings.Contains(w.Body.String(), "<html") {
				t.Errorf("%s answers %d: %v %s", request, w.Code, w.Header(), w.Body)
			}
		}
	})
	t.Run("OPTIONS is answered anywhere", func(t *testing.T) {
		w := c.send("OPTIONS", "/api/v2/anything/at/all", "")
		if w.Code != 200 || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), tidHeader) {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	})
	t.Run("a body that is not one JSON object is rejected", func(t *testing.T) {
		for _, body := range []string{"{", "[]", "1", `"x"`, "{} {}"} {
			c.call("PUT", "/api/v2/project", body, 400)
		}
	})
	t.Run("arguments of the wrong type are listed", func(t *testing.T) {
		wrong := c.call("PUT", "/api/v2/environment", `{"project_id":"nope","name":[1]}`, 400)
		if errors := wrong.list("error_details", "validation_errors"); len(errors) != 2 {
			t.Errorf("the errors are %v", errors)
		}
	})
	t.Run("an error of the server says no more than it should", func(t *testing.T) {
		broken := servertest.New(t, servertest.Present)
		broken.Store.Close()
		sick := newClient(t, broken)
		sick.call("GET", "/api/v2/health", "", 500).says("An unexpected error occurred")
		sick.get("/api/v1/serverstatus").is("Error", "data", "status")
	})
}

// zipped compresses a text.
func zipped(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte(text))
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &packed
}

// Bodies may come in gzip, and answers go out in it when the client asks. A body that is too large is rejected, also
// when it only becomes so once it is unpacked.
func TestGzip(t *testing.T) {
	s := servertest.New(t, servertest.Present)
	c := newClient(t, s, func(cfg *Config) { cfg.MaxBody = 1000 })
	w := httptest.NewRecorder()
	ask := httptest.NewRequest("GET", docsPath+"?format=openapi", nil) // short answers are not worth it
	ask.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
	c.handler.ServeHTTP(w, ask)
	gz, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(gz)
	if err != nil || !json.Valid(text) || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%s %v", text, err)
	}
	for name, status := range map[string]int{"zipped": 200, strings.Repeat("x", 100_000): 413} {
		w := httptest.NewRecorder()
		put := httptest.NewRequest("PUT", "/api/v2/project", zipped(t, `{"name":"`+name+`"}`))
		put.Header.Set("Content-Encoding", "gzip")
		c.handler.ServeHTTP(w, put)
		if w.Code != status {
			t.Errorf("a body of %d bytes is answered %d: %s", len(name), w.Code, w.Body)
		}
	}
	c.call("PUT", "/api/v2/project", `{"name":"`+strings.Repeat("x", 2000)+`"}`, 413)
}

// A resource id with slashes, plus signs, percent signs and brackets is one segment of a path.
func TestResourceIDsInPaths(t *testing.T) {
	c, r := rich(t)
	for _, value := range []string{"/etc/a b/c", "100%", "%2F", "a+b", "x]y[z", "a=b,c", "ü/☃", "?q#f"} {
		rid := "test::Odd[web01,name=" + value + "]"
		c.call("PUT", "/api/v2/facts/f?source=fact&value=1&resource_id="+url.QueryEscape(rid), "", 200)
		c.get("/api/v2/resource/"+url.PathEscape(rid)+"/facts").is(rid, "data", 0, "resource_id")
		other := url.QueryEscape(strings.ReplaceAll(rid, " ", "_")) // without blanks the two ways to escape are one
		facts := c.get("/api/v2/resource/" + other + "/facts").list("data")
		if strings.Contains(value, " ") != (len(facts) == 0) {
			t.Errorf("%s: %v", rid, facts)
		}
	}
	file := c.get("/api/v2/resource/" + url.PathEscape(r.FailedFile.String()))
	file.is(r.FailedFile.Value, "data", "id_attribute_value")
	file.is("failed", "data", "status")
	c.call("GET", "/api/v2/resource/nonsense", "", 400)
}
