package compiler_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Python code of modules may be there as bytecode alone. Of a module of the first
// generation, bytecode of its package goes before the source, and plugins.py
// before a folder plugins; of the files in the package, the source goes first.
func TestPluginsInBytecode(t *testing.T) {
	python := plugintest.Python(t)
	returns := func(n string) string {
		return "from inmanta.plugins import plugin\n@plugin\ndef f() -> \"int\":\n    return " + n + "\n"
	}
	for name, c := range map[string]struct {
		source   map[string]string // files of the module
		bytecode map[string]string // by what was compiled
		call     string
	}{
		"alone": {nil, map[string]string{"plugins/__init__.pyc": returns("1")}, "a::f()"},
		"a package's": {map[string]string{"plugins/__init__.py": returns("2")},
			map[string]string{"plugins/__init__.pyc": returns("1")}, "a::f()"},
		"plugins.pyc": {map[string]string{"plugins/__init__.py": returns("2"), "plugins.py": returns("3")},
			map[string]string{"plugins.pyc": returns("1")}, "a::f()"},
		"a file's, alone": {map[string]string{"plugins/__init__.py": ""},
			map[string]string{"plugins/s.pyc": returns("1")}, "a::s::f()"},
		"a file's, a source": {map[string]string{"plugins/__init__.py": "", "plugins/s.py": returns("1")},
			map[string]string{"plugins/s.pyc": returns("2")}, "a::s::f()"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("project.yml", "name: x\nmodulepath: libs\n")
			write("main.cf", "import a\nimport a::s\nx = "+c.call+"\nx = 1\n")
			write("libs/a/module.yml", "name: a\nversion: 1.0\nlicense: x\n")
			write("libs/a/model/_init.cf", "")
			write("libs/a/model/s.cf", "")
			for path, text := range c.source {
				write("libs/a/"+path, text)
			}
			for path, text := range c.bytecode {
				write("compiled.py", text)
				write("libs/a/"+path, "")
				out, err := exec.Command(python, "-c",
					"import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)",
					filepath.Join(dir, "compiled.py"), filepath.Join(dir, "libs/a", path)).
					CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			out := compiler.Run(t.Context(),
				compiler.Options{Project: dir, NoStd: true, Python: python, CacheDir: t.TempDir()})
			if out.Text != "" {
				t.Error(out.Text)
			}
		})
	}
}
