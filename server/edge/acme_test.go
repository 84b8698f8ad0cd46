package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"ordain.dev/ordain/internal/testing/tool"
)

// pebbleVersion is the version of Let's Encrypt's ACME server for tests. It is not in go.mod, because nothing else
// needs what it needs.
const pebbleVersion = "v2.10.1"

// buildPebble returns the path of pebble, which is built once per machine.
func buildPebble(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "ordain-test", "pebble-"+pebbleVersion)
	program := filepath.Join(dir, "pebble")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.Command(tool.Need(t, "go"), "install", "github.com/letsencrypt/pebble/v2/cmd/pebble@"+pebbleVersion)
	build.Dir, build.Env = t.TempDir(), append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		tool.Missing(t, "pebble cannot be built: %v\n%s", err, out)
	}
	return program
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// everythingIsHere answers all questions for addresses with 127.0.0.1, over TCP, and returns where it can be asked.
func everythingIsHere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerOnce(c)
		}
	}()
	return l.Addr().String()
}

func answerOnce(c net.Conn) {
	defer c.Close()
	var size uint16 // stands before each message
	if binary.Read(c, binary.BigEndian, &size) != nil {
		return
	}
	question := make([]byte, size)
	var m dnsmessage.Message
	if _, err := io.ReadFull(c, question); err != nil || m.Unpack(question) != nil || len(m.Questions) != 1 {
		return
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	if answer, err := m.Pack(); err == nil {
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

// pebble is an ACME server that runs.
type pebble struct {
	t          *testing.T
	directory  string
	management string
	ca         *authority // of its own certificate
	stop       func()
}

// startPebble starts an ACME server that finds the server of a domain on this port.
func startPebble(t *testing.T, port int) *pebble {
	t.Helper()
	program, dir := buildPebble(t), t.TempDir()
	ca := newAuthority(t)
	files := Files{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	ca.issue(files, 1, time.Now().Add(time.Hour))
	listen := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(t)) }
	directory, management := listen(), listen()
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": directory, "managementListenAddress": management,
		"certificate": files.Certificate, "privateKey": files.Key, "tlsPort": port, "keyAlgorithm": "ecdsa",
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	var out journal
	c := exec.Command(program, "-config", file, "-dnsserver", everythingIsHere(t))
	c.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pebble{t: t, directory: "https://" + directory + "/dir", management: "https://" + management, ca: ca}
	p.stop = func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", management)
		if err == nil {
			_ = conn.Close()
			return p
		}
		if time.Now().After(until) {
			t.Fatalf("pebble does not start: %v\n%s", err, out.String())
		}
	}
}

// roots returns the authority of the certificates that pebble signs.
func (p *pebble) roots() *x509.CertPool {
	p.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.ca.pool()}}}
	defer client.CloseIdleConnections()
	res, err := client.Get(p.management + "/roots/0")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		p.t.Fatalf("pebble has no root: %v %s", err, text)
	}
	return pool
}

// A server without a certificate gets one from a real ACME server when the first client connects. It keeps it, readable
// for nobody else: a restarted server serves it again although the ACME server is gone. For other names it asks for
// none.
func TestCertificateFromACME(t *testing.T) {
	port := freePort(t)
	p := startPebble(t, port)
	roots := p.roots()
	acme := ACME{
		Domains: []string{"ordain.example.org"}, Email: "ops@example.org", Directory: p.directory,
		Authority: p.ca.file, Cache: filepath.Join(t.TempDir(), "state", ".certificates"),
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	serve := func() (stop func()) {
		t.Helper()
		settings, err := acme.TLS()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		g := guard(t, func(c *Config) { c.AllowedHosts = acme.Domains })
		s := g.Server(hello, slog.New(slog.DiscardHandler))
		s.TLSConfig = settings
		ended := make(chan error)
		go func() { ended <- s.ServeTLS(g.Listen(l), "", "") }()
		return func() {
			_ = s.Close()
			<-ended
		}
	}
	ask := func(name string) (*x509.Certificate, error) {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
	}
	stop := serve()
	first, err := ask("ordain.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask("evil.example.org"); err == nil {
		t.Error("there is a certificate for a name that is not the server's")
	}
	stop()
	p.stop()
	defer serve()()
	again, err := ask("ordain.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if !again.Equal(first) {
		t.Error("the restarted server has another certificate")
	}
	files := 0
	if err := filepath.WalkDir(acme.Cache, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		files++
		return err
	}); err != nil || files < 3 { // the folder, the account's key, the certificate
		t.Errorf("%d files, %v", files, err)
	}
}
