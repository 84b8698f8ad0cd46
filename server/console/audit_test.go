package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// A halt in the console, with a reason, is on the page of the audit trail and in its export, with the person's name.
func TestAuditTrail(t *testing.T) {
	t.Parallel()
	rich := servertest.NewRich(t)
	who := &caller{access.Principal{Kind: access.Person, Name: "noor", Bindings: []access.Binding{
		{Role: access.Administrator, Scope: access.Scope{Project: rich.Project.ID}},
	}}}
	h, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, form string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	base := "/e/" + rich.Sandbox.ID.String()
	if w := ask(http.MethodPost, base+"/halt", "reason=the+move"); w.Code != http.StatusSeeOther {
		t.Fatalf("halt: %d", w.Code)
	}
	page := ask(http.MethodGet, base+"/audit?verb=environment.halt", "").Body.String()
	for _, want := range []string{"noor", "environment.halt", "192.0.2.1, console", "done"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	lines := 0
	for s := bufio.NewScanner(ask(http.MethodGet, base+"/audit/export", "").Body); s.Scan(); lines++ {
		var line struct{ Actor, Verb, Outcome string }
		if err := json.Unmarshal(s.Bytes(), &line); err != nil || line.Actor != "noor" || line.Outcome != "done" {
			t.Errorf("%s: %v", s.Bytes(), err)
		}
	}
	if lines != 1 {
		t.Errorf("the export has %d lines", lines)
	}
}

// A maintainer cannot set secrets of the whole project from the page of an environment, and what the form of the home
// page makes is in the trail.
func TestFormsOfAMaintainer(t *testing.T) {
	t.Parallel()
	rich := servertest.NewRich(t)
	who := &caller{access.Principal{Kind: access.Person, Name: "noor", Bindings: []access.Binding{
		{Role: access.Maintainer, Scope: access.Scope{Project: rich.Project.ID}},
	}}}
	h, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	if err != nil {
		t.Fatal(err)
	}
	post := func(path string, form url.Values) int {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	secret := url.Values{"name": {"git-password"}, "value": {"planted"}, "for": {"project"}}
	if code := post("/e/"+rich.Sandbox.ID.String()+"/settings/secret", secret); code != http.StatusForbidden {
		t.Errorf("a secret of the project: %d", code)
	}
	names, err := rich.Control.ProjectSecretNames(t.Context(), rich.Project.ID)
	if err != nil || slices.Contains(names, "git-password") {
		t.Errorf("the project has the secrets %v, %v", names, err)
	}
	made := url.Values{"project": {rich.Project.Name}, "name": {"fresh"}, "halted": {"yes"}}
	if code := post("/environments", made); code != http.StatusSeeOther {
		t.Fatalf("a new environment: %d", code)
	}
	if code := post("/environments", url.Values{"project": {"elsewhere"}, "name": {"x"}}); code < 400 {
		t.Fatalf("a new environment elsewhere: %d", code)
	}
	trail, err := rich.Store.AuditAfter(t.Context(), uuid.Nil, uuid.Nil, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range trail {
		got = append(got, fmt.Sprint(e.Actor, " ", e.Verb, " ", e.ProjectName, ": ", e.Outcome))
	}
	want := []string{
		"noor environment.secret " + rich.Project.Name + ": refused",
		"noor environment.create " + rich.Project.Name + ": done",
		"noor environment.create : refused",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trail has %q, want %q", got, want)
	}
}

// The trail begins with the first administrator, whom somebody made who was not logged in. A link that does not work
// leaves no trace: anybody can send it.
func TestTheFirstAdministratorIsInTheTrail(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Present)
	s.RequireLogin()
	h, err := New(Config{
		Control: s.Control, Store: s.Store, Bus: s.Bus, Version: servertest.Version, Logger: s.Log,
		Auth: s.People.Console(), People: s.People, Audit: &audit.Recorder{Store: s.Store, Logger: s.Log},
	})
	if err != nil {
		t.Fatal(err)
	}
	link, err := s.People.FirstLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"name": {"ada"}, "password": {servertest.Password}, "again": {servertest.Password}}
	for _, path := range []string{"/first/wrong", link[strings.Index(link, "/first/"):]} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	trail, err := s.Store.AuditAfter(t.Context(), uuid.Nil, uuid.Nil, 0, 10)
	if err != nil || len(trail) != 1 || trail[0].Actor != "ada" || trail[0].Subject != "user ada" {
		t.Errorf("the trail has %+v, %v", trail, err)
	}
}
