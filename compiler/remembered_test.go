package compiler_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/internal/racedetector"
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
