package gitsync

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"ordain.dev/ordain/internal/testing/tool"
)

// sshd is an SSH server for tests. Like a real one it runs the commands of its users with
// the shell, so that the real git-upload-pack answers.
type sshd struct {
	t       testing.TB
	config  *ssh.ServerConfig
	host    ssh.Signer
	address string

	mu       sync.Mutex
	commands []string
	conns    []net.Conn
	// run answers a command; the default is the shell.
	run func(command string, ch ssh.Channel) uint32
	// silent servers take a connection and say nothing.
	silent  bool
	arrived chan bool // a connection did
}

// change changes how the next connections are treated.
func (s *sshd) change(how func(s *sshd)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

// manners say how a connection is treated.
type manners struct {
	config ssh.ServerConfig
	run    func(command string, ch ssh.Channel) uint32
	silent bool
	heard  func(command string)
}

func (s *sshd) manners() manners {
	s.mu.Lock()
	defer s.mu.Unlock()
	return manners{config: *s.config, run: s.run, silent: s.silent, heard: func(command string) {
		s.change(func(s *sshd) { s.commands = append(s.commands, command) })
	}}
}

func newSigner(t testing.TB) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, key
}

// sshKeyPEM writes a key as ssh-keygen does.
func sshKeyPEM(t testing.TB, key ed25519.PrivateKey, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(block)
	if passphrase == "" {
		return string(text)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// One round of its slow hash is enough here.
	lock := exec.Command(tool.Need(t, "ssh-keygen"), "-q", "-p", "-a", "1", "-P", "", "-N", passphrase, "-f", file)
	if out, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	if text, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newSSHD serves users who have the key.
func newSSHD(t testing.TB, allowed ssh.PublicKey) *sshd {
	t.Helper()
	s := &sshd{t: t, arrived: make(chan bool, 100), config: &ssh.ServerConfig{
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != "git" || string(key.Marshal()) != string(allowed.Marshal()) {
				return nil, io.EOF
			}
			return nil, nil
		},
	}}
	s.host, _ = newSigner(t)
	s.config.AddHostKey(s.host)
	s.run = s.shell
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			now := s.manners()
			s.arrived <- true
			if !now.silent {
				all.Go(func() { now.serve(conn, &all) })
			}
		}
	})
	return s
}

func (s *manners) serve(conn net.Conn, all *sync.WaitGroup) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, &s.config)
	if err != nil {
		return
	}
	all.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		ch, requests, err := offered.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			for r := range requests {
				_ = r.Reply(r.Type == "exec", nil)
				if r.Type != "exec" {
					continue
				}
				var payload struct{ Command string }
				_ = ssh.Unmarshal(r.Payload, &payload)
				s.heard(payload.Command)
				all.Go(func() {
					code := s.run(payload.Command, ch)
					_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{code}))
					ch.Close()
				})
			}
		})
	}
}

func (s *sshd) shell(command string, ch ssh.Channel) uint32 {
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "LC_ALL=C")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 255
	}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	if err := cmd.Start(); err != nil {
		return 255
	}
	go func() { _, _ = io.Copy(in, ch); in.Close() }()
	if err := cmd.Wait(); err != nil {
		return 128
	}
	return 0
}

// known returns the line of known_hosts for the server.
func (s *sshd) known() string {
	return knownhosts.Line([]string{s.address}, s.host.PublicKey())
}

func (s *sshd) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

// url returns the URL of a repository.
func (s *sshd) url(path string) string { return "ssh://git@" + s.address + path }

// serveSSH serves the repository over SSH, and returns a source that may read it.
func (o *origin) serveSSH() (*sshd, Source) {
	o.t.Helper()
	signer, key := newSigner(o.t)
	server := newSSHD(o.t, signer.PublicKey())
	return server, Source{URL: server.url(o.bare), Branch: "main",
		Credentials: Credentials{SSHKey: sshKeyPEM(o.t, key, "")}, Trust: Trust{KnownHosts: server.known()}}
}

// sshLine returns the line that the advice of a fault asks to add.
func sshLine(advice string) string {
	_, line, _ := strings.Cut(advice, "known hosts: ")
	if line == "" {
		_, line, _ = strings.Cut(advice, "known hosts by: ")
	}
	return line
}
