package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// pythonVenv makes a virtual environment of the test, with the Python that ORDAIN_TEST_PYTHON names or the newest on
// the path, installs packages into it, and returns the folder of its programs.
func pythonVenv(t *testing.T, packages ...string) string {
	t.Helper()
	python := ""
	for _, name := range []string{os.Getenv("ORDAIN_TEST_PYTHON"), "python3.13", "python3.12", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil &&
			exec.Command(path, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 12))").Run() == nil {
			python = path
			break
		}
	}
	if python == "" {
		tool.Missing(t, strings.Join(packages, ", ")+" needs Python 3.12 or newer with the module venv; none was "+
			"found; name one in ORDAIN_TEST_PYTHON")
	}
	dir := filepath.Join(t.TempDir(), "venv")
	bin := filepath.Join(dir, "bin")
	for _, command := range [][]string{
		{python, "-m", "venv", dir},
		append([]string{
			filepath.Join(bin, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		}, packages...),
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
	return bin
}
