package runtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// pythons returns one interpreter of each version that is installed here and
// that the runtime supports.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"python3", "python3.10", "python3.11", "python3.12", "python3.13"}
	if home, err := os.UserHomeDir(); err == nil { // versions of pyenv that are not on PATH
		found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[0-9]*/bin/python3"))
		names = append(names, found...)
	}
	out := map[string]string{}
	for _, name := range names {
		version, err := exec.Command(name, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
		if v := strings.TrimSpace(string(version)); err == nil && out[v] == "" {
			out[v] = name
		}
	}
	if len(out) == 0 {
		tool.Missing(t, "there is no Python 3.10 or newer on this machine")
	}
	return out
}

// The Python sources have unit tests of their own. They run on what the binary
// unpacks, with every Python that is installed here.
func TestPythonSources(t *testing.T) {
	tool.Heavy(t, "loads hundreds of modules")
	for version, interpreter := range pythons(t) {
		t.Run(version, func(t *testing.T) { runPythonTests(t, interpreter) })
	}
}

// A worker starts quickly because it imports little: typing and socket, with
// what they import, would add a third to the time that a start takes.
func TestACompileImportsLittle(t *testing.T) {
	unpacked, err := Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from ordain_worker import _json, bytecode, compile_role, frames, limits, loading
from inmanta import compiler, config, module, plugins, resources
from inmanta.protocol import endpoints
print(*sorted({"typing", "socket", "enum", "re", "json", "collections"} & set(sys.modules) - before))
`
	for version, interpreter := range pythons(t) {
		imported, err := exec.Command(interpreter, "-I", "-c", script, unpacked).CombinedOutput()
		if text := strings.TrimSpace(string(imported)); err != nil || text != "" {
			t.Errorf("Python %s: %v, imports %s", version, err, text)
		}
	}
}

func runPythonTests(t *testing.T, interpreter string) {
	unpacked, err := Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Abs("tests")
	if err != nil {
		t.Fatal(err)
	}
	start := "import sys; sys.dont_write_bytecode = True; sys.path[:0] = sys.argv[1:3]; " +
		"import unittest; unittest.main(module=None, argv=['tests', 'discover', '-s', sys.argv[2]])"
	cmd := exec.Command(interpreter, "-I", "-c", start, unpacked, tests)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ran := regexp.MustCompile(`Ran (\d+) tests`).FindSubmatch(out)
	if ran == nil {
		t.Fatalf("no tests ran:\n%s", out)
	}
	files, err := filepath.Glob(filepath.Join(tests, "test_*.py"))
	if n, _ := strconv.Atoi(string(ran[1])); err != nil || n < len(files) {
		t.Errorf("%d tests in %d files", n, len(files))
	}
}
