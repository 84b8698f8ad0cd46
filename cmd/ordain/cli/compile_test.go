package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/testing/tool"
)

// project writes a project and returns its folder.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if _, ok := files["project.yml"]; !ok {
		files["project.yml"] = "name: test\nmodulepath: libs\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type result struct {
	Success   bool                       `json:"success"`
	Instances []json.RawMessage          `json:"instances"`
	Variables map[string]json.RawMessage `json:"variables"`
	Output    []string                   `json:"output"`
	Resources []struct {
		ID string `json:"id"`
	} `json:"resources"`
	Error *struct {
		Kind     string `json:"kind"`
		Message  string `json:"message"`
		Trace    string `json:"trace"`
		Location *struct {
			File string `json:"file"`
			Line int    `json:"line"`
		} `json:"location"`
		Causes []json.RawMessage `json:"causes"`
	} `json:"error"`

	stdout, stderr string
	failed         bool
}

// ordainCompile runs `ordain compile --model-json` on a project.
func ordainCompile(t *testing.T, dir string, args ...string) result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "model.json")
	command := newCompile()
	var stdout, stderr bytes.Buffer
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"--project", dir, "--model-json", file, "--cache-dir", t.TempDir()}, args...))
	err := command.ExecuteContext(context.Background())
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatalf("no document (%v); the command said %v: %s", readErr, err, stderr.String())
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	r.stdout, r.stderr, r.failed = stdout.String(), stderr.String(), err != nil
	if r.failed == r.Success {
		t.Errorf("exit and document disagree: %v, success %v", err, r.Success)
	}
	return r
}

// Without std, a compile works on a machine without an interpreter.
func TestCompileWithoutPython(t *testing.T) {
	dir := project(t, map[string]string{
		"main.cf": "x = 1\n", "other.cf": "y = 2\n",
		"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: none\n", "libs/a/model/_init.cf": "v = 3\n",
		"third.cf": "import a\nz = a::v\n",
	})
	t.Setenv("PATH", t.TempDir())
	if r := ordainCompile(t, dir, "--no-std"); !r.Success || string(r.Variables["__config__::x"]) != "1" {
		t.Errorf("main.cf gave %+v", r)
	}
	if r := ordainCompile(t, dir, "--no-std", "--main", "other.cf"); string(r.Variables["__config__::y"]) != "2" {
		t.Errorf("--main other.cf gave %+v", r)
	}
	if r := ordainCompile(t, dir, "--no-std", "--main", filepath.Join(dir, "third.cf")); string(
		r.Variables["__config__::z"]) != "3" {
		t.Errorf("--main with an absolute path gave %+v", r)
	}
}

// Every error is in the document and on standard error.
func TestEveryFailureHasADocument(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		kind  string
		line  int
	}{
		"a malformed project file": {map[string]string{"project.yml": "name: [", "main.cf": ""}, "InvalidMetadata", 0},
		"no entry file":            {map[string]string{"other.cf": ""}, "FileNotFoundError", 0},
		"a missing module":         {map[string]string{"main.cf": "\nimport nosuch"}, "ModuleLoadingException", 2},
		"a syntax error":           {map[string]string{"main.cf": "x = 1\ny = = 2"}, "ParserException", 2},
		"a value set twice":        {map[string]string{"main.cf": "x = 1\nx = 2"}, "DoubleSetException", 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := ordainCompile(t, project(t, c.files), "--no-std")
			if r.Success || r.Error == nil || !strings.HasSuffix(r.Error.Kind, "."+c.kind) && r.Error.Kind != c.kind {
				t.Fatalf("want a %s: %+v", c.kind, r.Error)
			}
			if c.line > 0 && (r.Error.Location == nil || r.Error.Location.Line != c.line) {
				t.Errorf("want it on line %d: %+v", c.line, r.Error.Location)
			}
			if strings.TrimSpace(r.Error.Trace) == "" || !strings.Contains(r.stderr, r.Error.Trace) {
				t.Errorf("the trace is not what is printed: stderr %q, trace %q", r.stderr, r.Error.Trace)
			}
		})
	}
}

