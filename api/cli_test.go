package api

import (
	"encoding/json"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// inmantaCLI returns the path of Inmanta's own command line client. ORDAIN_TEST_INMANTA_CLI is the path of one that is
// installed, or 1 to install it from PyPI into a virtual environment of the test (about 100 MB).
func inmantaCLI(t *testing.T) string {
	t.Helper()
	wish := os.Getenv("ORDAIN_TEST_INMANTA_CLI")
	if wish == "" {
		t.Skip("set ORDAIN_TEST_INMANTA_CLI=1 to install inmanta-core from PyPI and run its client, " +
			"or to the path of an inmanta-cli")
	}
	if wish != "1" {
		return wish
	}
	return filepath.Join(pythonVenv(t, "inmanta-core==20.1.0"), "inmanta-cli")
}

// publishedClient runs Inmanta's command line client against a server.
type publishedClient struct {
	t       *testing.T
	server  []string // the arguments that name it
	jobs    *json.Encoder
	answers *json.Decoder
}

// newPublishedClient starts the client of a virtual environment, as testdata/inmanta_cli.py says. It ends with the
// test.
func newPublishedClient(t *testing.T, path, host, port string) *publishedClient {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(path), "python"), filepath.Join("testdata", "inmanta_cli.py"))
	jobs, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = jobs.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("what runs the client: %v", err)
		}
	})
	server := []string{"--host", host, "--port", port}
	return &publishedClient{t, server, json.NewEncoder(jobs), json.NewDecoder(answers)}
}

// run runs the client in a folder, which is its home too, and returns what it printed and whether it succeeded.
func (c *publishedClient) run(folder string, args ...string) (output string, succeeded bool) {
	c.t.Helper()
	job := struct {
		Folder string   `json:"folder"`
		Args   []string `json:"args"`
	}{folder, slices.Concat(c.server, args)}
	var answer struct {
		Status int    `json:"status"`
		Output string `json:"output"`
	}
	if err := c.jobs.Encode(job); err != nil {
		c.t.Fatal(err)
	}
	if err := c.answers.Decode(&answer); err != nil {
		c.t.Fatalf("inmanta-cli %s: %v", strings.Join(args, " "), err)
	}
	return answer.Output, answer.Status == 0
}

// The published client of Inmanta works as it is: it makes a project and an environment, asks for a compile, lists and
// releases versions, shows resources, changes settings, pauses agents and sets parameters.
func TestInmantasOwnClient(t *testing.T) {
	path := inmantaCLI(t)
	r := servertest.NewRich(t)
	handler := newClient(t, r.Server).handler
	server := httptest.NewServer(handler)
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	client := newPublishedClient(t, path, host, port)
	run := func(args ...string) string {
		t.Helper()
		out, ok := client.run(home, args...)
		if !ok {
			t.Errorf("inmanta-cli %s failed:\n%s", strings.Join(args, " "), out)
		}
		return out
	}
	expect := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
	expect(run("project", "create", "-n", "shop"), "shop")
	expect(run("project", "list"), "shop", "infra")
	expect(run("project", "modify", "-n", "store", "shop"), "store")
	expect(run("project", "show", "store"), "store")
	expect(run("environment", "create", "-n", "live", "-p", "store", "-r", "https://git.example.com/shop.git",
		"-b", "main"), "live")
	expect(run("environment", "list"), "live", "production")
	expect(run("environment", "show", "live"), "https://git.example.com/shop.git")
	expect(run("environment", "modify", "-n", "live", "-r", "https://git.example.com/store.git", "-b", "main", "live"),
		"store.git")
	expect(run("environment", "recompile", "--update", "live"), "triggered successfully")
	expect(run("environment", "setting", "list", "-e", "live"), "auto_deploy")
	run("environment", "setting", "set", "-e", "live", "-k", "available_versions_to_keep", "-o", "42")
	expect(run("environment", "setting", "get", "-e", "live", "-k", "available_versions_to_keep"), "42")
	run("environment", "setting", "delete", "-e", "live", "-k", "available_versions_to_keep")
	run("environment", "save", "live")
	saved, err := os.ReadFile(filepath.Join(home, ".inmanta"))
	if err != nil || !strings.Contains(string(saved), host) {
		t.Errorf("the client saves %q, %v", saved, err)
	}
	if err := os.Remove(filepath.Join(home, ".inmanta")); err != nil {
		t.Fatal(err)
	}
	versions := run("version", "list", "-e", "production")
	expect(versions, "7", "8")
	// The states have other names in older clients.
	if !strings.Contains(versions, "active") && !strings.Contains(versions, "deploying") {
		t.Errorf("no version is active in\n%s", versions)
	}
	expect(run("version", "release", "-e", "production", "8"), "8")
	expect(run("version", "report", "-e", "production", "-i", "7", "-l"), "web04", "/srv/www/site-023/index.html")
	expect(run("agent", "list", "-e", "production"), "web01")
	run("agent", "pause", "-e", r.Production.ID.String(), "--agent", "web01")
	run("agent", "unpause", "-e", r.Production.ID.String(), "--all")
	expect(run("param", "set", "-e", "production", "--name", "size", "--value", "12"), "12")
	expect(run("param", "get", "-e", "production", "--name", "size"), "12")
	expect(run("param", "list", "-e", "production"), "size", "region")
	rvid := r.FailedFile.AtVersion(7)
	list := run("action-log", "list", "-e", r.Production.ID.String(), "--rvid", rvid)
	expect(list, "deploy", "failed")
	expect(run("action-log", "show-messages", "-e", r.Production.ID.String(), "--rvid", rvid,
		"--action-id", "a000003c-0000-4000-8000-00000000003c"), "No space left on device")
	run("environment", "delete", "live")
	run("project", "delete", "store")
	if out := run("project", "list"); strings.Contains(out, "store") {
		t.Errorf("the project is still there:\n%s", out)
	}
	v, err := r.Store.ActiveVersion(t.Context(), r.Production.ID)
	if err != nil || v.Number != 8 {
		t.Errorf("the active version is %+v, %v", v, err)
	}
	acts, err := r.Store.Interventions(t.Context(), r.Production.ID, 2)
	if err != nil || len(acts) != 2 || acts[0].Kind != intent.DidUnpause && acts[1].Kind != intent.DidUnpause {
		t.Errorf("the newest interventions are %+v, %v", acts, err)
	}
}

