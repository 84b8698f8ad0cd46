package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/internal/testing/tool"
)

const explained = `entity Service:
    string name
    int port = 80
    string? owner
end
entity Host:
    string name
end
index Host(name)
Service.hosts [0:] -- Host.service [1]
implementation web for Service:
    self.owner = "team {{ name }}"
    for n in ["a", "b"]:
        Host(name="{{ name }}-{{ n }}", service=self)
    end
end
implementation none for Host:
end
implement Service using web
implement Host using none
shop = Service(name="shop")
`

// commitAsHostileAuthor makes a Git repository of a project. The author's name has an
// escape sequence.
func commitAsHostileAuthor(t *testing.T, dir string) {
	t.Helper()
	git := tool.Need(t, "git")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "all of it"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=Ada\x1b[2J", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
			"GIT_COMMITTER_EMAIL=ada@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// A person asks where a value was set, and gets the line with the chain up to the top
// level and the commit. After a change of the line, it is shown as not committed.
func TestExplainAnInstance(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": explained})
	commitAsHostileAuthor(t, dir)
	status, stdout, stderr := ordain("", "model", "explain", "--project", dir, "--no-std", "Service[name=shop].owner")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	at := 0
	for _, want := range []string{
		`__config__::Service[name=shop].owner = "team shop"`, "set at main.cf:12: " +
			"assignment", `self.owner = "team {{ name }}"`, "\n    ^\n",
		"Ada", "all of it", "in implementation __config__::web of __config__::Service[name=shop]", "chosen at " +
			"main.cf:19", "made at main.cf:21", "shop = Service(name=\"shop\")",
	} {
		i := strings.Index(stdout[at:], want)
		if i < 0 {
			t.Fatalf("it does not go on with %q:\n%s", want, stdout)
		}
		at += i
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("the author's name reaches the terminal as it is")
	}
	if err := os.WriteFile(filepath.Join(dir, "main.cf"),
		[]byte(strings.Replace(explained, `"team `, `"people of `, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ = ordain("", "model", "explain", "--project", dir, "--no-std", "shop.owner"); !strings.Contains(
		stdout,
		`"people of shop"`,
	) ||
		!strings.Contains(stdout, "not committed") ||
		!strings.Contains(stdout, "Ada") {
		t.Errorf("the changed line:\n%s", stdout)
	}
}

// Explain finds what the question is about, or lists what is similar.
func TestExplainFindsOrSuggests(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": explained})
	for _, test := range []struct {
		what   string
		status int
		want   string
	}{
		{"Host[name=shop-a].service", 0, "set at main.cf:14: argument of a constructor, in the loop at main.cf:13"},
		{"shop.hosts", 0, "which set the other side of the relation"},
		{"__config__::Service.port", 0, "set at main.cf:3: default of the entity"},
		{"shop.provides", 0, "not set"},
		{"Host", 1, "2 instances match Host:\n    __config__::Host[name=shop-a], made at main.cf:14"},
		{"Host[name=shop-c]", 1, "did you mean\n    __config__::Host[name=shop-a]"},
		{"Servise", 1, "there is no instance Servise"},
		{"shop.ownr", 1, "did you mean\n    owner"},
	} {
		status, stdout, stderr := ordain("", "model", "explain", "--project", dir, "--no-std", test.what)
		if status != test.status || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%s: status %d\n%s%s", test.what, status, stdout, stderr)
		}
	}
	status, stdout, _ := ordain("", "model", "explain", "--project", dir, "--no-std", "-o", "json", "shop.port")
	var e provenance.Explanation
	if err := json.Unmarshal([]byte(stdout), &e); status != 0 || err != nil || len(e.Attributes) != 1 ||
		string(e.Attributes[0].Value) != "80" ||
		e.Attributes[0].Settings[0].Kind != provenance.Default {
		t.Errorf("status %d, %v: %s", status, err, stdout)
	}
	if status, _, stderr := ordain("", "model", "explain"); status != 2 {
		t.Errorf("without an argument: status %d, %s", status, stderr)
	}
}

// With --environment, explain asks the server about its active version. For a resource
// that does not exist, it suggests a similar one.
func TestExplainAsksAServer(t *testing.T) {
	const env, id = "9b7b1d8c-0000-4000-8000-000000000001", "fs::File[web1,path=/etc/motd]"
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch {
		case r.URL.Path == "/api/v2/project":
			fmt.Fprintf(w, `{"data": [{"name": "p", "environments": [{"id": %q, "name": "prod"}]}]}`, env)
		case r.URL.Path == "/api/v2/desiredstate":
			fmt.Fprint(w, `{"data": [{"version": 7}]}`)
		case r.URL.Path == "/api/v2/desiredstate/7/resource/"+id+"/provenance":
			fmt.Fprint(w, `{"data": {
				"subject": "fs::File[web1,path=/etc/motd]", "version": 7,
				"attributes": [{"name": "content", "value": "hello", "settings": [{
					"kind": "argument", "file": "main.cf", "line": 3, "column": 1, "source": "content=\"hello\"",
					"commit": {"id": "abcdef0123456789", "author": "Noor"}, "steps": []
				}]}]
			}}`)
		case r.URL.Path == "/api/v2/desiredstate/7":
			fmt.Fprintf(w, `{"data": [{"resource_id": %q}]}`, id)
		default:
			w.WriteHeader(404)
			fmt.Fprint(w, `{"message": "not found"}`)
		}
	}))
	defer server.Close()
	status, stdout, stderr := ordain("", "model", "explain", "--server", server.URL, "--environment", "prod",
		id+".content")
	if status != 0 || !strings.Contains(stdout, `.content = "hello"`) || !strings.Contains(stdout, "main.cf:3") ||
		!strings.Contains(stdout, "abcdef0123 Noor") {
		t.Errorf("status %d: %s%s (asked %v)", status, stdout, stderr, asked)
	}
	status, _, stderr = ordain("", "model", "explain", "--server", server.URL, "--environment", "prod",
		"fs::File[web1,path=/etc/motdd]")
	if status != 1 || !strings.Contains(stderr, "did you mean\n    "+id) {
		t.Errorf("status %d: %s", status, stderr)
	}
}
