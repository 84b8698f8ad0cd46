package module_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ordain.dev/ordain/compiler/module"
)

func load(t *testing.T, dir string) *module.Program {
	t.Helper()
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := module.NewLoader(p).Load("main.cf", false)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// A module has folders, requirements and Python files: the __init__.py of a package
// first, without caches and without the folders that hold no Python.
func TestModuleContents(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml": "name: x\nmodulepath: libs\n",
		"main.cf":     "import one\nimport two\n",

		"libs/one/module.yml":                 "name: one\nversion: 1.2\nlicense: x\ndeprecated: true\n",
		"libs/one/model/_init.cf":             "",
		"libs/one/requirements.txt":           "jinja2\n",
		"elsewhere/__init__.py":               "",
		"elsewhere/resources.py":              "",
		"elsewhere/__pycache__/resources.pyc": "",
		"elsewhere/sub/zeta.py":               "",
		"elsewhere/sub/__init__.py":           "",
		"elsewhere/sub/only.pyc":              "",
		"elsewhere/sub/zeta.pyc":              "",
		"elsewhere/notes.txt":                 "",
		".env/lib/python3.9/site-packages/x":  "",
		".env/lib/python3.13/site-packages/x": "",
		siteTwo + "/setup.cfg": "[metadata]\nname = inmanta-module-two\nversion = 3\nlicense = " +
			"x\n[options]\ninstall_requires =\n  inmanta-module-std\n  pyyaml>=6 ; python_version > '3'\n",
		siteTwo + "/__init__.py":               "",
		siteTwo + "/model/_init.cf":            "",
		siteTwo + "/model/script.py":           "",
		siteTwo + "/files/script.py":           "",
		siteTwo + "/templates/script.py":       "",
		siteTwo + "/deep/model/still_a_one.py": "",
		"libs/two/module.yml":                  "name: two\nversion: 9\nlicense: x\n",
	})
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "libs/one/plugins")); err != nil {
		t.Fatal(err)
	}
	prog := load(t, dir)
	in := func(paths ...string) []string {
		var out []string
		for _, p := range paths {
			out = append(out, filepath.Join(dir, p))
		}
		return out
	}
	want := []*module.Module{{
		Name: "two", Version: "3", Generation: 2, Dist: "inmanta-module-two", ShadowsV1: true,
		Path: in(siteTwo)[0], PluginDir: in(siteTwo)[0], ModelDir: in(siteTwo + "/model")[0],
		FilesDir: in(siteTwo + "/files")[0], TemplatesDir: in(siteTwo + "/templates")[0],
		Requirements: []string{"inmanta-module-std", "pyyaml>=6 ; python_version > '3'"},
		PythonFiles:  in(siteTwo+"/__init__.py", siteTwo+"/deep/model/still_a_one.py"),
	}, {
		Name: "one", Version: "1.2", Generation: 1, Deprecated: true,
		Path: in("libs/one")[0], PluginDir: in("libs/one/plugins")[0], ModelDir: in("libs/one/model")[0],
		FilesDir: in("libs/one/files")[0], TemplatesDir: in("libs/one/templates")[0],
		Requirements: []string{"jinja2"},
		PythonFiles: in("libs/one/plugins/__init__.py", "libs/one/plugins/resources.py",
			"libs/one/plugins/sub/__init__.py", "libs/one/plugins/sub/only.pyc", "libs/one/plugins/sub/zeta.py"),
	}}
	if d := cmp.Diff(want, prog.Modules, cmpopts.IgnoreUnexported(module.Module{})); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	var warned []string
	for _, w := range prog.Warnings {
		warned = append(warned, w.Kind[len("inmanta."):])
	}
	if d := cmp.Diff([]string{"module.ModuleDeprecationWarning", "warnings.InmantaWarning"}, warned); d != "" {
		t.Errorf("warnings: want -, got +:\n%s", d)
	}
}

const siteTwo = ".env/lib/python3.13/site-packages/inmanta_plugins/two"

// Paths inside the project are shown relative to it.
func TestShownPaths(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":             "name: x\nmodulepath: libs\n",
		"main.cf":                 "import one\n",
		"libs/one/module.yml":     "name: one\nversion: 1\nlicense: x\n",
		"libs/one/model/_init.cf": "",
	})
	prog := load(t, dir)
	var got []string
	for _, f := range prog.Files {
		got = append(got, f.Path)
	}
	if d := cmp.Diff([]string{"main.cf", "libs/one/model/_init.cf"}, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}
