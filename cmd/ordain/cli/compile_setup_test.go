package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Export functions run if the project's configuration, a variable or an option names
// them, after the dependency managers, with the instances of their types. A function
// that fails or does not exist is an error of the export.
func TestExportFunctions(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":       "name: test\nmodulepath: libs\n",
		"main.cf":           "import m\nm::Sub(name=\"b\")\nm::Base(name=\"a\")\n",
		"libs/m/module.yml": "name: m\nversion: 1.0\nlicense: x\n",
		"libs/m/model/_init.cf": "entity Base:\n    string name\nend\nimplementation none for " +
			"Base:\nend\nimplement Base using none\nentity Sub extends Base:\nend\nimplement Sub using parents\n",
		"libs/m/plugins/__init__.py": `from inmanta.export import dependency_manager, export

@dependency_manager
def manage(types, resources):
    print("never: there is no resource")

@export("names", "m::Base", "m::Absent")
def names(exporter, types):
    print({name: [each.name for each in found] for name, found in types.items()}, "m::Sub" in exporter.types)
    print(exporter.upload_file("content"))

@export("plain")
def plain(exporter, *more, **named):
    print("plain", more, named)

@export("broken", "m::Base")
def broken(exporter, types):
    raise Exception("not today")
`,
	})
	t.Setenv("HOME", t.TempDir())
	cache := t.TempDir()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := newRoot()
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(
			append(
				[]string{
					"compile",
					"--no-std",
					"--project",
					dir,
					"--cache-dir",
					cache,
					"--python",
					plugintest.Python(t),
				},
				args...),
		)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	want := func(what string, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", what, part, text)
			}
		}
	}
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ".inmanta"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run("--export"); err != nil || strings.Contains(out, "plain") {
		t.Errorf("nothing is configured: %v\n%s", err, out)
	}
	configure("[config]\nexport = names , plain,\n")
	file := filepath.Join(t.TempDir(), "export.json")
	for range 2 { // what is remembered of the modules makes no difference
		out, err := run("--export", "--export-json", file)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want("configured", out, "{'m::Base': ['b', 'a'], 'm::Absent': []} True\n", "plain () {}\n")
	}
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want("document", string(document), `"040f06fd774092478d450774f5ba30c5da78acc8":"Y29udGVudA=="`)
	if out, err := run(); err != nil || strings.Contains(out, "plain") {
		t.Errorf("nothing is exported: %v\n%s", err, out)
	}
	out, err := run("--export", "--export-plugin", "plain")
	if err != nil || strings.Contains(out, "m::Base") {
		t.Errorf("one is asked for: %v\n%s", err, out)
	}
	t.Setenv("INMANTA_CONFIG_EXPORT", "broken")
	if out, err = run("--export"); err == nil {
		t.Error("a function that fails is not an error")
	}
	want("failing", out, "not today", "libs/m/plugins/__init__.py:18")
	t.Setenv("INMANTA_CONFIG_EXPORT", "absent")
	if out, err = run("--export"); err == nil {
		t.Error("a function that does not exist is not an error")
	}
	want("absent", out, "Export function absent does not exist.")
	if err := os.Unsetenv("INMANTA_CONFIG_EXPORT"); err != nil {
		t.Fatal(err)
	}
	configure("export\n")
	if out, err = run("--export"); err == nil {
		t.Error("a damaged configuration is not an error")
	}
	want("damaged", out, ".inmanta cannot be read")
}
