package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/api/apitest"
)

// post sends a form as a page of the console would.
func post(h http.Handler, path string, values url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Each button does its verb and leads to a page that says so.
func TestButtonsDoTheirVerbs(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	env := "/e/" + r.Production.ID.String()
	for _, b := range []struct {
		path   string
		values url.Values
		verb   string
	}{
		{"/compile", nil, "compile update=true by console"},
		{"/deploy", nil, "deploy full=false "},
		{"/deploy", url.Values{"full": {"yes"}, "agent": {"web03"}}, "deploy full=true web03"},
		{"/resource/deploy", url.Values{"id": {r.FailedFile.String()}}, "deploy " + r.FailedFile.String()},
		{"/resource/unpark", url.Values{"id": {r.ParkedFile.String()}}, "unpark " + r.ParkedFile.String()},
		{"/resource/unpark", url.Values{"all": {"yes"}}, "unpark "},
		{"/agents/pause", url.Values{"agent": {"web01"}, "pause": {"yes"}}, "pause web01"},
		{"/agents/pause", url.Values{"agent": {"web01"}}, "unpause web01"},
		{"/versions/8/release", nil, "release 8"},
		{"/versions/9/confirm", url.Values{"by": {"ida"}, "reason": {"the east site closes"}}, "release 9"},
		{"/notifications", url.Values{"id": {r.Production.Notices[1].ID.String()}}, "read true"},
		{"/notifications", url.Values{"id": {r.Production.Notices[1].ID.String()}, "clear": {"yes"}}, "cleared true"},
		{"/notifications", url.Values{"all": {"yes"}}, "read all"},
		{"/versions/7/dryrun", nil, "dryrun 7"},
		{"/versions/7/dryrun", url.Values{"id": {r.FailedFile.String()}}, "dryrun 7"},
		{"/dryruns", url.Values{"commit": {"feature"}}, "dryrun feature"},
		{"/resource/facts", url.Values{"id": {r.FailedFile.String()}}, "facts " + r.FailedFile.String()},
		{"/settings/secret", url.Values{"name": {"webhook"}, "value": {"x"}}, "secret webhook"},
		{"/settings/secret", url.Values{"name": {"git-password"}, "value": {"x"}, "for": {"project"}}, "project secret git-password"},
		{"/settings/secret", url.Values{"variable": {"API_TOKEN"}, "value": {"x"}}, "secret variable:API_TOKEN"},
		{"/override", url.Values{"by": {"ann"}, "reason": {"the fix cannot wait"}, "minutes": {"60"}, "agents": {"web*, db"}}, "override by ann"},
		{"/git/accept", url.Values{"commit": {r.Production.Git.Commit}, "by": {"ann"}, "reason": {"history was cleaned"}}, "accept " + r.Production.Git.Commit},
		{"/git/unblock", url.Values{"commit": {r.Production.Blocks[0].Commit}, "by": {"ann"}, "reason": {"it was the network"}}, "unblock " + r.Production.Blocks[0].Commit},
		{"/rollback", url.Values{"by": {"ann"}, "reason": {"the shop is down"}}, "rollback 0"},
		{"/rollback", url.Values{"version": {"6"}, "by": {"ann"}, "reason": {"the shop is down"}}, "rollback 6"},
		{"/promote/approve", url.Values{"commit": {r.Production.Follow.Promotions[0].Commit}, "by": {"ann"}, "reason": {"well"}}, "approve promotion " + r.Production.Follow.Promotions[0].Commit},
		{"/promote/pause", url.Values{"by": {"ann"}, "reason": {"the fair"}}, "pause promotions"},
		{"/promote/resume", url.Values{"by": {"ann"}, "reason": {"it is over"}}, "resume promotions"},
		{"/promote", url.Values{"commit": {r.Production.Follow.Promotions[0].Commit}, "by": {"ann"}, "reason": {"it cannot wait"}}, "promote " + r.Production.Follow.Promotions[0].Commit},
		{"/halt", nil, "halt"},
		{"/resume", nil, "resume"},
	} {
		w := post(h, env+b.path, b.values)
		if w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", b.path, w.Code, w.Body)
			continue
		}
		verbs := r.Verbs()
		if len(verbs) == 0 || verbs[len(verbs)-1] != b.verb {
			t.Errorf("%s: %v, want %q", b.path, verbs, b.verb)
		}
		if next := get(t, h, w.Header().Get("Location")); next.Code != http.StatusOK {
			t.Errorf("%s leads to %s: %d", b.path, w.Header().Get("Location"), next.Code)
		}
	}
}

// A form of another site does nothing.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
		w := post(h, "/e/"+r.Production.ID.String()+"/halt", nil, headers...)
		if w.Code != http.StatusForbidden || len(r.Verbs()) != 0 {
			t.Errorf("%v: %d %v", headers, w.Code, r.Verbs())
		}
	}
}

// A form may lead back to a page of the console, never elsewhere, and an
// address cannot put words into a page.
func TestRedirectsStayAtHome(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	for _, evil := range []string{"https://evil.example/", "//evil.example/", `/\evil.example/`, "javascript:alert(1)", "evil", "/%0d%0aX: y"} {
		w := post(h, "/e/"+r.Production.ID.String()+"/halt", url.Values{"back": {evil}})
		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") ||
			strings.Contains(location, "evil") {
			t.Errorf("%q leads to %q", evil, location)
		}
	}
	w := post(
		h,
		"/e/"+r.Production.ID.String()+"/halt",
		url.Values{"back": {"/e/" + r.Production.ID.String() + "/agents?start=a&first=b"}},
	)
	if got := w.Header().Get("Location"); !strings.Contains(got, "/agents?") || !strings.Contains(got, "start=a") ||
		!strings.Contains(got, "done=halted") {
		t.Errorf("back: %q", got)
	}
	if body := get(t, h, "/?done=You+were+hacked").Body.String(); strings.Contains(body, "hacked") {
		t.Error("an address put words into a page")
	}
}

