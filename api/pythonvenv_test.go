package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// venvs are the virtual environments that tests share, by what is installed in them: the clients that they hold take
// half a minute and 100 MB each. They last as long as the test program.
var venvs = struct {
	sync.Mutex
	dir string
	bin map[string]string
}{bin: map[string]string{}}

func TestMain(m *testing.M) {
	code := m.Run()
	if venvs.dir != "" {
		_ = os.RemoveAll(venvs.dir)
	}
	os.Exit(code)
}

// pythonVenv returns the folder of the programs of a virtual environment with packages, made with the Python that
// ORDAIN_TEST_PYTHON names or the newest on the path. Tests that want the same packages share it.
func pythonVenv(t *testing.T, packages ...string) string {
	t.Helper()
	venvs.Lock()
	defer venvs.Unlock()
	key := strings.Join(packages, " ")
	if bin := venvs.bin[key]; bin != "" {
		return bin
	}
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
	if venvs.dir == "" {
		var err error
		if venvs.dir, err = os.MkdirTemp("", "ordain-clients-"); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(venvs.dir, strconv.Itoa(len(venvs.bin)))
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
	venvs.bin[key] = bin
	return bin
}
