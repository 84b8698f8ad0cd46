package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// Noor changes a setting, sets a secret and halts; Mallory, who may only look, tries to. The trail says who did what,
// from where, what was there before, and why; it holds no secret; and nobody can rewrite it.
func TestTheTrailSaysWhoDidWhat(t *testing.T) {
	rich := servertest.NewRich(t)
	who := &caller{}
	rest, err := New(Config{
		Control: rich.Control, Store: rich.Store, Version: servertest.Version, Logger: rich.Log, Now: rich.Now,
		Auth: who, People: rich.People, Tokens: rich.Tokens,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	if err != nil {
		t.Fatal(err)
	}
	noor := person("noor", access.Binding{Role: access.Administrator, Scope: access.Scope{Project: rich.Project.ID}})
	mallory := person("mallory", access.Binding{Role: access.Viewer, Scope: access.Scope{Project: rich.Project.ID}})
	env := rich.Sandbox.ID
	for _, c := range []struct {
		as                 access.Principal
		method, path, body string
		want               int
	}{
		{noor, "POST", "/api/v2/environment_settings/autostart_agent_deploy_interval", `{"value": "7"}`, 200},
		{noor, "PUT", "/api/v2/environment/" + env.String() + "/secret/webhook",
			`{"value": "s3cr3t-s3cr3t-s3cr3t"}`, 200},
		{noor, "POST", "/api/v2/actions/environment/halt", `{"by": "somebody else", "reason": "migration"}`, 200},
		{mallory, "POST", "/api/v2/actions/environment/resume", `{}`, 403},
		{mallory, "GET", "/api/v2/environment/" + env.String() + "/audit", ``, 403},
		{access.Principal{}, "POST", "/api/v2/actions/environment/resume", `{}`, 401},
	} {
		who.Principal = c.as
		r := httptest.NewRequest(c.method, c.path, bytes.NewBufferString(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(tidHeader, env.String())
		w := httptest.NewRecorder()
		rest.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Fatalf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	trail, err := rich.Store.AuditAfter(t.Context(), uuid.Nil, env, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range trail {
		got = append(
			got,
			strings.Join([]string{e.Actor, e.Address, e.Verb, e.Subject, string(e.Before), string(e.After),
				e.Reason, string(e.Outcome), e.EnvironmentName}, " | "),
		)
	}
	want := []string{
		"noor | 192.0.2.1 | environment.setting | setting autostart_agent_deploy_interval |  | \"7\" |  | " +
			"done | sandbox",
		"noor | 192.0.2.1 | environment.secret | secret webhook |  | \"set\" |  | done | sandbox",
		"noor | 192.0.2.1 | environment.halt |  |  |  | migration | done | sandbox",
		"mallory | 192.0.2.1 | environment.resume |  |  |  |  | refused | sandbox",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the trail is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	done, err := rich.Store.Interventions(t.Context(), env, 10)
	if err != nil || len(done) == 0 || done[0].By != "noor" {
		t.Errorf("the halt is recorded as %+v (%v); want noor, who is logged in", done, err)
	}

	who.Principal = noor
	w := httptest.NewRecorder()
	rest.ServeHTTP(w, httptest.NewRequest(http.MethodGet,
		"/api/v2/environment/"+env.String()+"/audit?filter.actor=mallory&filter.outcome=refused", nil))
	if w.Code != 200 || strings.Count(w.Body.String(), `"verb"`) != 1 {
		t.Errorf("the filtered page: %d %s", w.Code, w.Body)
	}
	if err := rich.Store.DeleteAuditBefore(t.Context(), rich.Now().AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if left, err := rich.Store.AuditAfter(t.Context(), uuid.Nil, env, 0, 100); err != nil || len(left) != len(trail) {
		t.Errorf("%d of %d entries are left before their time (%v)", len(left), len(trail), err)
	}
}

// Changing a password has its own verb in the trail, and changing that of somebody else is managing users.
func TestPasswordsInTheTrail(t *testing.T) {
	s := servertest.New(t, time.Now())
	s.RequireLogin()
	who := &caller{}
	rest, err := New(Config{
		Control: s.Control, Store: s.Store, Version: servertest.Version, Logger: s.Log, Now: s.Now,
		Auth: who, People: s.People, Tokens: s.Tokens,
		Audit: &audit.Recorder{Store: s.Store, Logger: s.Log, Now: s.Now},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := access.With(t.Context(), person("root", access.Binding{Role: access.Administrator}))
	ada, err := s.People.AddUser(root, "ada", "a long password")
	if err != nil {
		t.Fatal(err)
	}
	self := person("ada")
	self.User = ada.ID
	for _, c := range []struct {
		as   access.Principal
		body string
	}{
		{self, `{"password": "another long one", "current_password": "a long password"}`},
		{person("root", access.Binding{Role: access.Administrator}), `{"password": "the third password"}`},
	} {
		who.Principal = c.as
		r := httptest.NewRequest("PATCH", "/api/v2/user/ada/password", strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if rest.ServeHTTP(w, r); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	trail, err := s.Store.AuditAfter(t.Context(), uuid.Nil, uuid.Nil, 0, 100)
	if err != nil || len(trail) != 2 || trail[0].Verb != "user.password" || trail[1].Verb != "user.manage" ||
		strings.Contains(string(trail[1].After), "third") {
		t.Errorf("%+v, %v", trail, err)
	}
}
