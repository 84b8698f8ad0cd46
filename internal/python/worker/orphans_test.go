package worker

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestServer is not a test but the server of TestWorkersDieWithTheirServer.
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

// A server that is killed with SIGKILL leaves neither workers nor processes that
// they started.
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
