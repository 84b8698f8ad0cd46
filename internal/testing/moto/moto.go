// Package moto runs moto's server, which imitates services of a cloud, for tests. It
// listens on loopback, and ends with the tests.
package moto

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
)

// packages are those of moto's server that EC2, IAM and S3 need. All of moto[server] is twice as large.
var packages = []string{"moto==5.2.5", "Flask==3.1.3", "flask-cors==6.0.5"}

// program ends when its input does: with the tests, however they end.
const program = `
import os, sys, threading
from moto.server import main
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
main(["-H", "127.0.0.1", "-p", "0"])
`

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// Server is a running server.
type Server struct {
	URL     string
	command *exec.Cmd
	done    chan struct{} // closed when all of its output was read
}

// Start returns the address of a server of the test's own. environment is added to its environment.
func Start(t testing.TB, environment ...string) string {
	t.Helper()
	s := Launch(t, environment...)
	t.Cleanup(s.Stop)
	return s.URL
}

// Launch starts a server for several tests. It ends with Stop, or else with the process of the tests.
func Launch(t testing.TB, environment ...string) *Server {
	t.Helper()
	c := exec.Command(python(t), "-c", program)
	c.Env = append(append(os.Environ(), "NO_COLOR=1"), environment...)
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{command: c, done: make(chan struct{})}
	found := make(chan string, 1)
	go func() {
		defer close(s.done)
		lines := bufio.NewScanner(out)
		var all strings.Builder
		for lines.Scan() {
			if a := address.FindString(lines.Text()); a != "" {
				found <- a
				break
			}
			all.WriteString(lines.Text() + "\n")
		}
		_, _ = io.Copy(io.Discard, out)
		select {
		case found <- all.String():
		default:
		}
	}()
	select {
	case s.URL = <-found:
	case <-time.After(2 * time.Minute):
	}
	if !strings.HasPrefix(s.URL, "http://") {
		s.Stop()
		t.Fatalf("moto did not start: %s", s.URL)
	}
	return s
}

// Stop ends the server, and waits for its end.
func (s *Server) Stop() {
	_ = s.command.Process.Kill()
	<-s.done
	_ = s.command.Wait()
}

// python returns a Python that has moto. It is made once per machine.
func python(t testing.TB) string {
	t.Helper()
	found := tool.Need(t, "python3")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "ordain-test", "moto")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // tests of several packages run at once
		t.Fatal(err)
	}
	made, mark := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "packages")
	want := []byte(strings.Join(packages, "\n"))
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return made
	}
	for _, command := range [][]string{
		{found, "-m", "venv", "--clear", dir},
		append([]string{made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...),
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			tool.Missing(t, "%s: %v: %s", strings.Join(command, " "), err, out)
		}
	}
	if err := os.WriteFile(mark, want, 0o644); err != nil {
		t.Fatal(err)
	}
	return made
}
