package compiler_test

import (
	"slices"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/testing/tool"
)

// TestSecondCompileIsLikeTheFirst compiles projects twice. The second compile remembers what the
// first one loaded, and imports only what it uses; model, output, warnings, resources and errors
// have to be the same.
func TestSecondCompileIsLikeTheFirst(t *testing.T) {
	tool.Long(t, "compiles a sample of the corpus twice, in new processes")
	if testing.Short() {
		t.Skip("compiles many cases twice")
	}
	python := plugintest.Python(t)
	cases, err := parity.Load(corpus)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(24)
	if wholeMatrix() {
		n = 12
	}
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool {
		sampled := tool.Sample(c.ID(), n) || c.Area == "py_entangled" && tool.Sample(c.ID(), n/6) // which is about this
		return c.Std || !c.HasPython() || !sampled
	})
	if len(cases) < 20 {
		t.Errorf("only %d cases have plug-ins", len(cases))
	}
	o := compiler.Options{CacheDir: t.TempDir(), Python: python}
	for _, c := range cases {
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

// TestPluginsComeAndGoWithImports compiles a project several times. A model that imports one more
// submodule than before has that module's plug-ins, and their errors, until the import is gone.
func TestPluginsComeAndGoWithImports(t *testing.T) {
	python := plugintest.Python(t)
	o := compiler.Options{CacheDir: t.TempDir(), Python: python}
	dir := t.TempDir()
	const plugins = "from inmanta.plugins import plugin\n\n@plugin\ndef f() -> str:\n    return __name__\n"
	files := map[string]string{
		"libs/m/module.yml":          "name: m\nversion: 1.0\nlicense: x\n",
		"libs/m/model/_init.cf":      "",
		"libs/m/model/sub.cf":        "",
		"libs/m/model/wrong.cf":      "",
		"libs/m/plugins/__init__.py": plugins,
		"libs/m/plugins/sub.py":      plugins,
		"libs/m/plugins/wrong.py": "from inmanta.plugins import plugin\n\n@plugin\ndef f(x: \"nowhere\") -> " +
			"str:\n    return x\n",
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
