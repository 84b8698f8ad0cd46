package api

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/server/servertest"
	"ordain.dev/ordain/server/store"
)

// Any query is understood or rejected and never makes the server fail, and the link of a page to itself asks for the
// same page.
func FuzzListQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=20&sort=requested.desc",
		"limit=20&sort=requested.desc&filter.success=false&filter.requested=ge:2026-11-14+13:50:31",
		"start=2026-11-21T13:27:56Z&first_id=a0000001-0000-4000-8000-000000000001",
		"filter.requested=lt:2026-11-21&filter.requested=ge:2026-11-20", "limit=&sort=",
		"first_id=00000000-0000-0000-0000-000000000000", "filter.=1", "filter.success", "limit=5;x", "%zz",
	} {
		f.Add(seed)
	}
	r := servertest.NewRich(f)
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		args := map[string]any{}
		mergeQuery(args, query)
		var p struct{ paging }
		if decode(args, &p) != nil {
			return
		}
		q, err := p.query(store.CompileList)
		if err != nil {
			return
		}
		page, err := r.Store.Compiles(t.Context(), r.Production.ID, q)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		self := address{path: "/x", list: store.CompileList}.link(q, q.After, q.Before)
		_, selfQuery, _ := strings.Cut(self, "?")
		query, err = url.ParseQuery(selfQuery)
		if err != nil {
			t.Fatalf("%q: link %s: %v", raw, self, err)
		}
		args = map[string]any{}
		mergeQuery(args, query)
		var again struct{ paging }
		if err := decode(args, &again); err != nil {
			t.Fatalf("%q: link %s: %v", raw, self, err)
		}
		q2, err := again.query(store.CompileList)
		if err != nil {
			t.Fatalf("%q: link %s: %v", raw, self, err)
		}
		page2, err := r.Store.Compiles(t.Context(), r.Production.ID, q2)
		if err != nil || len(page2.Items) != len(page.Items) || page2.Total != page.Total {
			t.Errorf("%q: link %s gives another page", raw, self)
		}
	})
}

// No body makes the server fail.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", `{"name":"x"}`, `{"name":null}`, `{"name":1e999}`, `[1]`, `{"project_id":"x","name":{}}`,
		"\xff", `{"a":{"b":[{}]}}`,
	} {
		f.Add(seed)
	}
	s := servertest.New(f, servertest.Present)
	f.Fuzz(func(t *testing.T, body string) {
		c := newClient(t, s)
		for _, path := range []string{"PUT /api/v2/project", "PUT /api/v2/environment", "POST /api/v1/file"} {
			method, path, _ := strings.Cut(path, " ")
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
			if w.Code >= 500 {
				t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	})
}

// The comparison of any two texts turns one into the other.
func FuzzCompareLines(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd\n")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, from, to string) {
		if len(from)+len(to) > 2000 {
			return
		}
		var was, will strings.Builder
		for _, e := range compareLines(strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")) {
			if e.op != '+' {
				was.WriteString(e.line)
			}
			if e.op != '-' {
				will.WriteString(e.line)
			}
		}
		if was.String() != from || will.String() != to {
			t.Errorf("%q → %q came back as %q → %q", from, to, was.String(), will.String())
		}
	})
}