// Harm needs the name typed; a protected environment does not even ask.
func TestHarmNeedsTheName(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	env := "/e/" + r.Production.ID.String()
	for _, what := range []string{"clear", "delete"} {
		if w := post(h, env+"/settings/"+what, url.Values{"confirm": {"prod"}}); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), "nothing was done") {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
	if len(r.Verbs()) != 0 {
		t.Fatalf("%v", r.Verbs())
	}
	post(h, env+"/settings/set", url.Values{"name": {"protected_environment"}, "value": {"true"}})
	if body := get(t, h, env+"/settings").Body.String(); strings.Contains(body, "confirm-delete") {
		t.Error("a protected environment offers to delete itself")
	}
	if w := post(h, env+"/settings/delete", url.Values{"confirm": {"production"}}); w.Code != http.StatusForbidden {
		t.Errorf("protected: %d", w.Code)
	}
	post(h, env+"/settings/set", url.Values{"name": {"protected_environment"}, "reset": {"yes"}})
	if w := post(h, env+"/settings/delete", url.Values{"confirm": {"production"}}); w.Code != http.StatusSeeOther {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
	if get(t, h, env).Code != http.StatusNotFound {
		t.Error("the environment is still there")
	}
}

// A refused form keeps what was typed, but not the secrets.
func TestARefusedFormKeepsWhatWasTyped(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	values := url.Values{
		"project":      {"infra"},
		"name":         {"production"},
		"repository":   {"https://git.example.com/x.git"},
		"git-password": {"hunter2"},
	}
	w := post(h, "/environments", values)
	body := w.Body.String()
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `value="https://git.example.com/x.git"`) ||
		!strings.Contains(body, "exists already") ||
		strings.Contains(body, "hunter2") {
		t.Errorf("%d %s", w.Code, body)
	}
	values.Set("name", "preview")
	w = post(h, "/environments", values)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if verbs := r.Verbs(); len(verbs) != 1 || verbs[0] != "compile update=true by console" {
		t.Errorf("a new environment is compiled at once: %v", verbs)
	}
}

// Every answer says that nothing inline may run and nobody may frame it; the
// style and the script are kept for ever under a name of their content.
func TestHeaders(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	w := get(t, h, "/")
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy: %s", policy)
	}
	body := w.Body.String()
	for _, inline := range []string{" style=", "<style", "onclick", "<script>"} {
		if strings.Contains(body, inline) {
			t.Errorf("the page has %s", inline)
		}
	}
	_, rest, _ := strings.Cut(body, `<script defer src="`)
	script, _, _ := strings.Cut(rest, `"`)
	w = get(t, h, script)
	if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
		!strings.Contains(w.Header().Get("Content-Type"), "javascript") {
		t.Errorf("%s: %d %v", script, w.Code, w.Header())
	}
	if get(t, h, "/static/../console.go").Code == 200 || get(t, h, "/static/console.js").Code != 404 {
		t.Error("a file is served that should not be")
	}
}

// The search box goes to what was named.
func TestSearch(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	env := r.Production.ID.String()
	for text, want := range map[string]string{
		"7": "/versions/7", "v8": "/versions/8", "4c81d20": "/versions/7", "99": "/resources?value=99", "site-023": "/resources?value=site-023",
		r.FailedFile.String(): "/resource?id=", r.FailedFile.AtVersion(6): "/resource?id=", "": "/resources", "deadbeef": "/resources?value=deadbeef",
	} {
		w := get(t, h, "/search?"+url.Values{"env": {env}, "q": {text}}.Encode())
		if got := w.Header().Get("Location"); !strings.HasPrefix(got, "/e/"+env+want) {
			t.Errorf("%q leads to %s", text, got)
		}
	}
	if got := get(t, h, "/search?q=stag").Header().Get("Location"); got != "/e/"+r.Staging.ID.String() {
		t.Errorf("an environment by name: %s", got)
	}
	if w := get(t, h, "/search?q=nobody"); w.Code != http.StatusNotFound {
		t.Errorf("nobody: %d", w.Code)
	}
}

// The pages of a list hold every row once.
func TestListsArePagedToTheEnd(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	for _, sort := range []string{"", "?sort=status.desc", "?sort=resource_id_value.asc", "?agent=web0&sort=agent.desc"} {
		next, seen := "/e/"+r.Production.ID.String()+"/resources"+sort, map[string]bool{}
		for next != "" {
			body := get(t, h, next).Body.String()
			for _, part := range strings.Split(body, `href="/e/`+r.Production.ID.String()+`/resource?id=`)[1:] {
				id, _, _ := strings.Cut(part, `"`)
				if seen[id] {
					t.Fatalf("%s: %s twice", sort, id)
				}
				seen[id] = true
			}
			_, rest, more := strings.Cut(body, `rel="next" href="`)
			next = ""
			if more {
				next, _, _ = strings.Cut(rest, `"`)
				next = strings.ReplaceAll(next, "&amp;", "&")
			}
		}
		want := 204
		if strings.Contains(sort, "agent=web0") {
			want = 204 - 20 // web10 has twenty
		}
		if len(seen) != want {
			t.Errorf("%s: %d rows, want %d", sort, len(seen), want)
		}
	}
}