// The output of plug-ins is in the document, also if the compile fails. A failing
// import names its file.
func TestPluginsInTheDocument(t *testing.T) {
	python := plugintest.Python(t)
	module := map[string]string{
		"libs/m/module.yml": "name: m\nversion: 1.0\nlicense: none\n", "libs/m/model/_init.cf": "",
		"libs/m/plugins/__init__.py": "from inmanta.plugins import plugin\nprint('loading')\n@plugin\ndef " +
			"say(x: str) -> None:\n    print(x)\n    if x == 'bad':\n        raise ValueError(x)\n",
		"main.cf": "import m\nm::say(\"good\")\nm::say(\"bad\")\n",
	}
	r := ordainCompile(t, project(t, module), "--no-std", "--python", python)
	if want := []string{"loading", "good", "bad"}; strings.Join(r.Output, " ") != strings.Join(want, " ") {
		t.Errorf("printed %v, want %v", r.Output, want)
	}
	if r.Error == nil || r.Error.Kind != "inmanta.ast.ExternalException" || r.Error.Location.Line != 3 {
		t.Errorf("the exception gave %+v", r.Error)
	}
	module["libs/m/plugins/__init__.py"] = "\nimport nosuchpackage\n"
	r = ordainCompile(t, project(t, module), "--no-std", "--python", python)
	if r.Error == nil || r.Error.Location == nil || r.Error.Location.Line != 2 ||
		!strings.Contains(r.Error.Message, "nosuchpackage") {
		t.Errorf("the import gave %+v", r.Error)
	}
}

// A project without a virtual environment and without std can have plug-ins: any
// interpreter of the machine runs them.
func TestPluginsWithoutStdAndWithoutEnvironment(t *testing.T) {
	plugintest.Python(t) // or skip
	dir := project(t, map[string]string{
		"main.cf": "import m\nx = m::twice(4)\n", "libs/m/module.yml": "name: m\nversion: 1.0\nlicense: x\n",
		"libs/m/model/_init.cf": "",
		"libs/m/plugins/__init__.py": "from inmanta.plugins import plugin\n\n@plugin\ndef twice(n: \"int\") -> " +
			"\"int\":\n    return 2 * n\n",
	})
	if r := ordainCompile(t, dir, "--no-std"); !r.Success || string(r.Variables["__config__::x"]) != "8" {
		t.Errorf("got %+v", r)
	}
}

// Clusters for a compile without a server come from a file; one that is none is an error of the compile.
func TestClustersFromAFile(t *testing.T) {
	plugintest.Python(t) // or skip
	dir := project(t, map[string]string{
		"main.cf":       "import ordain\nx = [n[\"hostname\"] for n in ordain::nodes(\"web\")]\n",
		"clusters.json": `{"web": {"nodes": [{"number": 1001, "hostname": "b"}, {"number": 1000, "hostname": "a"}]}}`,
		"broken.json":   `{"web": {"nodes": [{"hostname": "b"}]}}`,
	})
	r := ordainCompile(t, dir, "--no-std", "--clusters", filepath.Join(dir, "clusters.json"))
	if got := string(r.Variables["__config__::x"]); got != `["a","b"]` {
		t.Errorf("got %s, %+v", got, r)
	}
	r = ordainCompile(t, dir, "--no-std", "--clusters", filepath.Join(dir, "broken.json"))
	if r.Error == nil || !strings.Contains(r.Error.Message, "node 1 of the cluster web has no number") {
		t.Errorf("got %+v", r.Error)
	}
	if r = ordainCompile(t, dir, "--no-std"); string(r.Variables["__config__::x"]) != `[{"$unknown":true}]` {
		t.Errorf("without a file: %s, %+v", r.Variables["__config__::x"], r)
	}
}

// A plug-in that never returns is stopped, and the message says where it was.
func TestAHangingPluginIsStopped(t *testing.T) {
	dir := project(t, map[string]string{
		"libs/m/module.yml": "name: m\nversion: 1.0\nlicense: none\n", "libs/m/model/_init.cf": "",
		"libs/m/plugins/__init__.py": "from inmanta.plugins import plugin\nimport threading\n@plugin\ndef " +
			"hang() -> None:\n    threading.Event().wait()\n",
		"main.cf": "import m\nm::hang()\n",
	})
	r := ordainCompile(t, dir, "--no-std", "--python", plugintest.Python(t), "--plugin-timeout", "1s")
	if r.Error == nil || r.Error.Kind != "inmanta.ast.ExternalException" ||
		!strings.Contains(r.stderr, "did not return within 1s") {
		t.Errorf("gave %+v\n%s", r.Error, r.stderr)
	}
	if strings.Contains(r.stderr, "ordain_worker") || strings.Contains(r.stderr, "inmanta/plugins.py") ||
		strings.Count(r.stderr, "in hang") != 1 {
		t.Errorf("the stack is not that of the plug-in alone, once:\n%s", r.stderr)
	}
}

