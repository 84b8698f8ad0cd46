package console

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// A halt in the console, with a reason, is on the page of the audit trail and in its export, with the person's name.
func TestAuditTrail(t *testing.T) {
	rich := servertest.NewRich(t)
	who := &caller{access.Principal{Kind: access.Person, Name: "noor", Bindings: []access.Binding{
		{Role: access.Administrator, Scope: access.Scope{Project: rich.Project.ID}},
	}}}
	h, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People,
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
	if w := ask(http.MethodPost, base+"/halt", ""); w.Code != http.StatusSeeOther {
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
