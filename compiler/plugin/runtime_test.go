package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/python/worker"
)

// The Python side has tests of its own, in testdata/python.
func TestPythonSide(t *testing.T) {
	unpacked, err := worker.UnpackRuntime(filepath.Join(os.TempDir(), "ordain-plugin-test"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(plugintest.Python(t), "-B", "-X", "utf8", "-m", "unittest", "discover", "-s", tests)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+unpacked)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
