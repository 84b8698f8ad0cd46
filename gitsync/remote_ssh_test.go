package gitsync

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"ordain.dev/ordain/internal/fault"
)

// Pushes reach the checkout over SSH: the first fetch brings everything, the next only what
// is new.
func TestSSHFetch(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	server, src := o.serveSSH()
	first := o.push("first", map[string]string{"a": "1", "b/c": "2"})
	rev, report := fetch(t, s, src)
	if rev.Commit != first || !report.Cloned {
		t.Errorf("%+v %+v", rev, report)
	}
	dir := filepath.Join(t.TempDir(), "compiler")
	checkout(t, s, src, first, dir)
	wantTree(t, dir, map[string]string{"a": "1", "b/c": "2"})
	second := o.push("second", map[string]string{"a": "3"})
	if tip, err := s.Tip(t.Context(), src); tip != second || err != nil {
		t.Errorf("%s, %v", tip, err)
	}
	rev, report = fetch(t, s, src)
	if rev.Commit != second || report.Cloned || !strings.Contains(report.Output, first[:7]+" to "+second[:7]) {
		t.Errorf("%+v %+v", rev, report)
	}
	checkout(t, s, src, second, dir)
	wantTree(t, dir, map[string]string{"a": "3", "b/c": "2"})
	for _, c := range server.ran() {
		if c != "git-upload-pack '"+o.bare+"'" {
			t.Errorf("the server ran %q", c)
		}
	}
	if o.run(o.work, "-C", filepath.Join(dir), "status", "--porcelain") != "" {
		t.Error("git finds the checkout changed")
	}
}

// A path with all characters that a shell would interpret is one argument.
func TestSSHPathIsQuoted(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("first", map[string]string{"a": "1"})
	server, src := o.serveSSH()
	odd := filepath.Join(filepath.Dir(o.bare), "it's $(touch x); `id` !odd")
	o.run(o.work, "clone", "-q", "--bare", o.bare, odd)
	src.URL = "git@" + server.address + ":" + odd
	if p, err := locate(src.URL); err == nil && p.ssh.port == "22" {
		// The short form has no port: the URL says the same.
		src.URL = strings.ReplaceAll("ssh://git@"+server.address+odd, " ", "%20")
	}
	rev, _ := fetch(t, s, src)
	if rev.Subject != "first" {
		t.Errorf("%+v", rev)
	}
}

