package worker

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pythons gives the interpreters of this machine, one of each version that
// the runtime supports.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	names := []string{python(t), "python3.10", "python3.11", "python3.12", "python3.13"}
	if home, err := os.UserHomeDir(); err == nil { // where pyenv keeps those that are not active
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[0-9]*/bin/python3"))
		names = append(names, more...)
	}
	out := map[string]string{}
	for _, name := range names {
		version, err := exec.Command(name, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
		if v := strings.TrimSpace(string(version)); err == nil && out[v] == "" {
			out[v] = name
		}
	}
	return out
}

// The Python half has tests of its own; they run on what the binary unpacks,
// with every Python that is here.
func TestPythonHalf(t *testing.T) {
	for version, interpreter := range pythons(t) {
		t.Run(version, func(t *testing.T) { runPythonTests(t, interpreter) })
	}
}

// What a compile with plug-ins always imports is kept small: typing and socket,
// with what they import, would take a third of the time that a worker starts in.
func TestACompileImportsLittle(t *testing.T) {
	runtime, err := UnpackRuntime(t.TempDir())
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
		imported, err := exec.Command(interpreter, "-I", "-c", script, runtime).CombinedOutput()
		if text := strings.TrimSpace(string(imported)); err != nil || text != "" {
			t.Errorf("Python %s: %v, imports %s", version, err, text)
		}
	}
}

func runPythonTests(t *testing.T, interpreter string) {
	runtime, err := UnpackRuntime(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	start := "import sys; sys.dont_write_bytecode = True; sys.path[:0] = sys.argv[1:3]; " +
		"import unittest; unittest.main(module=None, argv=['tests', 'discover', '-s', sys.argv[2]])"
	cmd := exec.Command(interpreter, "-I", "-c", start, runtime, tests)
	cmd.Dir, cmd.Env = t.TempDir(), append(MinimalEnv(), "LANG=C.UTF-8")
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

// TestServer is not a test: it is the server of TestWorkersDieWithTheirServer.
func TestServer(t *testing.T) {
	dir := os.Getenv("PYWORKER_TEST_SERVER")
	if dir == "" {
		t.Skip("only for TestWorkersDieWithTheirServer")
	}
	s := open(t, threads)
	var child int
	if err := s.Call(t.Context(), "child", nil, &child, nil, nil); err != nil {
		t.Fatal(err)
	}
	report := strconv.Itoa(s.PID()) + " " + strconv.Itoa(child) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "pids"), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("started\n")
	select {}
}

// A server that is killed with SIGKILL leaves neither workers nor what they
// started.
func TestWorkersDieWithTheirServer(t *testing.T) {
	dir := t.TempDir()
	server := exec.Command(os.Args[0], "-test.run=^TestServer$", "-test.v")
	server.Env = append(os.Environ(), "PYWORKER_TEST_SERVER="+dir)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "started" {
	}
	text, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var worker, child int
	if _, err := fmt.Sscan(string(text), &worker, &child); err != nil {
		t.Fatal(err)
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	waitGone(t, worker)
	waitGone(t, child)
}
