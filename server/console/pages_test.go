package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jba/templatecheck"

	"ordain.dev/ordain/api/apitest"
)

// present is the present of the tests that compare pages.
var present = time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)

func newConsole(t *testing.T, c Control, change ...func(*Config)) http.Handler {
	t.Helper()
	cfg := Config{
		Control: c,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now:     func() time.Time { return present },
	}
	for _, f := range change {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Every template is checked against the struct that it gets.
func TestTemplatesFitTheirPages(t *testing.T) {
	set, err := parseTemplates(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]any{
		"home": homePage{}, "overview": overviewPage{}, "runs": runsPage{}, "run": runPage{}, "resources": resourcesPage{},
		"resource": resourcePage{}, "versions": versionsPage{}, "version": versionPage{}, "compare": comparePage{},
		"dryrun": dryRunPage{}, "pulls": pullsPage{}, "pull": pullPage{}, "drift": driftPage{}, "git": gitPage{}, "deliveries": deliveriesPage{}, "delivery": deliveryPage{}, "notifications": notificationsPage{}, "agents": agentsPage{}, "executors": executorsPage{}, "settings": settingsPage{}, "failure": failurePage{},
	}
	for name, data := range pages {
		if set[name] == nil {
			t.Errorf("there is no template for %s", name)
			continue
		}
		if err := templatecheck.CheckHTML(set[name].Lookup("layout"), data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(set) != len(pages) {
		t.Errorf("%d templates, %d pages", len(set), len(pages))
	}
}

// The page of a resource says beside each attribute who decided it: the line,
// the commit and its author, whose name cannot do anything to the page.
func TestTheResourcePageSaysWhoDecided(t *testing.T) {
	r := apitest.NewRich(present)
	page := get(t, newConsole(t, r), paths(r)["resource-failed"]).Body.String()
	for _, want := range []string{
		"Decided", "set at <span class=\"mono\" title=\"content = page\">main.cf:12</span>", "1a2b3c4", "Noor &lt;b&gt;Haddad",
		"in web::site of web::Site[name=shop], made at <span class=\"mono\">main.cf:3</span> <span class=\"muted\"", "computed by File.get_hash at",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if page := get(t, newConsole(t, r), paths(r)["resource-healthy"]).Body.String(); strings.Contains(page, "Decided") {
		t.Error("the page of a resource without provenance has a column for it")
	}
}

// The page Git says what an environment follows, what waits and for what, and
// what was promoted; the page of the one that is followed says by whom.
func TestTheGitPageShowsTheChain(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	page := get(t, h, paths(r)["git"]).Body.String()
	for _, want := range []string{
		`the environment <a href="/e/` + r.Staging.ID.String() + `">` + r.Staging.Name + `</a>`,
		"soak until 16:05 UTC", "3 resources are not compliant: &lt;b&gt;", "no drift is open", "approval of this commit",
		">Approve ddddddd<", ">Promote ddddddd now<", ">Pause promotions<", "version 12", `href="/e/` + r.Production.ID.String() + `/versions/7"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if page := get(t, h, paths(r)["empty-git"]).Body.String(); r.Staging.Source.URL != "" &&
		!strings.Contains(page, "Followed by") {
		t.Error("the page of the environment that is followed does not say so")
	}
	r.Do(func() {
		r.Production.Follow.Promotions, r.Production.Follow.Idle = nil, "staging was rolled back to version 3"
	})
	if page := get(t, h, paths(r)["git"]).Body.String(); !strings.Contains(
		page,
		"Nothing waits: staging was rolled back to version 3.",
	) ||
		strings.Contains(page, "Promote ") {
		t.Error("the page does not say why nothing waits")
	}
}

// paths are the pages of a rich server.
func paths(r *apitest.Rich) map[string]string {
	env := "/e/" + r.Production.ID.String()
	return map[string]string{
		"home": "/", "overview": env, "runs": env + "/runs", "run-good": env + "/runs/" + r.Good.String(),
		"run-failed": env + "/runs/" + r.Failed.String(), "run-live": env + "/runs/" + r.Running.String(),
		"resources": env + "/resources", "resources-failed": env + "/resources?status=failed", "resources-none": env + "/resources?value=nothing",
		"resource-failed":  env + "/resource?id=" + url.QueryEscape(r.FailedFile.String()),
		"resource-healthy": env + "/resource?id=" + url.QueryEscape(r.HealthyDir.String()),
		"versions":         env + "/versions", "version": env + "/versions/7", "candidate": env + "/versions/8",
		"compare": env + "/compare?from=6&to=7", "dryrun": env + "/dryruns/" + r.DryRunID.String(),
		"deliveries": env + "/deliveries", "delivery": env + "/deliveries/" + r.Hook.String(), "empty-deliveries": "/e/" + r.Staging.ID.String() + "/deliveries",
		"git": env + "/git", "empty-git": "/e/" + r.Staging.ID.String() + "/git",
		"drift": env + "/drift", "drift-open": env + "/drift?ending=open", "empty-drift": "/e/" + r.Staging.ID.String() + "/drift",
		"resources-parked": env + "/resources?status=parked", "resource-parked": env + "/resource?id=" + url.QueryEscape(r.ParkedFile.String()),
		"resource-drifted": env + "/resource?id=" + url.QueryEscape(r.DriftedFile.String()),
		"agents":           env + "/agents", "settings": env + "/settings", "empty": "/e/" + r.Staging.ID.String(),
		"empty-runs": "/e/" + r.Staging.ID.String() + "/runs", "empty-resources": "/e/" + r.Staging.ID.String() + "/resources",
		"empty-versions": "/e/" + r.Staging.ID.String() + "/versions", "empty-agents": "/e/" + r.Staging.ID.String() + "/agents",
		"held": env + "/versions/9", "notifications": env + "/notifications", "notifications-all": env + "/notifications?show=all",
		"empty-notifications": "/e/" + r.Staging.ID.String() + "/notifications",
		"pulls":               env + "/pulls", "pull": env + "/pulls/7", "pull-strange": env + "/pulls/12", "empty-pulls": "/e/" + r.Staging.ID.String() + "/pulls",
		"executors": env + "/executors", "empty-executors": "/e/" + r.Staging.ID.String() + "/executors",
		"missing": "/e/" + r.Production.ID.String() + "/versions/999",
	}
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// Every page renders, is whole, and lets no text of a model or a handler
// become markup.
func TestEveryPageRenders(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	for name, path := range paths(r) {
		w := get(t, h, path)
		want := http.StatusOK
		if name == "missing" {
			want = http.StatusNotFound
		}
		body := w.Body.String()
		if w.Code != want {
			t.Errorf("%s: %d\n%s", name, w.Code, body)
		}
		if !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s is not whole", name)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
			t.Errorf("%s: hostile text became markup", name)
		}
		if strings.Contains(body, "s3cret") {
			t.Errorf("%s shows a secret", name)
		}
	}
}

// An environment whose newest commit does not compile says so, even when all
// that is deployed is as intended.
func TestAFailedRunIsNotHiddenByAGoodState(t *testing.T) {
	r := apitest.NewRich(present)
	r.Production.Rows = r.Production.Rows[:1]
	h := newConsole(t, r)
	path := "/e/" + r.Production.ID.String()
	body := get(t, h, path).Body.String()
	for _, want := range []string{"The one resource is as intended.", "failed on 9f03ab1", "version 7 stays the intent"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	r.Do(func() { runIn(r).Completed, runIn(r).Success = new(present), new(true) })
	if strings.Contains(get(t, h, path).Body.String(), "stays the intent") {
		t.Error("a good run after the failed one does not clear it")
	}
}
