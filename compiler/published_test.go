package compiler_test

import (
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Models of published modules compile and export as the reference's recorded
// outcome says, but for what testdata/published/known.txt names with its
// verdict; with the race detector every fifth does. The interpreter has the
// modules and what they import, no inmanta-core.
func TestPublishedModules(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred compiles with Python")
	}
	const corpus = "testdata/published"
	cases, err := parity.Load(corpus)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := parity.LoadOutcomes(filepath.Join(corpus, "outcomes"))
	if err != nil {
		t.Fatal(err)
	}
	known := readKnown(t, filepath.Join(corpus, "known.txt"))
	interpreter := plugintest.Venv(t, plugintest.Newest())
	o := compiler.Options{CacheDir: t.TempDir(), Python: interpreter, SitePackages: []string{plugintest.Site(t, interpreter)}}
	holdAll(t, cases, outcomes, known, o)
}
