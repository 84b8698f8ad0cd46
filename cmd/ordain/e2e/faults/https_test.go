package faults

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"

	"github.com/google/uuid"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
)

// selfSigned writes a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"ordain.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: public}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A server listens on all addresses, with a certificate, and people log in. Its links are https links with the name in
// the certificate, its cookie is for HTTPS only, the command line's client needs to know the authority, and what
// somebody does through a proxy is recorded with their own address.
func TestServerWithHTTPS(t *testing.T) {
	tool.Heavy(t, "runs servers")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	selfSigned(t, cert, key)
	w := lab.OwnWorld(t, func(o *config.Config) {
		o.BindAddress, o.Auth, o.CertFile, o.KeyFile = "0.0.0.0", config.AuthDatabase, cert, key
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	console, err := url.Parse(w.Server.URL())
	if err != nil || console.Scheme != "https" || console.Hostname() != "ordain.test" {
		t.Fatalf("the server is at %s", w.Server.URL())
	}
	first := w.Server.FirstLink()
	if !strings.HasPrefix(first, w.Server.URL()+"/first/") {
		t.Fatal("the link for the first administrator is no link to the server")
	}
	local := "https://127.0.0.1:" + console.Port()
	stranger, err := client.New(local)
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.Call(t.Context(), http.MethodGet, "/api/v2/project", "", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "--ca") {
		t.Errorf("a client that does not know the authority: %v", err)
	}
	if err := stranger.Trust(cert); err != nil {
		t.Fatal(err)
	}
	if err = stranger.Call(t.Context(), http.MethodGet, "/api/v2/project", "", nil, nil); !fault.Is(
		err, fault.Unauthorized) {
		t.Errorf("a client that does know it: %v", err)
	}

	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	browser := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer browser.CloseIdleConnections()
	send := func(method, path, kind, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, local+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = console.Host
		r.Header.Set("Content-Type", kind)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body = io.NopCloser(bytes.NewReader(answer))
		return res
	}
	const form, password = "application/x-www-form-urlencoded", "correct horse battery"
	person := url.Values{"name": {"ada"}, "password": {password}, "again": {password}}.Encode()
	if res := send("POST", strings.TrimPrefix(first, w.Server.URL()), form, person); res.StatusCode != 303 {
		t.Fatal(res.Status)
	}
	login := send("POST", "/login", form, person, "X-Forwarded-Proto", "https")
	if got := login.Header.Get("Set-Cookie"); login.StatusCode != 303 || !strings.Contains(got, "; Secure") {
		t.Errorf("%s, the cookie is %q", login.Status, got)
	}
	if got := login.Header.Get("Strict-Transport-Security"); got == "" {
		t.Error("browsers do not hear that they shall come back with HTTPS")
	}
	var token struct{ Data struct{ Token string } }
	res := send("POST", "/api/v2/login", "application/json", `{"username": "ada", "password": "`+password+`"}`)
	if err := json.NewDecoder(res.Body).Decode(&token); err != nil || token.Data.Token == "" {
		t.Fatal(res.Status, err)
	}
	create := func(name string, headers ...string) {
		t.Helper()
		headers = append(headers, "Authorization", "Bearer "+token.Data.Token)
		res := send("PUT", "/api/v2/project", "application/json", `{"name": "`+name+`"}`, headers...)
		if res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	create("direct")
	create("through-a-proxy", "X-Forwarded-For", "10.9.9.9, 203.0.113.9")
	trail, err := w.Store.AuditAfter(t.Context(), uuid.Nil, uuid.Nil, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]string{}
	for _, e := range trail {
		if e.Verb == "project.create" {
			from[e.ProjectName] = e.Actor + " " + e.Address
		}
	}
	if from["direct"] != "ada 127.0.0.1" || from["through-a-proxy"] != "ada 203.0.113.9" {
		t.Errorf("the trail has %v", from)
	}
}

// With ACME, the server is up before it has a certificate, and knows its name. It asks the authority for none when
// somebody names another host. What it will keep is for nobody else.
func TestServerWithACME(t *testing.T) {
	tool.Heavy(t, "runs servers")
	w := lab.OwnWorld(t, func(o *config.Config) {
		o.BindAddress, o.Auth, o.ACMEDomains = "0.0.0.0", config.AuthDatabase, []string{"ordain.test"}
		o.ACMEDirectory = "https://127.0.0.1:1/dir" // nobody answers there
	})
	console, err := url.Parse(w.Server.URL())
	if err != nil || console.Scheme != "https" || console.Hostname() != "ordain.test" {
		t.Fatalf("the server is at %s", w.Server.URL())
	}
	info, err := os.Stat(w.Server.Layout().Certificates())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of certificates: %v, %v", info, err)
	}
	for _, name := range []string{"evil.test", "ordain.test"} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+console.Port(), &tls.Config{ServerName: name})
		if err == nil {
			conn.Close()
			t.Errorf("there is a certificate for %s", name)
		}
	}
}
