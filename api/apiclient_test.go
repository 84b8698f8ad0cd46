package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/server/servertest"
)

// client speaks to an API under test.
type client struct {
	t       *testing.T
	handler http.Handler
	tid     string
	token   string // of a login
}

func newClient(t *testing.T, s *servertest.Server, change ...func(*Config)) *client {
	t.Helper()
	cfg := Config{Control: s.Control, Store: s.Store, Version: servertest.Version, Logger: s.Log, Auth: s.API(),
		People: s.People, Tokens: s.Tokens, Agents: s.Agents, Now: s.Now,
		Clusters: s.Clusters, Catalogue: s.Catalogue, Resources: s.Resources}
	for _, f := range change {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, handler: h}
}

// rich returns a client of a server with a history, in its environment production.
func rich(t *testing.T) (*client, *servertest.Rich) {
	t.Helper()
	r := servertest.NewRich(t)
	c := newClient(t, r.Server)
	c.tid = r.Production.ID.String()
	return c, r
}

// send makes a request, and checks the answer against the document that the API publishes.
func (c *client) send(method, path, body string) *httptest.ResponseRecorder {
	c.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if c.tid != "" {
		req.Header.Set(tidHeader, c.tid)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	c.validate(req, w)
	return w
}

// call makes a request and checks the status of the answer.
func (c *client) call(method, path, body string, status int) answer {
	c.t.Helper()
	w := c.send(method, path, body)
	a := answer{t: c.t, to: method + " " + path}
	if w.Code != status {
		c.t.Fatalf("%s %s answers %d, want %d: %s", a.to, body, w.Code, status, w.Body)
	}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
			c.t.Fatalf("%s: %v: %s", a.to, err, w.Body)
		}
	}
	return a
}

// get reads what a path has.
func (c *client) get(path string) answer {
	c.t.Helper()
	return c.call("GET", path, "", 200)
}

// total returns how many items a list has.
func (c *client) total(path string) int {
	c.t.Helper()
	return int(c.get(path).at("metadata", "total").(float64))
}

// answer is the body of an answer; nil when it has none.
type answer struct {
	t    *testing.T
	to   string
	body any
}

// at follows keys and indexes into the answer.
func (a answer) at(path ...any) any {
	a.t.Helper()
	v := a.body
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, ok := v.(map[string]any)
			if !ok {
				a.t.Fatalf("%s: %v leads to no object at %v: %v", a.to, path, step, v)
			}
			if v, ok = object[key]; !ok {
				a.t.Fatalf("%s: %v: there is no %v in %v", a.to, path, step, object)
			}
		case int:
			list, ok := v.([]any)
			if !ok || key >= len(list) {
				a.t.Fatalf("%s: %v: there is no item %v in %v", a.to, path, step, v)
			}
			v = list[key]
		}
	}
	return v
}

// part is what a path leads to in the answer.
func (a answer) part(path ...any) answer {
	a.t.Helper()
	return answer{t: a.t, to: a.to, body: a.at(path...)}
}

func (a answer) text(path ...any) string {
	a.t.Helper()
	s, ok := a.at(path...).(string)
	if !ok {
		a.t.Fatalf("%s: %v is not a text: %v", a.to, path, a.at(path...))
	}
	return s
}

func (a answer) list(path ...any) []any {
	a.t.Helper()
	l, ok := a.at(path...).([]any)
	if !ok {
		a.t.Fatalf("%s: %v is not a list: %v", a.to, path, a.at(path...))
	}
	return l
}

// is checks what a path leads to in the answer.
func (a answer) is(want any, path ...any) {
	a.t.Helper()
	if n, ok := want.(int); ok {
		want = float64(n)
	}
	if got := a.at(path...); got != want {
		a.t.Errorf("%s: %v is %v, want %v", a.to, path, got, want)
	}
}

// says checks that the message of an error contains some texts.
func (a answer) says(texts ...string) {
	a.t.Helper()
	for _, want := range texts {
		if message := a.text("message"); !strings.Contains(message, want) {
			a.t.Errorf("%s: there is no %q in %q", a.to, want, message)
		}
	}
}
