package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// The page of a project shows what it may use and uses, and who its members are, also before it has an environment.
// Administrators of the project change its members there, and only administrators of the server its quotas. Who has a
// role in one of its environments only does not find the page.
func TestThePageOfAProject(t *testing.T) {
	t.Parallel()
	rich := servertest.NewRich(t)
	rich.RequireLogin()
	who := &caller{}
	h, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	must(t, err)
	in := func(role access.Role, scope access.Scope) access.Principal {
		return access.Principal{
			Kind:     access.Person,
			Name:     "noor",
			Bindings: []access.Binding{{Role: role, Scope: scope}},
		}
	}
	root := in(access.Administrator, access.Scope{})
	empty, err := rich.Control.CreateProject(t.Context(), intent.Project{Name: "no environments"})
	must(t, err)
	rich.AddPerson(t, "ada")
	send := func(as access.Principal, method, path string, form url.Values) *httptest.ResponseRecorder {
		who.Principal = as
		r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	page := projectURL(empty.ID)
	administrator := in(access.Administrator, access.Scope{Project: empty.ID})
	if w := send(root, "POST", page+"/quota", url.Values{"environments": {"5"}}); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	give := url.Values{"kind": {"user"}, "name": {"ada"}, "role": {"operator"}}
	if w := send(administrator, "POST", page+"/give", give); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	grants, err := rich.People.Grants(t.Context(), uuid.Nil, empty.ID)
	if err != nil || len(grants) != 1 || grants[0].Subject != "ada" || grants[0].Role != "operator" {
		t.Fatal(grants, err)
	}
	elsewhere, err := rich.People.Give(access.With(t.Context(), root), access.Grant{
		Kind: access.OfUser, Subject: "ada", Role: "viewer", Scope: access.Scope{Project: rich.Project.ID},
	}, access.Target{Project: rich.Project.ID})
	must(t, err)

	viewer := in(access.Viewer, access.Scope{Project: empty.ID})
	for name, c := range map[string]struct {
		as          access.Principal
		has, hasNot []string
	}{
		"a viewer": {viewer, []string{"There is none yet", "ada", "operator", ">5</td>"},
			[]string{page + "/quota", page + "/give", page + "/take"}},
		"an administrator of the project": {administrator, []string{page + "/give", page + "/take"},
			[]string{page + "/quota"}},
		"an administrator of the server": {root, []string{page + "/give", `name="environments" value="5"`}, nil},
	} {
		w := send(c.as, "GET", page, nil)
		for _, text := range c.has {
			if w.Code != 200 || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: %d, without %q", name, w.Code, text)
			}
		}
		for _, text := range c.hasNot {
			if strings.Contains(w.Body.String(), text) {
				t.Errorf("%s is offered %q", name, text)
			}
		}
		if home := send(c.as, "GET", "/", nil).Body.String(); !strings.Contains(home, `href="`+page+`"`) {
			t.Errorf("%s finds no link to the page", name)
		}
	}
	for name, c := range map[string]struct {
		as         access.Principal
		path, body string
		want       int
	}{
		"an environment's person": {in(access.Administrator, access.Scope{Environment: rich.Sandbox.ID}),
			projectURL(rich.Project.ID), "", 404},
		"another tenant":    {administrator, projectURL(rich.Project.ID), "", 404},
		"a viewer's member": {viewer, page + "/give", give.Encode(), 403},
		"a project's quota": {administrator, page + "/quota", "environments=500", 403},
		"more than one has": {in(access.Role{Name: "half", Verbs: []access.Verb{access.ManageMembers}},
			access.Scope{Project: empty.ID}), page + "/give", "kind=user&name=ada&role=administrator", 403},
		"a role elsewhere":   {administrator, page + "/take", "id=" + elsewhere.ID.String(), 404},
		"no role of anybody": {administrator, page + "/take", "id=nonsense", 404},
	} {
		method := "POST"
		if c.body == "" {
			method = "GET"
		}
		form, _ := url.ParseQuery(c.body)
		if w := send(c.as, method, c.path, form); w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	if w := send(administrator, "POST", page+"/take", url.Values{"id": {grants[0].ID.String()}}); w.Code != 303 {
		t.Error(w.Code, w.Body)
	}
	trail, err := rich.Store.AuditAfter(t.Context(), empty.ID, uuid.Nil, 0, 100)
	if err != nil || len(trail) < 3 || trail[0].Verb != "project.quota" || trail[1].Verb != "project.member" {
		t.Errorf("%+v, %v", trail, err)
	}
}