// The fault says what is wrong with keys, hosts and connections, shows no secret, and the
// checkout stays as it was.
func TestSSHFaults(t *testing.T) {
	type world struct {
		o      *origin
		s      *Syncer
		server *sshd
		src    Source
	}
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, w *world)
		kind  fault.Kind
		words []string
	}{
		{
			"no key", func(t *testing.T, w *world) { w.src.Credentials.SSHKey = "" }, fault.Unauthorized,
			[]string{"there is no key for it", "git-ssh-key"},
		},
		{"wrong key", func(t *testing.T, w *world) {
			_, other := newSigner(t)
			w.src.Credentials.SSHKey = sshKeyPEM(t, other, "")
		}, fault.Unauthorized, []string{"refused the SSH key of the user git", "deploy key"}},
		{
			"not a key", func(t *testing.T, w *world) { w.src.Credentials.SSHKey = "s3cr3t" }, fault.Invalid,
			[]string{"git-ssh-key is not a private key"},
		},
		{"passphrase missing", func(t *testing.T, w *world) {
			_, key := newSigner(t)
			w.src.Credentials.SSHKey = sshKeyPEM(t, key, "s3cr3t")
		}, fault.Unauthorized, []string{"protected by a passphrase", "git-ssh-passphrase"}},
		{"passphrase wrong", func(t *testing.T, w *world) {
			_, key := newSigner(t)
			w.src.Credentials.SSHKey, w.src.Credentials.SSHPassphrase = sshKeyPEM(t, key, "s3cr3t"), "s3cr3t-wrong"
		}, fault.Unauthorized, []string{"passphrase of the SSH key is wrong"}},
		{
			"unknown host", func(t *testing.T, w *world) { w.src.Trust.KnownHosts = "" }, fault.Unauthorized,
			[]string{"is not known", "SHA256:", "add this line"},
		},
		{"changed host key", func(t *testing.T, w *world) {
			other, _ := newSigner(t)
			w.src.Trust.KnownHosts = knownhosts.Line([]string{w.server.address}, other.PublicKey())
			w.src.Trust.AcceptNew = true // no excuse for a key that changed
		}, fault.Unauthorized, []string{"changed", "SHA256:", "Somebody may intercept"}},
		{"revoked host key", func(t *testing.T, w *world) {
			w.src.Trust.KnownHosts = "@revoked * " + strings.SplitN(w.server.known(), " ", 2)[1] + "\n"
		}, fault.Unauthorized, []string{"is refused", "revoked"}},
		{
			"malformed known hosts",
			func(t *testing.T, w *world) { w.src.Trust.KnownHosts = "host ssh-ed25519 !!!" }, fault.Invalid,
			[]string{"known hosts of this environment cannot be read"},
		},
		{
			"no such repository", func(t *testing.T, w *world) { w.src.URL = w.server.url("/no/such") },
			fault.NotFound, []string{"no Git repository at ssh://"},
		},
		{"no such command", func(t *testing.T, w *world) {
			w.server.change(func(s *sshd) {
				s.run = func(_ string, ch ssh.Channel) uint32 {
					_, _ = ch.Stderr().Write([]byte("try\x1b[31m later\n"))
					return 1
				}
			})
		}, fault.Unavailable, []string{"could not be read", "try [31m later"}},
		{"forge says no", func(t *testing.T, w *world) {
			w.server.change(func(s *sshd) {
				s.run = func(_ string, ch ssh.Channel) uint32 {
					_, _ = ch.Stderr().Write([]byte("ERROR: Permission to a/b.git denied to key.\n"))
					return 1
				}
			})
		}, fault.Forbidden, []string{"may not be read"}},
		{"refuses version 0", func(t *testing.T, w *world) {
			w.server.change(func(s *sshd) {
				s.run = func(_ string, ch ssh.Channel) uint32 {
					_, _ = ch.Write([]byte("0016ERR use version 2\n"))
					return 1
				}
			})
		}, fault.Unavailable, []string{"could not be read", "use version 2"}},
		{"answers in version 2", func(t *testing.T, w *world) {
			w.server.change(func(s *sshd) {
				s.run = func(_ string, ch ssh.Channel) uint32 {
					_, _ = ch.Write([]byte("000eversion 2\n000cls-refs\n0000"))
					return 0
				}
			})
		}, fault.Invalid, []string{"speaks only version 2", "https://"}},
		{"greets instead of git", func(t *testing.T, w *world) {
			w.server.change(func(s *sshd) {
				s.run = func(_ string, ch ssh.Channel) uint32 { _, _ = ch.Write([]byte("Welcome!\n")); return 0 }
			})
		}, fault.Invalid, []string{"is not a Git server"}},
		{"empty", func(t *testing.T, w *world) {
			empty := filepath.Join(t.TempDir(), "empty.git")
			w.o.run(w.o.work, "init", "-q", "--bare", empty)
			w.src.URL = w.server.url(empty)
		}, fault.NotFound, []string{"is empty"}},
		{"branch deleted", func(t *testing.T, w *world) {
			w.o.git("push", "-q", "origin", "HEAD:refs/heads/other")
			w.o.run(w.o.bare, "update-ref", "-d", "refs/heads/main")
		}, fault.NotFound, []string{`no branch or tag "main"`, "other"}},
		{"cut while it sends", func(t *testing.T, w *world) {
			noise := make([]byte, 64<<10)
			_, _ = rand.Read(noise)
			w.o.push("more", map[string]string{"big": string(noise)})
			w.server.change(func(s *sshd) {
				s.run = func(c string, ch ssh.Channel) uint32 { return s.shell(c, &shortChannel{ch, 9000}) }
			})
		}, fault.Unavailable, []string{"broke off or is damaged"}},
		{"hangs before it greets", func(t *testing.T, w *world) {
			w.s.cfg.AskTimeout = 50 * time.Millisecond
			w.server.change(func(s *sshd) { s.silent = true })
		}, fault.Exhausted, []string{"did not answer in time"}},
		{"hangs at the command", func(t *testing.T, w *world) {
			release := make(chan bool)
			t.Cleanup(func() { close(release) })
			w.s.cfg.AskTimeout = 200 * time.Millisecond
			w.server.change(func(s *sshd) { s.run = func(string, ssh.Channel) uint32 { <-release; return 0 } })
		}, fault.Exhausted, []string{"did not answer in time"}},
		{"nobody listens", func(t *testing.T, w *world) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			w.src.URL = "ssh://git@" + l.Addr().String() + "/x.git"
		}, fault.Unavailable, []string{"refuses connections"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &world{o: newOrigin(t), s: newSyncer(t)}
			w.server, w.src = w.o.serveSSH()
			first := w.o.push("first", map[string]string{"a": "1"})
			good, dir := w.src, filepath.Join(t.TempDir(), "compiler")
			fetch(t, w.s, good)
			checkout(t, w.s, good, first, dir)
			before := stamp(t, dir)
			tt.spoil(t, w)
			_, _, err := w.s.Fetch(t.Context(), w.src)
			wantFault(t, err, tt.kind, tt.words...)
			if after := stamp(t, dir); after != before {
				t.Errorf("the checkout changed: %s, %s", before, after)
			}
		})
	}
}

// shortChannel breaks off after some bytes.
type shortChannel struct {
	ssh.Channel
	left int
}

