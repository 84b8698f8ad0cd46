package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/provider/providertest"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/servertest"
)

// Ada makes a token of her own, which works from the environment, is listed and revoked; one for a compiler; and lets
// the jobs of a repository act, one of which gets a token with its identity token.
func TestTokensOnTheCommandLine(t *testing.T) {
	r := servertest.NewRich(t)
	r.RequireLogin()
	jobs := providertest.NewJobs(t)
	r.ConfigureTokens(t, func(c *tokens.Config) { c.Issuers = []string{jobs.URL} })
	r.AddPerson(t, "ada", access.Binding{Role: access.Administrator})
	rest, err := api.New(api.Config{
		Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.API(), People: r.People, Tokens: r.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	run := func(want int, args ...string) string {
		t.Helper()
		status, out, errs := ordain(servertest.Password+"\n", append(args, "--server", server.URL)...)
		if status != want {
			t.Fatalf("ordain %s: %d %s%s", strings.Join(args, " "), status, out, errs)
		}
		return strings.TrimSpace(out + errs)
	}
	run(0, "login", "ada")
	environment := r.Production.Name
	text := run(0, "token", "create", "dashboard", "--role", "viewer", "--project", r.Project.Name, "--expire", "12h")
	if !strings.HasPrefix(text, "ordain_pat_") {
		t.Fatalf("got %q", text)
	}
	run(2, "token", "create", "x", "--role", "viewer", "--expire", "soon")
	t.Setenv("ORDAIN_TOKEN", text)
	run(0, "environment", "list")
	run(1, "environment", "halt", environment)
	t.Setenv("ORDAIN_TOKEN", "")
	if out := run(0, "token", "list"); !strings.Contains(out, "dashboard") || strings.Contains(out, text) {
		t.Errorf("the list is %s", out)
	}
	run(0, "token", "revoke", "dashboard")
	t.Setenv("ORDAIN_TOKEN", text)
	run(1, "environment", "list")
	t.Setenv("ORDAIN_TOKEN", "")

	if out := run(0, "token", "environment", "create", environment, "--client", "compiler", "--expire", "30d"); strings.
		Count(out, ".") != 2 {
		t.Errorf("got %q", out)
	}
	jti := strings.Fields(run(0, "token", "environment", "list", environment))
	run(0, "token", "environment", "revoke", environment, jti[7])

	run(0, "trust", "add", r.Project.Name, "deploy", "--issuer", jobs.URL, "--role", "operator",
		"--environment", environment, "--claim", "repository=acme/infra", "--claim", "ref=refs/heads/main")
	if out := run(0, "trust", "list", r.Project.Name); !strings.Contains(out, "acme/infra") {
		t.Errorf("the trusts are %s", out)
	}
	t.Setenv("ORDAIN_ID_TOKEN", jobs.Token(jwt.MapClaims{
		"aud": "https://ordain.example.org", "sub": "repo:acme/infra", "repository": "acme/infra",
		"ref": "refs/heads/main",
	}))
	job := run(0, "token", "exchange")
	t.Setenv("ORDAIN_TOKEN", job)
	run(0, "environment", "halt", environment)
	t.Setenv("ORDAIN_TOKEN", "")
	run(0, "trust", "remove", r.Project.Name, "deploy")
	t.Setenv("ORDAIN_TOKEN", job)
	run(1, "environment", "resume", environment)

	// No token gets into the files of this machine but the login.
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "ordain", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
