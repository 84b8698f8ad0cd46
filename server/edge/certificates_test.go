package edge

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "authority.pem")}
	a.cert, a.key = a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	})
	a.write(a.file, "CERTIFICATE", a.cert.Raw)
	return a
}

// sign makes a certificate and its key. The authority's own one is signed by itself.
func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate for ordain.lan and localhost, and its key, into files.
func (a *authority) issue(files Files, serial int64, until time.Time) {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "ordain"},
		DNSNames: []string{"ordain.lan", "*.ordain.lan", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(files.Certificate, "CERTIFICATE", cert.Raw)
	a.write(files.Key, "PRIVATE KEY", der)
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// encrypted serves hello with these settings, and returns the address.
func encrypted(t *testing.T, settings *tls.Config, change func(*Config)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, change)
	s := g.Server(hello, slog.New(slog.DiscardHandler))
	s.TLSConfig = settings
	ended := make(chan error)
	go func() { ended <- s.ServeTLS(g.Listen(l), "", "") }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return l.Addr().String()
}

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// The files of the certificate change while the server runs, as certbot changes them: the next connection gets the new
// certificate. A pair that does not fit, one that has expired and one of another authority are not used: the log says
// so once for each, and connections go on with the previous certificate.
func TestCertificateIsReplaced(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	files := Files{
		Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Authority: ca.file,
	}
	later := time.Now().Add(time.Hour)
	ca.issue(files, 11, later)
	var log journal
	c, err := OpenCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address := encrypted(t, c.TLS(), nil)
	served := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.pool(), ServerName: "ordain.lan"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	expect := func(serial int64, complaints int) {
		t.Helper()
		for range 3 {
			if got := served(); got != serial {
				t.Errorf("the certificate %d is served, want %d", got, serial)
			}
		}
		if got := strings.Count(log.String(), "cannot be used"); got != complaints {
			t.Errorf("the log complains %d times, want %d:\n%s", got, complaints, log.String())
		}
	}
	expect(11, 0)
	ca.issue(files, 12, later)
	expect(12, 0)
	if err := os.WriteFile(files.Key, []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(12, 1)
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	expect(12, 2)
	ca.issue(files, 13, time.Now().Add(-time.Minute))
	expect(12, 3)
	newAuthority(t).issue(files, 14, later)
	expect(12, 4)
	ca.issue(files, 15, later)
	expect(15, 4)
	if names := c.Names(); len(names) != 2 || names[0] != "ordain.lan" || names[1] != "localhost" {
		t.Errorf("the names are %q", names)
	}
	if strings.Contains(log.String(), "half a k") {
		t.Error("the log shows a key")
	}
	newAuthority(t).issue(files, 16, later)
	if _, err := OpenCertificate(files, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "ssl-cert-file") {
		t.Errorf("a server starts with a certificate that its clients do not trust: %v", err)
	}
}

// The server speaks TLS 1.2 and newer, and HTTP/2. Plain HTTP on its port gets a clear answer. Browsers hear that they
// shall come back encrypted, unless the name is one that every machine has.
func TestEncryptedConnections(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	files := Files{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	ca.issue(files, 1, time.Now().Add(time.Hour))
	c, err := OpenCertificate(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	address := encrypted(t, c.TLS(), func(c *Config) { c.HTTPS, c.AllowedHosts = true, []string{"ordain.lan"} })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	for host, strict := range map[string]bool{"ordain.lan": true, "localhost": false, "127.0.0.1": false} {
		client := &http.Client{Transport: &http.Transport{
			DialContext: dial, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.pool()},
		}}
		res, err := client.Get("https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		client.CloseIdleConnections()
		if res.ProtoMajor != 2 || string(text) != "hello" {
			t.Errorf("%s: %s, %s %q", host, res.Proto, res.Status, text)
		}
		if got := res.Header.Get("Strict-Transport-Security"); strict != (got == "max-age=31536000") {
			t.Errorf("%s: Strict-Transport-Security is %q", host, got)
		}
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{
		RootCAs: ca.pool(), ServerName: "ordain.lan", MaxVersion: tls.VersionTLS11,
	}); err == nil {
		t.Error("the server speaks TLS 1.1")
	}
	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fmt.Fprint(plain, "GET / HTTP/1.1\r\nHost: ordain.lan\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(plain), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != 400 || !strings.Contains(string(text), "HTTPS") {
		t.Errorf("plain HTTP is answered %s %q", res.Status, text)
	}
}
