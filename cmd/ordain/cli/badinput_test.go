package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/diag"
)

// broken is a project that is broken, by malice or by accident.
type broken struct {
	files map[string]string
	spoil func(dir string) error // changes the files in ways that a map cannot express; may be nil
	want  string                 // text of the output
	fine  bool                   // the project compiles nevertheless
}

// inModule returns a project with a module m whose plug-ins are this Python code.
func inModule(python string) broken {
	return broken{files: map[string]string{
		"main.cf": "import m\nm::go()\n", "libs/m/module.yml": "name: m\nversion: 1.0\nlicense: none\n",
		"libs/m/model/_init.cf":      "",
		"libs/m/plugins/__init__.py": python,
	}}
}

func (b broken) wants(want string) broken                    { b.want = want; return b }
func (b broken) compiles() broken                            { b.fine = true; return b }
func (b broken) spoiled(spoil func(dir string) error) broken { b.spoil = spoil; return b }

const goes = "from inmanta.plugins import plugin\n\n@plugin\ndef go() -> None:\n    pass\n"

var junk = strings.Repeat("\x7fELF\x00\x01\xfe\xff\r\n\x1b[31m", 400)

func brokenProjects() map[string]broken {
	model := func(text string) broken { return broken{files: map[string]string{"main.cf": text}} }
	settings := func(text string) broken {
		return broken{files: map[string]string{"main.cf": "x = 1\n", "project.yml": text}}
	}
	in := func(path ...string) string { return filepath.Join(path...) }
	return map[string]broken{
		"an empty project file":            settings("").wants("E0406"),
		"a project file of zeros":          settings(strings.Repeat("\x00", 4096)).wants("E0406"),
		"a project file of binary junk":    settings(junk).wants("E0409"),
		"a project file with a list":       settings("- name\n- modulepath\n").wants("E0406"),
		"a project file with a wrong type": settings("name: {a: 1}\nmodulepath: 7\n").wants("E0406"),
		"an alias of itself":               settings("name: &a [*a]\n").wants("E0406"),
		"aliases that multiply": settings(
			"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c " +
				"[*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e " +
				"[*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nname: *f\nmodulepath: libs\n",
		).wants("E0406"),
		"a deep project file": settings("name: " + strings.Repeat("[", 20000) + "\n").wants("E0406"),
		"settings that are no section": settings(
			"name: x\nmodulepath: libs\nenvironment_settings: 3\n").wants("E0406"),
		"a constraint that is none": broken{files: map[string]string{
			"main.cf": "import a\n", "project.yml": "name: x\nmodulepath: libs\nrequires: ['a >>> 1']\n",
			"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: none\n", "libs/a/model/_init.cf": "",
		}}.wants("E0406"),
		"an import of what can be no package": model("import _a\n").wants("E0402"),
		"an entry file of binary junk":        model(junk).wants("E0"),
		"an entry file of zeros":              model(strings.Repeat("\x00", 4096)).wants("E0001"),
		"a huge line":                         model("x = \"" + strings.Repeat("a", 1<<20) + "\" +\n").wants("E0001"),
		"nesting that never closes":           model("x = " + strings.Repeat("[", 20000)).wants("E0001"),
		"a string that never closes":          model("x = \"\"\"" + strings.Repeat("a\n", 10000)).wants("E0001"),
		"an interpolation into itself":        model("x = \"{{x}}\"\n").wants("E0"),
		"modules in a circle": broken{files: map[string]string{
			"main.cf":               "import a\nx = a::v\n",
			"libs/a/module.yml":     "name: a\nversion: 1.0\nlicense: none\n",
			"libs/a/model/_init.cf": "import b\nv = b::v\n",
			"libs/b/module.yml":     "name: b\nversion: 1.0\nlicense: none\n",
			"libs/b/model/_init.cf": "import a\nv = a::v\n",
		}}.wants("E0"),
		"a module whose description is junk": broken{files: map[string]string{
			"main.cf": "import a\n", "libs/a/module.yml": junk, "libs/a/model/_init.cf": "",
		}}.wants("E0401"),
		"a module that is a file": broken{
			files: map[string]string{"main.cf": "import a\n", "libs/a": "x"},
		}.wants("E0401"),
		"a modulepath that is a file": broken{
			files: map[string]string{"main.cf": "import a\n", "libs": "x"},
		}.wants("E0401"),
		"plug-ins without __init__": inModule(goes).spoiled(func(dir string) error {
			return os.Rename(in(dir, "libs/m/plugins/__init__.py"), in(dir, "libs/m/plugins/other.py"))
		}).wants("__init__.py"),
		"plug-ins that are a loop": inModule(goes).spoiled(func(dir string) error {
			os.RemoveAll(in(dir, "libs/m/plugins"))
			return os.Symlink("plugins", in(dir, "libs/m/plugins"))
		}).wants("E0"),
		"a model folder in itself": inModule(
			goes).spoiled(func(dir string) error { return os.Symlink("..", in(dir, "libs/m/plugins/up")) }).
			compiles(),
		"an entry file that is a loop": model("").spoiled(func(dir string) error {
			os.Remove(in(dir, "main.cf"))
			return os.Symlink("main.cf", in(dir, "main.cf"))
		}).wants("E0"),
		"an entry file that is a folder": model(
			"",
		).spoiled(func(dir string) error { os.Remove(in(dir, "main.cf")); return os.Mkdir(in(dir, "main.cf"), 0o755) }).
			wants("E0"),
		"a name that is not UTF-8": inModule(goes).spoiled(func(dir string) error {
			return os.WriteFile(in(dir, "libs/m/plugins/b\xff.py"), []byte("x = 1\n"), 0o644)
		}).wants(""),
		"a module file nobody may read": inModule(
			goes).spoiled(func(dir string) error { return os.Chmod(in(dir, "libs/m/plugins/__init__.py"), 0) }).
			wants("E0"),

		"plug-ins that are empty":            inModule("").wants("E0"),
		"plug-ins of binary junk":            inModule(junk).wants("E0410"),
		"plug-ins that exit when imported":   inModule("import sys\nsys.exit(0)\n").wants("E0410"),
		"plug-ins that vanish when imported": inModule("import os\nos._exit(0)\n").wants("E0410"),
		"plug-ins that crash when imported":  inModule("import ctypes\nctypes.string_at(0)\n").wants("E0410"),
		"plug-ins that recurse":              inModule("def f(): return f()\nf()\n").wants("E0410"),
		"plug-ins that print": inModule(
			"import os, sys\nprint('{' * 70000)\nos.write(1, b'\\xff\\xfe\\0')\nprint('x', file=sys.stderr)\n" + goes,
		).compiles(),
		"plug-ins that import each other": broken{files: map[string]string{
			"main.cf": "import m\nm::go()\n", "libs/m/module.yml": "name: m\nversion: 1.0\nlicense: none\n",
			"libs/m/model/_init.cf":      "",
			"libs/m/plugins/__init__.py": "from inmanta_plugins.m.a import x\n" + goes,
			"libs/m/plugins/a.py":        "from inmanta_plugins.m import go as x\n",
		}}.wants("E0410"),
		"a plug-in that exits": inModule(
			"import sys\n" + strings.Replace(goes, "pass", "sys.exit('enough')", 1)).wants("E0303"),
		"a plug-in that crashes": inModule(
			"import ctypes\n" + strings.Replace(goes, "pass", "ctypes.string_at(0)", 1)).wants("E0"),
		"a plug-in with a message of junk": inModule(
			strings.Replace(goes, "pass", `raise Exception("\udcff\x00\x1b[31m" * 9)`, 1)).wants("E0303"),
	}
}

