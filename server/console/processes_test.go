package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// Somebody sees in an environment what died and why, retries it, and cancels it; who may only look has no buttons and
// cannot do it by hand, and nobody reaches the processes of another environment. The audit trail tells.
func TestProcesses(t *testing.T) {
	t.Parallel()
	rich := servertest.NewRich(t)
	who := &caller{}
	h, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	must(t, err)
	as := func(role access.Role, scope access.Scope) {
		who.Principal = access.Principal{
			Kind: access.Person, Name: "noor", Bindings: []access.Binding{{Role: role, Scope: scope}},
		}
	}
	here := access.Scope{Project: rich.Project.ID}
	page := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	post := func(path string, id int64) int {
		form := url.Values{"id": {strconv.FormatInt(id, 10)}}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	state := func() intent.ProcessState {
		t.Helper()
		p, err := rich.Store.Process(t.Context(), rich.Staging.ID, rich.Dead)
		must(t, err)
		return p.State
	}
	staging, production := envURL(rich.Staging.ID)+"/processes", envURL(rich.Production.ID)+"/processes"

	as(access.Viewer, here)
	_, body := page(staging)
	for _, want := range []string{
		"One is dead", "pager.call", "its attempts ran out", "the pager answered 500 &lt;script&gt;", "by ida",
		"1 of 1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(body, ">Retry<") || strings.Contains(body, "<script>alert") {
		t.Error("a viewer has buttons, or text became markup")
	}
	if _, body := page(production); strings.Contains(body, "pager.call") || !strings.Contains(body, "forge.send") ||
		!strings.Contains(body, "waits for a worker") {
		t.Error("the page of production does not show what waits there, and nothing else")
	}
	if _, body := page(staging + "?state=waiting&name=pager"); !strings.Contains(body, "No process matches this") {
		t.Error("the filter does not work")
	}
	if code := post(staging+"/retry", rich.Dead); code != http.StatusForbidden || state() != intent.ProcessDead {
		t.Errorf("a viewer retries: %d, %s", code, state())
	}
	if code, _ := page("/processes"); code != http.StatusForbidden {
		t.Errorf("a viewer sees the processes of the server: %d", code)
	}

	as(access.Operator, here)
	if _, body := page(staging); !strings.Contains(body, ">Retry<") || !strings.Contains(body, ">Cancel<") {
		t.Error("an operator has no buttons")
	}
	if code := post(production+"/retry", rich.Dead); code != http.StatusNotFound || state() != intent.ProcessDead {
		t.Errorf("the process of another environment is retried: %d, %s", code, state())
	}
	if code := post(staging+"/retry", rich.Dead); code != http.StatusSeeOther || state() != intent.ProcessWaiting {
		t.Errorf("retry: %d, %s", code, state())
	}
	if code := post(staging+"/cancel", rich.Dead); code != http.StatusSeeOther || state() != intent.ProcessCancelled {
		t.Errorf("cancel: %d, %s", code, state())
	}
	if code := post("/processes/cancel", rich.Process); code != http.StatusForbidden {
		t.Errorf("an operator cancels any process: %d", code)
	}

	as(access.Administrator, access.Scope{})
	if code, body := page("/processes"); code != http.StatusOK || !strings.Contains(body, "pager.call") ||
		!strings.Contains(body, "forge.send") || !strings.Contains(body, ">"+rich.Staging.Name+"<") {
		t.Errorf("the page of the server: %d", code)
	}
	if code := post("/processes/cancel", rich.Process); code != http.StatusSeeOther {
		t.Errorf("an administrator cancels: %d", code)
	}
	trail, err := rich.Store.Audit(t.Context(), rich.Project.ID, rich.Staging.ID, intent.ListQuery{
		Filters: map[string][]string{"verb": {string(access.ManageProcesses)}}, Sort: "at",
	})
	must(t, err)
	var told []string
	for _, e := range trail.Items {
		told = append(told, e.Actor+" "+string(e.Outcome)+" "+string(e.Before)+"→"+string(e.After))
	}
	want := `noor refused →, noor done "dead"→"waiting", noor done "waiting"→"cancelled"`
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("the trail has\n%s\nwant\n%s", got, want)
	}
}
