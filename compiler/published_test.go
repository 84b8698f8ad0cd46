package compiler_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Models of published modules compile and export as the reference's recorded
// outcome says, but for what testdata/published/known.txt names with its
// verdict; with the race detector every fifth does. ORDAIN_PARITY=wide takes those
// of archives with the option wide too. The interpreter has the
// modules and what they import, no inmanta-core.
func TestPublishedModules(t *testing.T) {
	holdPublished(t, plugintest.Newest(), nil, func(area string) bool { return !remote[area] })
}

// So do those of modules that talk to other systems, in an environment of their own.
func TestPublishedModulesForOtherSystems(t *testing.T) {
	holdPublished(t, plugintest.All, nil, func(area string) bool { return remote[area] && area != "sops" })
}

// Models decrypt files with the program sops, and edit them. ORDAIN_PARITY=wide
// builds the program where there is none.
func TestSops(t *testing.T) {
	if testing.Short() {
		t.Skip("some compiles with Python")
	}
	path := plugintest.Sops(t, wide()) + string(os.PathListSeparator) + os.Getenv("PATH")
	holdPublished(
		t,
		plugintest.All,
		append(os.Environ(), "PATH="+path),
		func(area string) bool { return area == "sops" },
	)
}

// remote are the archives that need what plugintest.All has.
var remote = map[string]bool{
	"git-ops":        true,
	"podman":         true,
	"podman-more":    true,
	"openstack":      true,
	"openstack-more": true,
	"sops":           true,
	"terraform":      true,
	"tools":          true,
}

func holdPublished(t *testing.T, set plugintest.Set, env []string, wanted func(area string) bool) {
	t.Helper()
	if testing.Short() {
		t.Skip("some hundred compiles with Python")
	}
	const corpus = "testdata/published"
	cases, err := parity.Load(corpus)
	if err != nil {
		t.Fatal(err)
	}
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool { return !wanted(c.Area) || c.Wide && !wide() })
	outcomes, err := parity.LoadOutcomes(filepath.Join(corpus, "outcomes"))
	if err != nil {
		t.Fatal(err)
	}
	known := readKnown(t, filepath.Join(corpus, "known.txt"))
	interpreter := plugintest.Venv(t, set)
	o := compiler.Options{
		CacheDir:     t.TempDir(),
		Python:       interpreter,
		SitePackages: []string{plugintest.Site(t, interpreter)},
		Env:          env,
	}
	holdAll(t, cases, outcomes, known, o)
}

// The models of the parity corpus that are compiled with std come out as recorded too.
func TestParityWithStd(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred compiles with Python")
	}
	cases, err := parity.Load("testdata/parity")
	if err != nil {
		t.Fatal(err)
	}
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool { return !c.Std || c.Wide && !wide() })
	outcomes, err := parity.LoadOutcomes("testdata/parity/outcomes")
	if err != nil {
		t.Fatal(err)
	}
	interpreter := plugintest.Venv(t, plugintest.Newest())
	o := compiler.Options{
		CacheDir:     t.TempDir(),
		Python:       interpreter,
		SitePackages: []string{plugintest.Site(t, interpreter)},
	}
	holdAll(t, cases, outcomes, readKnown(t, filepath.Join("testdata", "parity", "known.txt")), o)
}