// The published client makes a token for an environment, and works with it: from its configuration for compilers, and
// as the client of the command line.
func TestInmantasOwnClientWithTokens(t *testing.T) {
	path := inmantaCLI(t)
	_, r := withPeople(t)
	c := newClient(t, r.Server)
	c.tid = r.Production.ID.String()
	server := httptest.NewServer(c.handler)
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := newPublishedClient(t, path, host, port)
	run := func(token string, want bool, args ...string) string {
		t.Helper()
		home := t.TempDir()
		text := "[client]\n[cmdline_rest_transport]\nhost=" + host + "\nport=" + port + "\ntoken=" + token + "\n"
		if err := os.WriteFile(filepath.Join(home, ".inmanta.cfg"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, ok := client.run(home, args...)
		if ok != want {
			t.Fatalf("inmanta-cli %s: it succeeded: %t\n%s", strings.Join(args, " "), ok, out)
		}
		return out
	}
	run("", false, "environment", "list")
	ada, _ := c.as("ada").personal(`{"name": "cli", "roles": ["administrator"], "expire": 3600}`)
	out := run(c.as("ada").token, true, "token", "create", "-e", c.tid, "--api", "--compiler")
	_, token, ok := strings.Cut(strings.TrimSpace(out), "Token: ")
	if !ok {
		t.Fatalf("the client shows %q", out)
	}
	run(ada, true, "param", "set", "-e", c.tid, "--name", "size", "--value", "12")
	run(token, true, "param", "get", "-e", c.tid, "--name", "size")
	run(token, true, "version", "list", "-e", c.tid)
	run(token, false, "version", "list", "-e", r.Sandbox.ID.String())
	run(token, false, "token", "create", "-e", c.tid, "--api")

	// What a compiler does: it reads and sets parameters with the token of its configuration.
	script := filepath.Join(t.TempDir(), "client.py")
	source := `
import asyncio, sys, uuid
from inmanta import config
from inmanta.protocol import Client
config.Config.load_config()
for name, value in (("host", sys.argv[1]), ("port", sys.argv[2]), ("token", sys.argv[3])):
    config.Config.set("compiler_rest_transport", name, value)
async def main():
    client = Client("compiler")
    env = uuid.UUID(sys.argv[4])
    answers = [
        (await client.get_param(tid=env, id="size", resource_id="")).code,
        (await client.list_settings(tid=env)).code,
        (await client.halt_environment(tid=env)).code,
        (await client.list_settings(tid=uuid.UUID(sys.argv[5]))).code,
    ]
    print(answers)
asyncio.run(main())
`
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	compiler := c.as("ada").call("POST", "/api/v2/environment_auth", `{"client_types": ["compiler"]}`, 200).text("data")
	got, err := exec.Command(filepath.Join(filepath.Dir(path), "python"), script, host, port, compiler, c.tid,
		r.Sandbox.ID.String()).CombinedOutput()
	if err != nil || !strings.Contains(string(got), "[200, 200, 403, 403]") {
		t.Errorf("the compiler's client: %v\n%s", err, got)
	}
}
