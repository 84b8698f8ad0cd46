package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
)

// runCommand runs a command and returns its output and exit status.
func runCommand(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Main(args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}

// A package does not exist. The compile says so and what to do, and writes its document
// as for any other error.
func TestPackagesThatCannotBeInstalled(t *testing.T) {
	if _, err := venv.Find(t.Context(), ""); err != nil {
		tool.Missing(t, "%v", err)
	}
	index := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(index.Close)
	dir := project(t, map[string]string{
		"project.yml":      "name: x\npip: {index_url: \"" + index.URL + "/simple\"}\n",
		"requirements.txt": "inmanta-module-nowhere\n", "main.cf": "import nowhere\n",
	})
	cache, err := os.UserCacheDir() // where uv stays from one run of the tests to the next
	if err != nil {
		cache = t.TempDir()
	}
	got := ordainCompile(t, dir, "--cache-dir", filepath.Join(cache, "ordain-test"))
	if got.Success || got.Error == nil || !strings.Contains(got.Error.Message, "inmanta-module-nowhere") {
		t.Errorf("the document says %+v", got.Error)
	}
	if !strings.Contains(got.stderr, "pip section of project.yml") {
		t.Errorf("it says %s", got.stderr)
	}
}

// While a module is missing, list says where it is imported, and freeze fails. When all
// modules are installed, both work.
func TestModulesOfAProject(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":             "name: x\nmodulepath: libs\nrequires: [a<1]\n",
		"main.cf":                 "import a\nimport b\n",
		"libs/a/module.yml":       "name: a\nversion: 1.2\nlicense: x\n",
		"libs/a/model/_init.cf":   "",
		"libs/std/module.yml":     "name: std\nversion: 8.0\nlicense: x\n",
		"libs/std/model/_init.cf": "",
	})
	out, _, status := runCommand(t, "module", "list", "--project", dir)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := [][]string{
		{"NAME", "VERSION", "KIND", "WANTED", "MATCH", "WHERE"},
		{"a", "1.2", "v1", "<1", "no", "libs/a"},
		{"b", "missing", "*", "no", "imported", "at", "main.cf:2"},
		{"std", "8.0", "v1", "*", "yes", "libs/std"},
	}
	for i, line := range lines {
		if i >= len(want) || strings.Join(strings.Fields(line), " ") != strings.Join(want[i], " ") {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if status != 0 || len(lines) != len(want) {
		t.Errorf("status %d, %d lines", status, len(lines))
	}
	if _, said, status := runCommand(t, "project", "freeze", "--project", dir); status != 1 ||
		!strings.Contains(said, "not there: b; run `ordain project install` first") {
		t.Errorf("status %d, %s", status, said)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.cf"), []byte("import a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, status := runCommand(t, "project", "freeze", "--project", dir, "--operator", "=="); status != 0 {
		t.Fatal(said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "project.yml"))
	if want := "name: x\nmodulepath: libs\nrequires:\n  - a == 1.2\n  - std == 8.0\n"; err != nil ||
		string(text) != want {
		t.Errorf("project.yml is now\n%s", text)
	}
	if _, _, status := runCommand(t, "project", "freeze", "--project", dir, "--operator", "<"); status != 2 {
		t.Errorf("an unknown operator: status %d", status)
	}
}
