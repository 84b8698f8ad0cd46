package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// A newcomer makes a project and an environment, asks for a compile, and finds them in the shapes of version 1 and 2.
func TestFromNothingToACompile(t *testing.T) {
	s := servertest.New(t, servertest.Present)
	c := newClient(t, s)
	project := c.call("PUT", "/api/v2/project", `{"name":"infra"}`, 200).text("data", "id")
	c.call("PUT", "/api/v1/project", `{"name":"infra"}`, 500).says("project with this name already")
	env := c.call("PUT", "/api/v1/environment", `{
		"project_id":"`+project+`","name":"production",
		"repository":"https://git.example.com/model.git","branch":"main"}`, 200).part("environment")
	env.is(project, "project")
	env.is("main", "repo_branch")
	id := env.text("id")
	c.get("/api/v1/project").is(id, "projects", 0, "environments", 0)
	c.get("/api/v2/project").is("production", "data", 0, "environments", 0, "name")
	if w := c.send("HEAD", "/api/v1/notify/"+id, ""); w.Code != 204 {
		t.Errorf("an environment that compiles nothing answers %d", w.Code)
	}
	for _, body := range []string{"", "null", "{}", `{"update":false,"metadata":{"type":"cli","message":"by hand"}}`} {
		s.SetClock(s.Now().Add(time.Second))
		if got := c.call("POST", "/api/v1/notify/"+id, body, 200).at().(map[string]any); len(got) != 0 {
			t.Errorf("notify %q: %v", body, got)
		}
	}
	if w := c.send("HEAD", "/api/v1/notify/"+id, ""); w.Code != 200 {
		t.Errorf("an environment that compiles answers %d", w.Code)
	}
	c.tid = id
	queue := c.get("/api/v1/compilequeue").part("queue")
	if n := len(queue.list()); n != 4 {
		t.Fatalf("%d compiles are in the queue", n)
	}
	queue.is("by hand", 3, "metadata", "message")
	queue.is(false, 3, "force_update")
	queue.is(true, 0, "force_update")
	queue.is("Recompile trigger through API call", 0, "metadata", "message")
	c.call("POST", "/api/v2/environment_settings/server_compile", `{"value":"false"}`, 200)
	c.call("POST", "/api/v1/notify/"+id, "", 200).
		is("Skipping compile because server compile is not enabled for this environment.", "metadata", "warnings", 0)
}

// An environment is made to follow another one, halted, with gates, a tag and a secret, in one call; what is wrong with
// any of that makes nothing.
func TestAnEnvironmentIsMadeWithItsSettings(t *testing.T) {
	c, r := rich(t)
	e := r.Production
	make := func(more string, status int) answer {
		t.Helper()
		return c.call("PUT", "/api/v2/environment", `{"project_id": "`+e.ProjectID.String()+`", "name": "spare",
			"repository": "`+e.Source.URL+`", "branch": "main"`+more+`}`, status)
	}
	make(`, "settings": {"follow": "nobody"}`, 400).says("there is no environment nobody")
	make(`, "settings": {"colour": "red"}`, 400).says("there is no setting colour")
	make(`, "settings": {"follow_soak": "soon"}`, 400).says("follow_soak")
	make(`, "settings": ["follow"]`, 400)
	make(`, "secrets": {"webhook": 7}`, 400).says("the secret webhook must be a text")
	make(`, "secrets": {"colour": "hush"}`, 400).says("there is no secret called colour")
	make(`, "tags": ["Not a tag"]`, 400)
	before := len(c.get("/api/v2/environment").list("data"))
	made := make(`, "subdir": "infra", "halted": true, "tags": ["spare"], "secrets": {"webhook": "hush"},
		"settings": {"follow": "`+e.Name+`", "follow_soak": 3600, "follow_approval": "true", "auto_deploy": null}`,
		200).part("data")
	made.is(true, "halted")
	made.is("spare", "tags", 0)
	made.is(e.Name, "settings", "follow")
	made.is(3600, "settings", "follow_soak")
	made.is(true, "settings", "follow_approval")
	if n := len(c.get("/api/v2/environment").list("data")); n != before+1 {
		t.Errorf("there are %d environments, and there were %d", n, before)
	}
	secrets := c.get("/api/v2/environment/" + made.text("id") + "/secret")
	secrets.is("webhook", "data", 0, "name")
	if text := fmt.Sprint(made.at(), secrets.at()); strings.Contains(text, "hush") {
		t.Errorf("the secret is told: %s", text)
	}
}

