// Package plugintest provides interpreters for tests, and virtual environments with published
// modules. The versions of all packages that tests depend on are pinned.
package plugintest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// Python returns the machine's interpreter itself, where python3 on PATH is a wrapper script.
func Python(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tool.Missing(t, "python3 is not installed on this machine")
	}
	return strings.TrimSpace(string(out))
}

// Set is a set of published modules and the Python for which they are installed.
type Set struct {
	Name     string // of its folder; empty: the name of Python
	Python   string
	Packages []string // the packages of the modules, which are installed without their requirements
	Modules  []string
	Imports  []string // what the modules import beside the packages of imports
}

// Sets are the sets that tests use.
var Sets = []Set{
	{Python: "python3.11", Packages: []string{"inmanta-module-std==7.0.0"}, Modules: []string{"std"}},
	{Python: "python3.12", Packages: newest, Modules: []string{"std", "mitogen", "config", "fs", "files"}},
	{Python: "python3.13", Packages: newest, Modules: []string{"std", "mitogen", "config", "fs", "files"}},
}

// All has the modules that talk to other systems too. What they import takes a while to install.
var All = Set{
	Name: "python3.13-all", Python: "python3.13",
	Packages: append([]string{
		"inmanta-module-podman==1.13.4", "inmanta-module-git-ops==0.7.2", "inmanta-module-sops==0.3.2",
		"inmanta-module-rest==1.0.1", "inmanta-module-openstack==6.1.2", "inmanta-module-ssh==1.0.5",
		"inmanta-module-terraform==1.3.14", "inmanta-tfplugin==5.2.0",
	}, newest...),
	Imports: []string{
		"requests==2.34.2", "jq==1.13.0", "python-dateutil==2.9.0.post0", "openstacksdk==4.22.0",
		"typing-inspect==0.9.0", "msgpack==1.2.4", "protobuf==7.36.2", "grpcio==1.85.3",
	},
}

// Newest is the set with the newest modules, on the newest Python.
func Newest() Set { return Sets[len(Sets)-1] }

// imports are the packages that modules import in all sets.
var imports = []string{
	"jinja2==3.1.6", "pydantic==2.14.4", "email_validator==2.4.0", "mitogen==0.3.54", "PyYAML==6.0.4",
}

var newest = []string{
	"inmanta-module-std==8.7.5", "inmanta-module-fs==1.2.0", "inmanta-module-files==2.11.1",
	"inmanta-module-mitogen==0.2.5", "inmanta-module-config==0.8.0",
	"inmanta-module-yaml==1.0.0", "inmanta-module-net==1.1.3", "inmanta-module-user==0.1.23",
	"inmanta-module-exec==2.1.1",
}

// sopsVersion is the version of sops with which models of module sops are tested.
const sopsVersion = "v3.11.0"

// Sops returns the folder of the program sops: on PATH, or built for tests by an earlier run. Where
// there is none it is built if build is set, which takes minutes; else the test is skipped.
func Sops(t testing.TB, build bool) string {
	t.Helper()
	if path, err := exec.LookPath("sops"); err == nil {
		return filepath.Dir(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no cache folder for the program sops")
	}
	dir := filepath.Join(cache, "ordain-test-tools", "sops-"+sopsVersion)
	defer lock(t, dir+".lock")()
	if _, err := os.Stat(filepath.Join(dir, "sops")); err == nil {
		return dir
	}
	if !build {
		t.Skip("no sops on PATH; ORDAIN_MATRIX=ci or whole builds one")
	}
	command := exec.Command("go", "install", "github.com/getsops/sops/v3/cmd/sops@"+sopsVersion)
	command.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=") // not with the race detector
	if out, err := command.CombinedOutput(); err != nil {
		tool.Missing(t, "sops cannot be built (no module proxy?): %v: %s", err, out)
	}
	return dir
}

var making sync.Mutex

// Venv returns the interpreter of a virtual environment with the modules of a set and what they
// import, but without inmanta-core. It is made once and kept in the user's cache. ORDAIN_TEST_VENVS
// may name a folder with ready ones, named after the set or its Python. When the environment cannot be
// made, the test is skipped, or fails in CI.
func Venv(t testing.TB, set Set) string {
	t.Helper()
	making.Lock()
	defer making.Unlock()
	base := os.Getenv("ORDAIN_TEST_VENVS")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache folder for a virtual environment")
		}
		base = filepath.Join(cache, "ordain-test-venvs")
	}
	dir := filepath.Join(base, cmp.Or(set.Name, set.Python))
	interpreter := filepath.Join(dir, "bin", "python")
	required := slices.Concat(imports, set.Imports)
	done, wanted := filepath.Join(dir, "complete"), strings.Join(slices.Concat(set.Packages, required), "\n")
	complete := func() bool {
		made, err := os.ReadFile(done)
		return err == nil && (string(made) == wanted || os.Getenv("ORDAIN_TEST_VENVS") != "")
	}
	if complete() {
		return interpreter
	}
	defer lock(t, dir+".lock")()
	if complete() {
		return interpreter
	}
	python := Find(set.Python)
	if python == "" {
		tool.Missing(t, "%s is not installed on this machine", set.Python)
	}
	for _, command := range [][]string{
		{python, "-m", "venv", "--clear", dir},
		append([]string{interpreter, "-m", "pip", "install", "-q", "--no-deps"}, set.Packages...),
		append([]string{interpreter, "-m", "pip", "install", "-q"}, required...),
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			tool.Missing(t, "a virtual environment cannot be made (no package index?): %v: %s", err, out)
		}
	}
	if err := os.WriteFile(done, []byte(wanted), 0o644); err != nil {
		t.Fatal(err)
	}
	return interpreter
}

// lock waits until no other process, such as the tests of another package, is making the same
// environment.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Skipf("no folder for virtual environments: %v", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Skipf("no folder for virtual environments: %v", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = file.Close() } // which lets the next one go on
}

// Find finds an interpreter by its name, such as python3.13: on PATH or, because pyenv's entries on
// PATH run only in folders that ask for the version, among pyenv's; empty when there is none.
func Find(name string) string {
	if exec.Command(name, "--version").Run() == nil {
		return name
	}
	root := os.Getenv("PYENV_ROOT")
	if home, err := os.UserHomeDir(); root == "" && err == nil {
		root = filepath.Join(home, ".pyenv")
	}
	found, _ := filepath.Glob(filepath.Join(root, "versions", strings.TrimPrefix(name, "python")+".*", "bin", name))
	for _, python := range found {
		if exec.Command(python, "--version").Run() == nil {
			return python
		}
	}
	return ""
}

// Site returns the site-packages of an interpreter's virtual environment.
func Site(t testing.TB, interpreter string) string {
	t.Helper()
	found, _ := filepath.Glob(
		filepath.Join(filepath.Dir(filepath.Dir(interpreter)), "lib", "python3*", "site-packages"),
	)
	if len(found) != 1 {
		t.Fatalf("site-packages of %s: %v", interpreter, found)
	}
	return found[0]
}
