package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/provider/providertest"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/servertest"
)

const here = "https://ordain.example.org" // the address of servers of tests

// withJobs returns a client of a server and an issuer of CI jobs that administrators of a project may trust. Petra is
// one.
func withJobs(t *testing.T) (*client, *servertest.Rich, *providertest.Jobs) {
	t.Helper()
	_, r := withPeople(t)
	jobs := providertest.NewJobs(t)
	r.ConfigureTokens(t, func(c *tokens.Config) { c.Issuers = []string{jobs.URL} })
	r.AddPerson(t, "petra", access.Binding{Role: access.Administrator, Scope: access.Scope{Project: r.Project.ID}})
	c := newClient(t, r.Server, func(cfg *Config) { cfg.Audit = &audit.Recorder{Store: r.Store, Logger: r.Log} })
	c.tid = r.Production.ID.String()
	return c, r, jobs
}

func (c *client) exchange(identity string, status int) string {
	c.t.Helper()
	a := c.call("POST", "/api/v2/token/exchange", fmt.Sprintf(`{"token": %q}`, identity), status)
	if status != 200 {
		return ""
	}
	return a.text("data", "token")
}

// A job of the trusted repository exchanges its identity token for one of this server, works with its role where the
// trust says, and loses the token when the trust ends. Jobs of other repositories, branches and issuers, and tokens for
// somebody else, get nothing.
func TestTrustInCIJobs(t *testing.T) {
	c, r, jobs := withJobs(t)
	petra := c.as("petra")
	path := "/api/v2/project/" + r.Project.ID.String() + "/trust"
	body := fmt.Sprintf(`{"name": "deploy", "issuer": %q, "role": "operator", "environment": %q, "lifetime": 600,
		"claims": {"repository": "acme/infra", "ref": "refs/heads/release/*"}}`, jobs.URL, c.tid)
	id := petra.call("POST", path, body, 200).text("data", "id")
	good := jwt.MapClaims{
		"aud": here, "sub": "repo:acme/infra:ref:refs/heads/release/1", "repository": "acme/infra",
		"ref": "refs/heads/release/1",
	}
	with := func(name string, value any) string {
		claims := jwt.MapClaims{}
		for k, v := range good {
			claims[k] = v
		}
		claims[name] = value
		return jobs.Token(claims)
	}
	good["pipeline"] = strings.Repeat("x", 6000) // those of GitLab are long
	text := c.exchange(jobs.Token(good), 200)
	job := c.bearing(text)
	job.get("/api/v2/environment/" + c.tid)
	job.call("POST", "/api/v2/actions/environment/halt", "", 200)
	job.call("DELETE", "/api/v2/environment/"+c.tid, "", 403)
	job.call("GET", "/api/v2/environment/"+r.Sandbox.ID.String(), "", 404)
	job.call("POST", "/api/v2/token", `{"name": "x", "roles": ["viewer"], "expire": 60}`, 403)
	petra.get(path).is("deploy", "data", 0, "name")
	if petra.get(path).at("data", 0, "last_used") == nil {
		t.Error("nobody can see that the trust was used")
	}
	for name, identity := range map[string]string{
		"another repository":     with("repository", "eve/infra"),
		"another branch":         with("ref", "refs/heads/main"),
		"a branch with a slash":  with("ref", "refs/heads/release/1/x"),
		"a list":                 with("repository", []string{"acme/infra"}),
		"another audience":       with("aud", "https://somebody.example.org"),
		"another issuer":         with("iss", "https://eve.example.org"),
		"expired":                with("exp", time.Now().Add(-time.Hour).Unix()),
		"not yet":                with("nbf", time.Now().Add(time.Hour).Unix()),
		"nothing":                "",
		"no token":               "a.b.c",
		"too long":               with("repository", strings.Repeat("x", 20_000)),
		"of another key":         signedByEve(t, jobs, good),
		"a token of this server": text,
	} {
		w := c.send("POST", "/api/v2/token/exchange", fmt.Sprintf(`{"token": %q}`, identity))
		if w.Code != 403 && (w.Code != 400 || name != "too long") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	trail := fmt.Sprint(petra.get("/api/v2/project/" + r.Project.ID.String() + "/audit?limit=50").list("data"))
	for _, want := range []string{"the job repo:acme/infra", "token.exchange", "project.trust", "environment.halt"} {
		if !strings.Contains(trail, want) {
			t.Errorf("the audit trail does not name %s: %s", want, trail)
		}
	}
	if strings.Contains(trail, text) {
		t.Error("the audit trail holds a token")
	}
	petra.call("DELETE", path+"/"+id, "", 200)
	job.call("GET", "/api/v2/environment/"+c.tid, "", 401)
	c.exchange(jobs.Token(good), 403)
}

func signedByEve(t *testing.T, jobs *providertest.Jobs, claims jwt.MapClaims) string {
	t.Helper()
	eve := providertest.NewJobs(t)
	eve.URL = jobs.URL
	return eve.Token(claims)
}

// A trust must say whose jobs it means, of an issuer that may be trusted, and gives no more than its maker has.
func TestWhatMayBeTrusted(t *testing.T) {
	c, r, jobs := withJobs(t)
	path := "/api/v2/project/" + r.Project.ID.String() + "/trust"
	trust := func(who *client, issuer, claims, role string, status int) {
		t.Helper()
		who.call("POST", path, fmt.Sprintf(`{"name": %q, "issuer": %q, "role": %q, "claims": %s}`,
			claims, issuer, role, claims), status)
	}
	petra, ada := c.as("petra"), c.as("ada")
	for _, claims := range []string{
		`{}`, `{"ref": "refs/heads/main"}`, `{"repository": "*"}`, `{"repository": "*/infra"}`, `{"repository": "ac*"}`,
		`{"sub": "repo:*"}`, `{"sub": "repo:/*"}`, `{"repository_owner": "acm*"}`, `{"repository": ""}`,
	} {
		trust(petra, jobs.URL, claims, "viewer", 400)
	}
	for _, claims := range []string{
		`{"repository": "acme/*"}`, `{"sub": "repo:acme/infra:*"}`, `{"repository_owner": "acme"}`,
		`{"project_path": "acme/infra", "ref": "main"}`,
	} {
		trust(petra, jobs.URL, claims, "viewer", 200)
	}
	acme := `{"repository": "acme/other"}`
	trust(petra, "https://ci.example.org", acme, "viewer", 403) // only an administrator of the server may
	trust(ada, "https://ci.example.org", acme, "viewer", 200)
	for _, issuer := range []string{
		"http://ci.example.org", "file:///etc/passwd", "https://u:p@example.org", "https://169.254.169.254?x=", "x",
	} {
		trust(ada, issuer, acme, "viewer", 400)
	}
	trust(petra, jobs.URL, `{"repository": "acme/all"}`, "administrator", 200)
	r.AddPerson(t, "max", access.Binding{Role: access.Maintainer, Scope: access.Scope{Project: r.Project.ID}})
	trust(c.as("max"), jobs.URL, `{"repository": "acme/x"}`, "viewer", 403)
}

// The address of an issuer that leads to this machine's own network is not asked, and an issuer is asked for its keys
// now and then, however many tokens with made-up keys arrive.
func TestIssuersAreAskedSparingly(t *testing.T) {
	c, r, jobs := withJobs(t)
	path := "/api/v2/project/" + r.Project.ID.String() + "/trust"
	add := func(who *client, name, issuer string) {
		t.Helper()
		who.call("POST", path, fmt.Sprintf(`{"name": %q, "issuer": %q, "role": "viewer",
			"claims": {"repository": "acme/infra"}}`, name, issuer), 200)
	}
	add(c.as("petra"), "ci", jobs.URL)
	add(c.as("ada"), "metadata", "https://169.254.169.254")
	claims := jwt.MapClaims{"aud": here, "sub": "x", "repository": "acme/infra"}
	c.exchange(jobs.Token(claims), 200)
	for range 20 {
		c.exchange(signedByEve(t, jobs, claims), 403)
		jobs.Rotate()
		c.exchange(jobs.Token(claims), 403)
	}
	if n := jobs.KeysRead(); n != 1 {
		t.Errorf("the issuer was asked %d times for its keys", n)
	}
	claims["iss"] = "https://169.254.169.254"
	began := time.Now()
	c.exchange(jobs.Token(claims), 403)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the server tried for %s to reach the metadata service", took)
	}
}