// Settings are read, changed, rejected and put back, in both versions.
func TestSettings(t *testing.T) {
	c, _ := rich(t)
	const v1, v2 = "/api/v1/environment_settings/", "/api/v2/environment_settings/"
	const protect = "/api/v2/protected_environment_settings"
	c.get("/api/v2/environment_settings").is(30, "data", "settings", "git_poll_interval")
	c.call("POST", v1+"available_versions_to_keep", `{"value":"42"}`, 200)
	c.get(v1+"available_versions_to_keep").is(42, "value") // the text was converted
	c.call("POST", v2+"available_versions_to_keep", `{"value":"many"}`, 500)
	c.call("POST", v2+"colour", `{"value":"red"}`, 404)
	c.call("DELETE", v2+"available_versions_to_keep", "", 200).is(nil, "data")
	got := c.get(v2 + "available_versions_to_keep")
	got.is(100, "data", "settings", "available_versions_to_keep")
	got.is("bool", "data", "definition", "auto_deploy", "type")
	// What project.yml decides cannot be changed here, and the answer says why.
	c.call("POST", protect, `{"settings":{"recompile_backoff":3},"protected_by":"project.yml"}`, 200)
	c.call("POST", protect, `{"settings":{"recompile_backoff":3},"protected_by":"me"}`, 400)
	c.call("POST", v2+"recompile_backoff", `{"value":1}`, 403).says("decided by project.yml")
	definition := c.get(v2+"recompile_backoff").part("data", "definition")
	definition.is(true, "recompile_backoff", "protected")
	definition.is("project.yml", "recompile_backoff", "protected_by")
	definition.is(false, "auto_deploy", "protected")
	c.call("POST", protect, `{"settings":{},"protected_by":"project.yml"}`, 200)
	c.call("POST", v2+"recompile_backoff", `{"value":1}`, 200)
	c.call("POST", v2+"protected_environment", `{"value":true}`, 200)
	c.call("DELETE", "/api/v2/environment/"+c.tid, "", 403).says("Access denied: ")
	c.call("DELETE", "/api/v2/decommission/"+c.tid, "", 403)
}

// There is no user, and the answer says so as the web console expects it.
func TestCurrentUser(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	c.call("GET", "/api/v2/current_user", "", 404)
	c.get("/api/v2/health").is(nil, "data")
}

// A commit does not compile: its dry run says what is wrong and where, and names the report of the compile.
func TestADryRunOfABrokenCommit(t *testing.T) {
	c, r := rich(t)
	run := intent.DryRun{
		ID: uuid.New(), Environment: r.Production.ID, Date: r.Now(), Commit: "feature", Compile: &r.Failed,
	}
	if err := r.Store.CreateDryRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := r.Store.EndDryRun(t.Context(), r.Production.ID, run.ID, intent.DryRunFailed,
		"the commit could not be compiled: the model has errors", nil, r.Now()); err != nil {
		t.Fatal(err)
	}
	got := c.get("/api/v2/dryrun-report/" + run.ID.String()).part("data")
	got.is("failed", "summary", "state")
	got.is("/api/v2/compilereport/"+r.Failed.String(), "compile_report")
	got.is("error", "diagnostics", 0, "severity")
	for _, part := range []string{"message", "file"} {
		if got.text("diagnostics", 0, part) == "" {
			t.Errorf("there is no %s: %v", part, got.at())
		}
	}
	if line, _ := got.at("diagnostics", 0, "line").(float64); line < 1 {
		t.Errorf("there is no line: %v", got.at())
	}
}
