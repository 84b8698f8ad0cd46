package api

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/servertest"
)

// Ida administers the server and gives a project one environment more than it has; Noor, who administers the project,
// may look at the quota but not raise it. The second environment that Noor makes is refused with all that they need to
// know, and the trail has what the quota was and is.
func TestQuotasOverTheAPI(t *testing.T) {
	rich := servertest.NewRich(t)
	who := &caller{}
	rest, err := New(Config{
		Control: rich.Control, Store: rich.Store, Version: servertest.Version, Logger: rich.Log, Now: rich.Now,
		Auth: who, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		Audit: &audit.Recorder{Store: rich.Store, Logger: rich.Log, Now: rich.Now},
	})
	if err != nil {
		t.Fatal(err)
	}
	ida := person("ida", access.Binding{Role: access.Administrator})
	noor := person("noor", access.Binding{Role: access.Administrator, Scope: access.Scope{Project: rich.Project.ID}})
	send := func(as access.Principal, method, path, body string, want int) string {
		t.Helper()
		who.Principal = as
		r := httptest.NewRequest(method, path, bytes.NewBufferString(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if rest.ServeHTTP(w, r); w.Code != want {
			t.Fatalf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
		}
		return w.Body.String()
	}
	path := "/api/v2/project/" + rich.Project.ID.String() + "/quota"
	environments, err := rich.Store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range environments {
		if e.ProjectID == rich.Project.ID {
			n++
		}
	}
	send(ida, "PUT", path, `{"disk": 1}`, 200)
	send(ida, "PUT", path, fmt.Sprintf(`{"environments": %d, "resources": null}`, n+1), 200)
	send(ida, "PUT", path, `{"environments": -1}`, 400)
	got, want := send(noor, "GET", path, "", 200), fmt.Sprintf(`{"name":"environments","use":%d,"limit":%d}`, n, n+1)
	if !strings.Contains(got, want) ||
		!strings.Contains(got, `"name":"disk"`) ||
		strings.Count(got, `"limit":null`) != 4 {
		t.Errorf("%s, without %s", got, want)
	}
	send(noor, "PUT", path, `{"environments": 100}`, 403)
	create := func(name string, want int) string {
		return send(noor, "PUT", "/api/v2/environment",
			fmt.Sprintf(`{"project_id": %q, "name": %q}`, rich.Project.ID, name), want)
	}
	create("more", 200)
	refusal := create("too many", 403)
	for _, word := range []string{fmt.Sprintf("a quota of %d for environments", n+1), "administrator of the server"} {
		if !strings.Contains(refusal, word) {
			t.Errorf("the refusal does not say %q: %s", word, refusal)
		}
	}
	trail, err := rich.Store.AuditAfter(t.Context(), rich.Project.ID, uuid.Nil, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range trail {
		said = append(
			said,
			strings.Join([]string{e.Actor, e.Verb, string(e.Before), string(e.After), string(e.Outcome)}, " "),
		)
	}
	text := strings.Join(said, "\n")
	for _, line := range []string{
		fmt.Sprintf(`ida project.quota {"disk":1} {"environments":%d} done`, n+1), "noor project.quota   refused",
		"noor environment.create   refused",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the trail does not say %q:\n%s", line, text)
		}
	}
}