// A broken project makes the compiler panic, hang or show its own Python code. Each
// must end with status 1 and valid JSON with a diagnostic that has a code.
func TestBrokenProjects(t *testing.T) {
	t.Parallel()
	python, cache := plugintest.Python(t), t.TempDir()
	for name, c := range brokenProjects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, c.files)
			if c.spoil != nil {
				if err := c.spoil(dir); err != nil {
					t.Skipf("this machine makes no such files: %v", err)
				}
			}
			var stdout, stderr bytes.Buffer
			code := Main(
				[]string{
					"compile",
					"--project",
					dir,
					"--no-std",
					"--python",
					python,
					"--cache-dir",
					cache,
					"--plugin-timeout",
					"20s",
					"-o",
					"json",
				},
				strings.NewReader(""),
				&stdout,
				&stderr,
			)
			var report struct {
				Success     bool
				Diagnostics []diag.Diagnostic
			}
			if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
				t.Fatalf("%v in\n%.2000s\n%.2000s", err, &stdout, &stderr)
			}
			if root := os.Geteuid() == 0 && strings.Contains(name, "nobody may read"); c.fine ||
				c.want == "" && code == 0 ||
				root {
				if code != 0 || !report.Success {
					t.Errorf("it ends with %d\n%.3000s", code, &stdout)
				}
				return
			}
			if code != 1 || report.Success || len(report.Diagnostics) == 0 {
				t.Fatalf("it ends with %d and reports %+v", code, report)
			}
			for _, d := range report.Diagnostics {
				if d.Code == "" || d.Code == "E0000" || d.Code == "E0901" || d.Message == "" {
					t.Errorf("reported as %q: %.500q", d.Code, d.Message)
				}
			}
			if all := stdout.String() + stderr.String(); !strings.Contains(all, c.want) {
				t.Errorf("it does not mention %s:\n%.3000s", c.want, all)
			}
			for _, ours := range []string{"goroutine ", "ordain_worker", "runtime error", "inmanta/plugins.py"} {
				if all := stdout.String() + stderr.String(); strings.Contains(all, ours) {
					t.Errorf("it shows %q:\n%.3000s", ours, all)
				}
			}
		})
	}
}
