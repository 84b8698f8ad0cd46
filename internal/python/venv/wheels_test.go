package venv

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// Packages are fetched for another machine than this one, and for one like it. The second kind makes an environment
// here, without the network, if no file was changed on the way.
func TestWheelsForAnotherMachine(t *testing.T) {
	t.Parallel()
	tool.Long(t, "installs packages for other machines")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	cache = filepath.Join(cache, "ordain-test") // wheels and tools are fetched once per machine
	m, err := New(Config{CacheDir: cache, ToolsDir: filepath.Join(cache, "tools")})
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.Interpreter(t.Context(), "")
	if err != nil {
		tool.Missing(t, "%v", err)
	}
	spec := Spec{Dir: filepath.Join(t.TempDir(), "wheels"), Owner: "owner", Requirements: []string{"MarkupSafe==3.0.2"}}
	other := Platform{Python: "3.12", Arch: "arm64", Libc: "glibc-2.36"}
	wheels, steps, err := m.Fetch(t.Context(), spec, other)
	if err != nil {
		t.Fatalf("%v %v", err, steps)
	}
	if len(wheels) != 1 || !strings.Contains(wheels[0].Name, "cp312-cp312-manylinux") ||
		!strings.HasSuffix(wheels[0].Name, "_aarch64.whl") {
		t.Errorf("for another machine: %v", wheels)
	}
	spec.Dir = filepath.Join(t.TempDir(), "wheels")
	wheels, steps, err = m.Fetch(t.Context(), spec, Platform{Python: i.Minor, Arch: runtime.GOARCH, Libc: i.Libc})
	if err != nil {
		t.Fatalf("%v %v", err, steps)
	}
	made := Spec{Dir: filepath.Join(t.TempDir(), "venv"), Owner: "owner", Wheels: wheels}
	r, err := m.Ensure(t.Context(), made)
	if err != nil {
		t.Fatalf("%v %v", err, r.Steps)
	}
	if len(r.Installed) != 1 || r.Installed["markupsafe"] != "3.0.2" {
		t.Errorf("installed: %v", r.Installed)
	}
	if err := os.WriteFile(wheels[0].Path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	made.Dir = filepath.Join(t.TempDir(), "venv")
	_, err = m.Ensure(t.Context(), made)
	if err == nil || !strings.Contains(err.Error(), "does not have the hash") {
		t.Errorf("an environment of a wheel that was changed: %v", err)
	}
}
