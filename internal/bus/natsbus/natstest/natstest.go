// Package natstest runs a real NATS server as a process of its own, for tests that stop,
// kill, delete and reinstall it. The process is the test binary itself, whose TestMain
// calls Main first.
package natstest

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const variable = "ORDAIN_TEST_NATS_SERVER"

// Main runs the server and exits if this process was started by Start; else it does nothing.
func Main() {
	if os.Getenv(variable) == "" {
		return
	}
	options, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ExitOnError), os.Args[1:],
		func() {}, func() {}, func() {})
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
	os.Exit(0)
}

// Server is a running server.
type Server struct {
	Dir  string // with its configuration, log and pid file
	Addr string
	more string
	cmd  *exec.Cmd
}

// Start starts a server on a free port of the loopback interface, with more lines in its configuration. It ends with
// the test.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), more: strings.Join(more, "\n")}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	s.Install(t)
	return s
}

// URL returns the address of the server.
func (s *Server) URL() string { return "nats://" + s.Addr }

// Install makes a new folder for the server, starts it there on the old port, and waits until it answers.
func (s *Server) Install(t testing.TB) {
	t.Helper()
	s.Dir = t.TempDir()
	config := filepath.Join(s.Dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\nlog_file: %q\npid_file: %q\n%s\n", s.Addr, filepath.Join(s.Dir, "nats.log"),
		filepath.Join(s.Dir, "nats.pid"), s.more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(os.Args[0], "-c", config)
	s.cmd.Env = append(os.Environ(), variable+"=1")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = os.Stderr, os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the NATS server does not answer: ", err)
		}
	}
}

// Kill ends the server, without a farewell.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Delete kills the server and removes all that it had.
func (s *Server) Delete(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := os.RemoveAll(s.Dir); err != nil {
		t.Fatal(err)
	}
}

// Pause stops the server's process, which keeps its connections, until Resume.
func (s *Server) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume lets a paused server continue.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Await waits until a condition holds.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
	}
}
