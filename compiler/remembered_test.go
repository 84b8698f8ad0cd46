package compiler_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
)

// The second compile of a project, which remembers what the first one loaded
// and imports only what it uses, comes to the same end: model, output,
// warnings, resources and errors.
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
	cache, compared := t.TempDir(), 0
	for n, c := range cases {
		if c.Std || !c.HasPython() || n%4 > 0 { // some of each area suffice
			continue
		}
		compared++
		dir := t.TempDir()
		o := compiler.Options{CacheDir: cache, Python: strings.TrimSpace(string(found))}
		first, err := parity.Compile(t.Context(), c, dir, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID(), err)
		}
		second, err := parity.Compile(t.Context(), c, dir, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID(), err)
		}
		if verdict, why := parity.Compare(first, second); verdict != parity.Same {
			t.Errorf("%s: %s: %s", c.ID(), verdict, why)
		}
	}
	if compared < 20 {
		t.Errorf("only %d cases have plug-ins", compared)
	}
}
