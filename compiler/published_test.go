package compiler_test

import (
	"os"
	"slices"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/testing/tool"
)

// TestPublishedModules compiles and exports models of published modules and compares them with
// the recorded outcomes of the reference. The interpreter has the modules and what they import,
// but no inmanta-core.
func TestPublishedModules(t *testing.T) {
	tool.Heavy(t, "imports published modules")
	comparePublished(t, plugintest.Newest(), nil, func(area string) bool { return !remote[area] })
}

// TestPublishedModulesForOtherSystems does the same with modules that talk to other systems,
// which have an environment of their own.
func TestPublishedModulesForOtherSystems(t *testing.T) {
	tool.Long(t, "compiles hundreds of models with Python modules that load slowly")
	comparePublished(t, plugintest.All, nil, func(area string) bool { return remote[area] && area != "sops" })
}

// TestSops compiles models that decrypt and edit files with the program sops. ORDAIN_MATRIX
// builds the program where there is none.
func TestSops(t *testing.T) {
	tool.Long(t, "imports published modules, and builds sops from source where it is not installed")
	if testing.Short() {
		t.Skip("compiles with Python")
	}
	path := plugintest.Sops(t, os.Getenv("ORDAIN_MATRIX") != "") + string(os.PathListSeparator) + os.Getenv("PATH")
	env := append(os.Environ(), "PATH="+path)
	comparePublished(t, plugintest.All, env, func(area string) bool { return area == "sops" })
}

// remote are the archives that need the packages of plugintest.All.
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

func comparePublished(t *testing.T, set plugintest.Set, env []string, wanted func(area string) bool) {
	t.Helper()
	if testing.Short() {
		t.Skip("many compiles with Python")
	}
	cases := slices.DeleteFunc(loadCases(t, published), func(c parity.Case) bool { return !wanted(c.Area) })
	interpreter := plugintest.Venv(t, set)
	compareAll(t, published, cases, compiler.Options{
		CacheDir:     t.TempDir(),
		Python:       interpreter,
		SitePackages: []string{plugintest.Site(t, interpreter)},
		Env:          env,
	})
}

// TestParityWithStd compiles the cases of the parity corpus that use module std.
func TestParityWithStd(t *testing.T) {
	if testing.Short() {
		t.Skip("many compiles with Python")
	}
	cases := slices.DeleteFunc(loadCases(t, corpus), func(c parity.Case) bool { return !c.Std })
	interpreter := plugintest.Venv(t, plugintest.Newest())
	compareAll(t, corpus, cases, compiler.Options{
		CacheDir:     t.TempDir(),
		Python:       interpreter,
		SitePackages: []string{plugintest.Site(t, interpreter)},
	})
}
