package compiler_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/internal/testing/racedetector"
)

// The second compile of a project, which remembers what the first one loaded
// and imports only what it uses, comes to the same end: model, output,
// warnings, resources and errors. With the race detector every fifth of the
// cases is compiled.
func TestTheSecondCompileIsLikeTheFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles many cases twice")
	}
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	cases, err := parity.Load(filepath.Join("testdata", "parity"))
	if err != nil {
		t.Fatal(err)
	}
	var some []parity.Case
	for n, c := range cases {
		// Some of each area suffice, but for the one that is about this.
		if !c.Std && c.HasPython() && (n%4 == 0 || c.Area == "py_entangled") {
			some = append(some, c)
		}
	}
	if len(some) < 20 {
		t.Errorf("only %d cases have plug-ins", len(some))
	}
	o := compiler.Options{CacheDir: t.TempDir(), Python: strings.TrimSpace(string(found))}
	for n, c := range some {
		if racedetector.On && n%5 > 0 {
			continue
		}
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			compileTwice(t, c, o)
		})
	}
}

func compileTwice(t *testing.T, c parity.Case, o compiler.Options) {
	dir := t.TempDir()
	first, err := parity.Compile(t.Context(), c, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := parity.Compile(t.Context(), c, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if verdict, why := parity.Compare(first, second); verdict != parity.Same {
		t.Errorf("%s: %s", verdict, why)
	}
}

// A model that imports one more submodule than the compile before it has that
// one's plug-ins, and what is wrong with them, and loses both with the import.
func TestPluginsComeAndGoWithImports(t *testing.T) {
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	o := compiler.Options{CacheDir: t.TempDir(), Python: strings.TrimSpace(string(found))}
	dir := t.TempDir()
	const plugins = "from inmanta.plugins import plugin\n\n@plugin\ndef f() -> str:\n    return __name__\n"
	files := map[string]string{
		"libs/m/module.yml":          "name: m\nversion: 1.0\nlicense: x\n",
		"libs/m/model/_init.cf":      "",
		"libs/m/model/sub.cf":        "",
		"libs/m/model/wrong.cf":      "",
		"libs/m/plugins/__init__.py": plugins,
		"libs/m/plugins/sub.py":      plugins,
		"libs/m/plugins/wrong.py":    "from inmanta.plugins import plugin\n\n@plugin\ndef f(x: \"nowhere\") -> str:\n    return x\n",
	}
	for _, step := range []struct{ model, kind string }{
		{"import m\nx = m::f()\n", ""},
		{"import m\nimport m::sub\nx = m::sub::f()\n", ""},
		{"import m\nimport m::sub\nimport m::wrong\nx = m::sub::f()\n", "TypeNotFoundException"},
		{"import m\nx = m::sub::f()\n", "MissingImportException"},
		{"import m\nimport m::sub\nx = m::sub::f()\n", ""},
	} {
		files["main.cf"] = step.model
		got, err := parity.Compile(t.Context(), parity.Case{Area: "t", Name: "t", Files: files}, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		kind := ""
		if got.Error != nil {
			kind = got.Error.Kind
		}
		if kind != step.kind {
			t.Errorf("%q\nends with %q, want %q", step.model, kind, step.kind)
		}
	}
}
