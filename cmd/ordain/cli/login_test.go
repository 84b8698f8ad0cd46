package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
)

// Ada logs in, adds noor, lets her operate an environment, and asks why she may halt it; noor changes her password and
// sees what she may. The login is kept where only its user can read it, and forgotten at the logout.
func TestPeopleOnTheCommandLine(t *testing.T) {
	r := servertest.NewRich(t)
	r.RequireLogin()
	r.AddPerson(t, "ada", access.Binding{Role: access.Administrator})
	rest, err := api.New(api.Config{
		Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.API(), People: r.People, Tokens: r.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	run := func(stdin string, want int, args ...string) string {
		t.Helper()
		status, out, errs := ordain(stdin, append(args, "--server", server.URL)...)
		if status != want {
			t.Fatalf("ordain %s: %d %s%s", strings.Join(args, " "), status, out, errs)
		}
		return out + errs
	}
	if out := run("", 1, "environment", "list"); !strings.Contains(out, "log in") {
		t.Errorf("a stranger is told %q", out)
	}
	run("wrong\n", 1, "login", "ada")
	run(servertest.Password+"\n", 0, "login", "ada")
	file := filepath.Join(home, "ordain", "logins.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	environment := r.Production.Name
	run(servertest.Password+"\n", 0, "user", "add", "noor")
	run("", 0, "role", "assign", "operator", "--user", "noor", "--environment", environment)
	run("", 0, "role", "assign", "viewer", "--group", "netops", "--tag", "prod")
	run("", 0, "role", "assign", "maintainer", "--user", "noor", "--project", r.Project.Name)
	for _, want := range []string{"noor", "netops", "prod", "ada"} {
		if out := run("", 0, "role", "bindings"); !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	run("", 0, "role", "unassign", "maintainer", "--user", "noor", "--project", r.Project.Name)
	run("", 0, "role", "unassign", "viewer", "--group", "netops", "--tag", "prod")
	run("", 1, "role", "unassign", "viewer", "--group", "netops", "--tag", "prod")
	out := run("", 0, "access", "explain", "noor", "environment.halt", environment)
	if !strings.HasPrefix(out, "Yes: noor has the role operator on the environment") {
		t.Error(out)
	}
	out = run("", 0, "access", "explain", "noor", "environment.delete", environment)
	if !strings.HasPrefix(out, "No: no role of noor allows environment.delete (administer)") {
		t.Error(out)
	}
	if out := run("", 0, "access", "verbs"); !strings.Contains(out, "environment.halt") {
		t.Error(out)
	}
	run("", 0, "role", "create", "night", "--label", "read", "--verb", "environment.halt")
	if out := run("", 0, "role", "list"); !strings.Contains(out, "night") {
		t.Error(out)
	}
	run("", 0, "role", "delete", "night")

	t.Setenv("ORDAIN_TOKEN", r.Login(t, access.APIClient, "noor").Text)
	run(servertest.Password+"\nanother password\n", 0, "user", "password", "noor")
	run("", 0, "access", "explain", "noor", "environment.halt", environment)
	run("", 1, "user", "list")
	t.Setenv("ORDAIN_TOKEN", "")

	run("", 0, "user", "disable", "noor")
	run("", 0, "user", "delete", "noor")
	run("", 0, "logout")
	run("", 1, "environment", "list")
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), server.URL) {
		t.Errorf("the login is still there: %s, %v", text, err)
	}
	if status, _, errs := ordain("x\n", "login", "ada", "--server", "http://ordain.example.org"); status != 2 ||
		!strings.Contains(errs, "unencrypted") {
		t.Errorf("%d %s", status, errs)
	}
}