// A plug-in closes standard output. The compile succeeds, and no Python code of ours
// shows.
func TestAPluginThatClosesItsOutput(t *testing.T) {
	dir := project(t, map[string]string{
		"libs/m/module.yml": "name: m\nversion: 1.0\nlicense: none\n", "libs/m/model/_init.cf": "",
		"libs/m/plugins/__init__.py": "from inmanta.plugins import plugin\nimport os, sys\n@plugin\ndef shut() " +
			"-> int:\n    sys.stdout.close()\n    os.close(1)\n    return 1\n",
		"main.cf": "import m\nx = m::shut()\n",
	})
	r := ordainCompile(t, dir, "--no-std", "--python", plugintest.Python(t))
	if !r.Success || strings.Contains(r.stderr, "Traceback") {
		t.Errorf("gave %+v\n%s", r.Error, r.stderr)
	}
}

// A model without the implicit std imports std, or another module of .env. It is
// compiled with an interpreter that has what the module needs.
func TestImportsWithoutImplicitStd(t *testing.T) {
	tool.Heavy(t, "installs a project's packages")
	site := plugintest.Site(t, plugintest.Venv(t, plugintest.Sets[0]))
	dir := project(t, map[string]string{"main.cf": "import std\nx = std::replace(\"a-b\", \"-\", \"+\")\n"})
	env := filepath.Join(dir, ".env", "lib", filepath.Base(filepath.Dir(site)), "site-packages")
	for _, pattern := range []string{"inmanta_plugins/std", "inmanta_module_std-*"} {
		found, err := filepath.Glob(filepath.Join(site, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		rel, _ := filepath.Rel(site, found[0])
		if err := os.CopyFS(filepath.Join(env, rel), os.DirFS(found[0])); err != nil {
			t.Fatal(err)
		}
	}
	if r := ordainCompile(t, dir, "--no-std"); !r.Success || string(r.Variables["__config__::x"]) != `"a+b"` {
		t.Errorf("gave %+v: %s", r.Error, r.stderr)
	}
}

// Packages for a Python that the machine does not have run with its newest one. If that
// fails, the error names the version that was used.
func TestPackagesForAnotherPython(t *testing.T) {
	tool.Long(t, "installs packages for another Python")
	plugintest.Python(t) // or skip
	dir := project(t, map[string]string{
		"main.cf": "import m\n",
		".env/lib/python3.99/site-packages/inmanta_plugins/m/__init__.py":    "import nosuchpackage\n",
		".env/lib/python3.99/site-packages/inmanta_plugins/m/model/_init.cf": "",
		".env/lib/python3.99/site-packages/inmanta_plugins/m/setup.cfg": "[metadata]\nname = " +
			"inmanta-module-m\nversion = 1.0\nlicense = none\n",
		".env/lib/python3.99/site-packages/inmanta_module_m-1.0.dist-info/METADATA": "Metadata-Version: " +
			"2.1\nName: inmanta-module-m\nVersion: 1.0\n",
		".env/lib/python3.99/site-packages/inmanta_module_m-1.0.dist-info/top_level.txt": "inmanta_plugins\n",
	})
	r := ordainCompile(t, dir, "--no-std")
	if r.Success || !strings.Contains(r.stderr, "for Python 3.99, which this machine does not have") {
		t.Errorf("gave %+v\n%s", r.Error, r.stderr)
	}
}

// Published modules in a .env without an interpreter are compiled and exported with the
// interpreter that --python names.
func TestPublishedModulesExport(t *testing.T) {
	python := plugintest.Venv(t, plugintest.Sets[0])
	site := plugintest.Site(t, python)
	dir := project(t, map[string]string{"main.cf": `
host = std::Host(name="web", os=std::linux)
`})
	env := filepath.Join(dir, ".env", "lib", filepath.Base(filepath.Dir(site)))
	if err := os.MkdirAll(env, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(site, filepath.Join(env, "site-packages")); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "resources.json")
	r := ordainCompile(t, dir, "--export", "--python", python, "--resources-json", alone)
	if !r.Success || r.Variables["__config__::host"] == nil || r.Variables["std::linux"] == nil {
		t.Errorf("gave %+v: %s", r.Error, r.stderr)
	}
	if text, err := os.ReadFile(alone); err != nil || string(text) != "[]\n" { // nothing in it is a resource
		t.Errorf("the resources alone are %q, %v", text, err)
	}
}

// A relative --cache-dir is relative to the caller's folder, although the worker runs in
// the project's folder.
func TestARelativeCacheFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := "cache"
	if err := chooseCache(&dir); err != nil || !filepath.IsAbs(dir) {
		t.Errorf("the cache is %q, %v", dir, err)
	}
}
