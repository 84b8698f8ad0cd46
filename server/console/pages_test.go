package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jba/templatecheck"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/servertest"
)

// newConsole returns a console of a server, whose clock it shares.
func newConsole(t *testing.T, s *servertest.Server, change ...func(*Config)) http.Handler {
	t.Helper()
	cfg := Config{
		Control: s.Control, Store: s.Store, Bus: s.Bus, Version: servertest.Version, Logger: s.Log,
		Auth: s.People.Console(), People: s.People, Tokens: s.Tokens, Agents: s.Agents, Now: s.Now,
		Clusters: s.Clusters, Catalogue: s.Catalogue, Resources: s.Resources,
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

// rich returns a server with a history, and a console of it.
func rich(t *testing.T, change ...func(*Config)) (*servertest.Rich, http.Handler) {
	t.Helper()
	r := servertest.NewRich(t)
	return r, newConsole(t, r.Server, change...)
}

// must ends the test when what it prepares fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every template fits the struct that it is rendered with.
func TestTemplatesFitTheirPages(t *testing.T) {
	t.Parallel()
	set, err := parsedTemplates()
	must(t, err)
	pages := map[string]any{
		"login": loginPage{}, "first": firstPage{}, "people": peoplePage{}, "account": accountPage{},
		"token": tokenPage{}, "jointoken": joinTokenPage{}, "leaving": leavingPage{},
		"home": homePage{}, "overview": overviewPage{}, "runs": runsPage{}, "run": runPage{},
		"resources": resourcesPage{}, "resource": resourcePage{}, "versions": versionsPage{}, "version": versionPage{},
		"compare": comparePage{}, "decided": decidedPage{}, "dryrun": dryRunPage{},
		"pulls": pullsPage{}, "pull": pullPage{},
		"logs": logsPage{}, "values": valuesPage{}, "orphans": orphansPage{},
		"drift": driftPage{}, "git": gitPage{}, "deliveries": deliveriesPage{}, "delivery": deliveryPage{},
		"notifications": notificationsPage{}, "agents": agentsPage{}, "executors": executorsPage{},
		"metrics": metricsPage{}, "queue": queuePage{}, "status": statusPage{},
		"settings": settingsPage{}, "clone": clonePage{},
		"search": searchPage{}, "source": sourcePage{}, "keyboard": keyboardPage{},
		"copysettings": copyPage{}, "project": projectPage{}, "audit": auditPage{}, "processes": processesPage{},
		"graph": graphPage{}, "failure": failurePage{}, "clusters": clustersPage{}, "clusters-one": clusterPage{},
		"clusters-job": clusterJobPage{}, "clusters-task": clusterTaskPage{}, "clusters-form": clusterFormPage{},
		"clusters-templates": clusterTemplatesPage{}, "clusters-written": clusterWrittenPage{},
		"clusters-end":       clusterEndPage{},
		"cluster_admin_list": clusterAdminListPage{}, "cluster_admin_entity": clusterAdminEntityPage{},
		"cluster_admin_try": clusterAdminTryPage{}, "cluster_admin_import": clusterAdminImportPage{},
		"cluster_admin_resources": clusterAdminResourcesPage{}, "cluster_admin_tenants": clusterAdminTenantsPage{},
		"cluster_admin_provisioners": clusterAdminProvisionersPage{}, "cluster_admin_token": clusterAdminTokenPage{},
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
	if err := templatecheck.CheckHTML(set["home"].Lookup("environment"), environmentRow{}); err != nil {
		t.Error(err)
	}
	if len(set) != len(pages) {
		t.Errorf("%d templates, %d pages", len(set), len(pages))
	}
}

// Beside each attribute, the page of a resource shows what set it: the line of the model, its commit and its author.
func TestResourcePageShowsOrigins(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	v, err := r.Store.Version(t.Context(), r.Production.ID, 7)
	must(t, err)
	page := ""
	for end := time.Now().Add(time.Minute); ; { // a busy machine may need more than the first visit waits for Git
		page = get(t, h, paths(r)["resource-failed"]).Body.String()
		if !strings.Contains(page, "author being looked up") || time.Now().After(end) {
			break
		}
	}
	for _, want := range []string{
		"Decided", "<span class=\"mono\" title=\"content = page\">main.cf:12</span>", "#L12\" rel=\"noreferrer\">",
		"/source?commit=" + v.Provenance.Commit + "&amp;path=main.cf#L3",
		`<span class="mono">` + short(v.Provenance.Commit) + `</span> Noor Haddad`,
		"in web::site of web::Site[name=shop], made at <a href=",
		"<span class=\"mono\">main.cf:3</span></a> <span class=\"muted\"",
		"computed by File.get_hash at",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if page := get(t, h, paths(r)["resource-healthy"]).Body.String(); strings.Contains(page, "Decided") {
		t.Error("the page of a resource without provenance has a column for it")
	}
}

// The Git page shows which environment is followed, which commit waits and for what, and what was promoted; the page
// of the followed environment shows its followers.
func TestGitPageShowsPromotions(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := get(t, h, paths(r)["git"]).Body.String()
	for _, want := range []string{
		`the environment <a href="/e/` + r.Staging.ID.String() + `">staging</a>`,
		"soak until 16:05 UTC", "4 resources are not compliant: fs::Directory[web01,", "approval of this commit",
		">Approve ddddddd<", ">Promote ddddddd now<", ">Pause promotions<", "version 1<",
		`href="/e/` + r.Production.ID.String() + `/versions/7"`, "&lt;script&gt;alert(",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	page = get(t, h, paths(r)["git-followed"]).Body.String()
	if !strings.Contains(page, "Followed by</dt><dd>production") {
		t.Error("the page of the followed environment does not name its follower")
	}
	_, err := r.Control.RollBack(control.As(t.Context(), "ida", "too early"), r.Staging.ID, 1)
	must(t, err)
	judge(t, r)
	page = get(t, h, paths(r)["git"]).Body.String()
	const idle = "Nothing waits: staging was rolled back to version 1;"
	if !strings.Contains(page, idle) || strings.Contains(page, "Promote ") {
		t.Error("the page does not say why nothing waits")
	}
}

// judge looks at what is deployed in staging, as the loop of production does.
func judge(t *testing.T, r *servertest.Rich) {
	t.Helper()
	production, err := r.Store.Environment(t.Context(), r.Production.ID)
	must(t, err)
	_, err = r.Store.JudgePromotion(t.Context(), production, &r.Staging, "", r.Now())
	must(t, err)
}

// paths are the pages of a rich server.
func paths(r *servertest.Rich) map[string]string {
	env, empty := "/e/"+r.Production.ID.String(), "/e/"+r.Sandbox.ID.String()
	resource := func(id intent.ResourceID) string { return env + "/resource?id=" + url.QueryEscape(id.String()) }
	return map[string]string{
		"home": "/", "overview": env, "empty": empty, "missing": env + "/versions/999",
		"runs": env + "/runs", "run-good": env + "/runs/" + r.Good.String(),
		"run-failed": env + "/runs/" + r.Failed.String(), "run-live": env + "/runs/" + r.Running.String(),
		"empty-runs": empty + "/runs",
		"resources":  env + "/resources", "resources-failed": env + "/resources?status=failed",
		"resources-parked": env + "/resources?status=parked", "resources-none": env + "/resources?value=nothing",
		"empty-resources": empty + "/resources",
		"resource-failed": resource(r.FailedFile), "resource-healthy": resource(r.HealthyDir),
		"resource-parked": resource(r.ParkedFile), "resource-drifted": resource(r.DriftedFile),
		"graph": env + "/graph", "graph-around": env + "/graph?root=" + url.QueryEscape(r.FailedFile.String()),
		"graph-groups": env + "/graph?by=agent,type", "graph-none": env + "/graph?agent=nobody",
		"empty-graph": empty + "/graph",
		"versions":    env + "/versions", "version": env + "/versions/7", "candidate": env + "/versions/8",
		"held": env + "/versions/9", "empty-versions": empty + "/versions",
		"version-filtered": env + "/versions/7?type=fs::File&status=failed",
		"decided":          env + "/versions/7/decided?id=" + url.QueryEscape(r.FailedFile.String()),
		"compare":          env + "/compare?from=6&to=7", "dryrun": env + "/dryruns/" + r.DryRun.String(),
		"deliveries": env + "/deliveries", "delivery": env + "/deliveries/" + r.Delivery.String(),
		"empty-deliveries": empty + "/deliveries",
		"git":              env + "/git", "empty-git": empty + "/git",
		"git-followed": "/e/" + r.Staging.ID.String() + "/git",
		"drift":        env + "/drift", "drift-open": env + "/drift?ending=open", "empty-drift": empty + "/drift",
		"logs": env + "/logs", "logs-none": env + "/logs?text=nothing", "empty-logs": empty + "/logs",
		"logs-of":      env + "/logs?resource=" + url.QueryEscape(r.FailedFile.String()) + "&level=ERROR",
		"logs-earlier": env + "/logs?before=2100-01-01",
		"facts":        env + "/facts", "empty-facts": empty + "/facts", "facts-none": env + "/facts?name=nothing",
		"parameters": env + "/parameters", "empty-parameters": empty + "/parameters",
		"orphans": env + "/orphans", "empty-orphans": empty + "/orphans",
		"agents": env + "/agents", "empty-agents": empty + "/agents",
		"notifications": env + "/notifications", "notifications-all": env + "/notifications?show=all",
		"empty-notifications": empty + "/notifications",
		"pulls":               env + "/pulls", "pull": env + "/pulls/7", "pull-strange": env + "/pulls/12",
		"empty-pulls": empty + "/pulls",
		"processes":   env + "/processes", "processes-dead": "/e/" + r.Staging.ID.String() + "/processes",
		"processes-server": "/processes", "empty-processes": empty + "/processes",
		"queue": env + "/queue", "queue-agent": env + "/queue?agent=web01",
		"metrics": env + "/metrics", "metrics-month": env + "/metrics?range=month",
		"executors": env + "/executors", "empty-executors": empty + "/executors", "settings": env + "/settings",
		"project": "/projects/" + r.Project.ID.String(),
		"clone":   env + "/clone", "copy-settings": env + "/settings/copy?from=" + r.Staging.ID.String(),
		"clusters": env + "/clusters", "new-cluster": env + "/new-cluster",
		"status": "/status", "search": "/search?q=s", "search-env": "/search?q=s&env=" + r.Production.ID.String(),
		"search-none": "/search?q=%3Cscript%3Ealert(1)&env=" + r.Production.ID.String(),
		"keyboard":    "/keyboard", "keyboard-env": env + "/keyboard",
	}
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// Every page renders completely, and escapes all text of models, handlers and forges.
func TestEveryPageRenders(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
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
			t.Errorf("%s is incomplete", name)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
			t.Errorf("%s: hostile text became markup", name)
		}
		if strings.Contains(body, "s3cret") {
			t.Errorf("%s shows a secret", name)
		}
	}
}

// An environment whose newest commit does not compile says so, even when everything that is deployed is as intended.
func TestAFailedRunIsNotHiddenByAGoodState(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Present)
	h := newConsole(t, s)
	env := newEnvironmentIn(t, s, intent.Source{URL: servertest.RepositoryURL})
	id := intent.ResourceID{Type: "fs::File", Agent: "web01", Attribute: "path", Value: "/etc/motd"}
	number := compileIn(t, s, env, "4c81d20", id)
	must(t, s.Control.Release(t.Context(), env, number))
	at := s.Now()
	must(t, s.Store.FinishActions(t.Context(), env, []intent.FinishedAction{{
		Action: intent.Action{
			ID: uuid.New(), Environment: env, Kind: intent.ActionDeploy, Resource: id, Version: number,
			Started: at, Finished: &at, Status: intent.StatusDeployed,
		},
		State: intent.ResourceState{
			ID: id, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			LastRunAt: &at, LastSuccess: &at, LastDeployed: number, DeployedHash: "1", IntentHash: "1",
		},
	}}))
	compileIn(t, s, env, "9f03ab1")
	body := get(t, h, envURL(env)).Body.String()
	for _, want := range []string{
		"The one resource is as intended.", "failed on 9f03ab1", "version 1 stays active",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	compileIn(t, s, env, "d7713fe", id)
	if strings.Contains(get(t, h, envURL(env)).Body.String(), "stays active") {
		t.Error("the warning is still there after a later run that went well")
	}
}

// newEnvironmentIn makes an environment in a project of its own.
func newEnvironmentIn(t *testing.T, s *servertest.Server, source intent.Source) intent.EnvironmentID {
	t.Helper()
	project, err := s.Control.CreateProject(t.Context(), intent.Project{Name: "shop"})
	must(t, err)
	e, err := s.Control.CreateEnvironment(t.Context(), control.NewEnvironment{
		Environment: intent.Environment{ProjectID: project.ID, Name: "live", Source: source},
	})
	must(t, err)
	return e.ID
}

// compileIn records the compile of a commit, a second after what was recorded last. It makes a version of these
// resources and returns its number; without resources, the compile fails.
func compileIn(
	t *testing.T, s *servertest.Server, env intent.EnvironmentID, commit string, resources ...intent.ResourceID,
) (number int) {
	t.Helper()
	ctx, at := t.Context(), s.Now().Add(time.Second)
	s.SetClock(at)
	run := intent.Compile{ID: uuid.New(), Environment: env, Requested: at, Update: true, Export: true}
	must(t, s.Store.EnqueueCompile(ctx, run))
	_, err := s.Store.StartCompile(ctx, env, at)
	must(t, err)
	revision := intent.Revision{Commit: commit + strings.Repeat("0", 33), Branch: "main", Author: "Ida", Time: at}
	must(t, s.Store.SetCompileRevision(ctx, run.ID, revision))
	end := intent.CompileEnd{Success: len(resources) > 0, At: at.Add(time.Second)}
	if end.Success {
		v := intent.NewVersion{Environment: env}
		v.Provenance = intent.Provenance{Compile: run.ID, Commit: revision.Commit}
		for _, id := range resources {
			v.Resources = append(v.Resources, intent.Resource{
				ID: id, Attributes: json.RawMessage(`{"purged": false}`), AttributeHash: "1",
			})
		}
		number, err = s.Store.StoreVersion(ctx, v, at)
		must(t, err)
		end.Version = &number
	}
	must(t, s.Store.FinishCompile(ctx, run.ID, end))
	s.SetClock(end.At)
	return number
}

// While no process carries out work, every page says so: what it shows stands still.
func TestPagesSayThatNothingIsCarriedOut(t *testing.T) {
	t.Parallel()
	idle := false
	r, h := rich(t, func(c *Config) { c.Idle = func() bool { return idle } })
	const says = "No server process carries out work"
	env := "/e/" + r.Production.ID.String()
	for _, path := range []string{"/", env, env + "/resources"} {
		for _, idle = range []bool{false, true} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), says) != idle {
				t.Errorf("%s while idle is %v: %d, it says so: %v", path, idle, w.Code, !idle)
			}
		}
	}
}