func (s *shortChannel) Write(p []byte) (int, error) {
	if s.left -= len(p); s.left < 0 {
		s.Channel.Close()
		return 0, net.ErrClosed
	}
	return s.Channel.Write(p)
}

// After adding the line that the fault shows, the server is known.
func TestSSHUnknownHostTellsTheLine(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	_, src := o.serveSSH()
	o.push("first", map[string]string{"a": "1"})
	src.Trust.KnownHosts = ""
	_, _, err := s.Fetch(t.Context(), src)
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	src.Trust.KnownHosts = "# as the fault said\n" + sshLine(f.Advice) + "\n"
	fetch(t, s, src)
}

// With AcceptNew, the first key is accepted and remembered once, and another key is refused.
func TestSSHAcceptNew(t *testing.T) {
	o := newOrigin(t)
	var lines []string
	s := newSyncer(t, func(c *Config) {
		c.Learned = func(scope, line string) error { lines = append(lines, scope+" "+line); return nil }
	})
	server, src := o.serveSSH()
	o.push("first", map[string]string{"a": "1"})
	src.Trust = Trust{AcceptNew: true, Scope: "shop"}
	fetch(t, s, src)
	if want := []string{"shop " + server.known()}; !slices.Equal(lines, want) {
		t.Errorf("learned %q, want %q", lines, want)
	}
	src.Trust.KnownHosts = server.known()
	fetch(t, s, src)
	if len(lines) != 1 {
		t.Errorf("learned %q", lines)
	}
}

// A server with several keys is asked for the one that is known.
func TestSSHAsksForTheKnownKind(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	server, src := o.serveSSH()
	o.push("first", map[string]string{"a": "1"})
	ecdsa, err := ssh.ParsePrivateKey([]byte(ecdsaHostKey(t)))
	if err != nil {
		t.Fatal(err)
	}
	server.change(func(s *sshd) { s.config.AddHostKey(ecdsa) })
	fetch(t, s, src)
	src.Trust.KnownHosts = knownhosts.Line([]string{server.address}, ecdsa.PublicKey())
	fetch(t, s, src)
}

func TestSSHKeyWithPassphrase(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("first", map[string]string{"a": "1"})
	signer, key := newSigner(t)
	server := newSSHD(t, signer.PublicKey())
	src := Source{URL: server.url(o.bare), Trust: Trust{KnownHosts: server.known()},
		Credentials: Credentials{SSHKey: sshKeyPEM(t, key, "s3cr3t"), SSHPassphrase: "s3cr3t"}}
	fetch(t, s, src)
	src.Credentials.SSHKey = sshKeyPEM(t, key, "") // a passphrase too many does no harm
	fetch(t, s, src)
}

// The server's SSH agent signs if it is configured, and only for sources without a key of
// their own.
func TestSSHAgent(t *testing.T) {
	o := newOrigin(t)
	o.push("first", map[string]string{"a": "1"})
	signer, key := newSigner(t)
	server := newSSHD(t, signer.PublicKey())
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, conn); conn.Close() }()
		}
	}()
	src := Source{URL: server.url(o.bare), Trust: Trust{KnownHosts: server.known()}}
	fetch(t, newSyncer(t, func(c *Config) { c.SSHAgent = socket }), src)
	_, _, err = newSyncer(t).Fetch(t.Context(), src)
	wantFault(t, err, fault.Unauthorized, "no key for it")
	_, other := newSigner(t)
	src.Credentials.SSHKey = sshKeyPEM(t, other, "")
	_, _, err = newSyncer(t, func(c *Config) { c.SSHAgent = socket }).Fetch(t.Context(), src)
	wantFault(t, err, fault.Unauthorized, "refused the SSH key")
}

// When its context ends, a fetch returns at once, and the connection is closed.
func TestSSHCancel(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	server, src := o.serveSSH()
	started, gone := make(chan bool), make(chan bool)
	server.change(func(s *sshd) {
		s.run = func(_ string, ch ssh.Channel) uint32 {
			close(started)
			_, _ = ch.Read(make([]byte, 1)) // until the other side goes
			close(gone)
			return 0
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, _, err := s.Fetch(ctx, src)
	wantFault(t, err, fault.Unavailable, "cancelled")
	<-gone
}

// SSH goes through a proxy where one is set.
func TestSSHThroughAProxy(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	_, src := o.serveSSH()
	o.push("first", map[string]string{"a": "1"})
	via := newTunnel(t, "s3cr3t")
	src.Trust.Proxy = "http://ada:s3cr3t@" + via.address
	fetch(t, s, src)
	if len(via.asked()) != 1 {
		t.Errorf("the proxy was asked for %q", via.asked())
	}
	src.Trust.Proxy = "http://ada:s3cr3t-wrong@" + via.address
	_, _, err := s.Fetch(t.Context(), src)
	wantFault(t, err, fault.Unavailable, "answered with HTTP status 407", "git_proxy")
}
