package module_test

import (
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler/module"
)

// TestAModuleOfTheCompilerIsNotMissing scans a project before its modules are installed: nothing has to be cloned for a
// module that comes with the compiler.
func TestAModuleOfTheCompilerIsNotMissing(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project.yml": "name: x\n", "main.cf": "import ordain\nimport other\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	scan := p.Scan("main.cf")
	if len(scan.Bundled) != 1 || scan.Bundled[0].Name != "ordain" {
		t.Errorf("modules of the compiler: %+v", scan.Bundled)
	}
	for _, m := range scan.Missing {
		if m.Name == "ordain" {
			t.Error("ordain is missing")
		}
	}
}
