package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/filestamp"
)

// Files are the files of a certificate.
type Files struct {
	Certificate string // with the chain up to the authority, in PEM
	Key         string
	Authority   string // may be empty; else clients trust only certificates of these authorities
}

// Certificate is the server's certificate from files. When they change it is read again, so a renewal needs no
// restart. It is safe for concurrent use.
type Certificate struct {
	files Files
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	stamps [3]filestamp.Stamp // of the files when they were last read
	using  *tls.Certificate
}

// OpenCertificate reads the files; it fails when they are unusable.
func OpenCertificate(files Files, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{files: files, log: log, now: time.Now}
	c.stamps = c.stamp()
	using, err := c.read()
	if err != nil {
		return nil, fault.Wrap("edge.OpenCertificate", fault.Invalid, err).
			Say("the server's certificate cannot be used").
			Hint("[server] ssl-cert-file names the certificate with its chain, ssl-key-file its key, both in PEM")
	}
	c.using = using
	if c.expired(using) {
		log.Warn("the server's certificate has expired", "certificate", files.Certificate, "at", using.Leaf.NotAfter)
	}
	return c, nil
}

// TLS returns the settings of connections that use the certificate.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// Names returns the names of hosts that the certificate is for, without those with a wildcard.
func (c *Certificate) Names() (names []string) {
	for _, name := range c.current().Leaf.DNSNames {
		if !strings.Contains(name, "*") {
			names = append(names, name)
		}
	}
	return names
}

// current returns the certificate to use, after it has read files that changed. When the new ones cannot be used, the
// old certificate stays, and the log says so once for each change.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps := c.stamp()
	if stamps == c.stamps {
		return c.using
	}
	c.stamps = stamps
	renewed, err := c.read()
	if err == nil && c.expired(renewed) {
		err = fmt.Errorf("it expired at %s", renewed.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		c.log.Error(
			"the certificate's files changed and cannot be used; the server goes on with the previous certificate",
			"certificate",
			c.files.Certificate,
			"key",
			c.files.Key,
			"until",
			c.using.Leaf.NotAfter,
			"error",
			err,
		)
		return c.using
	}
	c.using = renewed
	c.log.Info("the server uses a new certificate", "certificate", c.files.Certificate, "until", renewed.Leaf.NotAfter)
	return renewed
}

// stamp returns what the files look like now. A file that cannot be looked at is like one that is gone.
func (c *Certificate) stamp() (stamps [3]filestamp.Stamp) {
	for i, path := range []string{c.files.Certificate, c.files.Key, c.files.Authority} {
		if path != "" {
			stamps[i], _ = filestamp.Of(path)
		}
	}
	return stamps
}

func (c *Certificate) expired(pair *tls.Certificate) bool { return c.now().After(pair.Leaf.NotAfter) }

// read reads the files and checks that clients will accept what is in them.
func (c *Certificate) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return nil, err
	}
	if pair.Leaf == nil { // GODEBUG x509keypairleaf=0
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, err
		}
	}
	if c.files.Authority == "" {
		return &pair, nil
	}
	roots, err := ReadAuthorities(c.files.Authority)
	if err != nil {
		return nil, err
	}
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if authority, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(authority)
		}
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: pair.Leaf.NotAfter})
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s is not one of the authorities in %s: %w",
			c.files.Certificate, c.files.Authority, err)
	}
	return &pair, nil
}

// ReadAuthorities reads a file with certificates of authorities in PEM.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// ACME says how the server gets certificates by itself.
type ACME struct {
	Domains   []string // that certificates are asked for
	Email     string   // where the authority writes to; may be empty
	Directory string   // URL of the authority; empty: Let's Encrypt
	Authority string   // file with the authorities that the directory's own certificate is of; may be empty
	Cache     string   // folder for the account's key and the certificates
}

// TLS returns the settings of connections whose certificates come from the authority. The first connection to a domain
// waits until the authority has connected to the server's port 443 (the challenge tls-alpn-01) and signed the
// certificate.
func (a ACME) TLS() (*tls.Config, error) {
	authority := &acme.Client{DirectoryURL: a.Directory}
	if a.Authority != "" {
		roots, err := ReadAuthorities(a.Authority)
		if err != nil {
			return nil, fault.Wrap("edge.ACME", fault.Invalid, err).
				Say("[server] acme-ca-file cannot be used")
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		authority.HTTPClient = &http.Client{Transport: transport, Timeout: time.Minute}
	}
	if err := os.MkdirAll(a.Cache, 0o700); err != nil {
		return nil, fault.Disk("edge.ACME", a.Cache, err)
	}
	manager := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(a.Cache), HostPolicy: a.allow, Email: a.Email,
		Client: authority,
	}
	settings := manager.TLSConfig()
	settings.MinVersion = tls.VersionTLS12
	return settings, nil
}

// allow keeps strangers from making the server ask for certificates of other names.
func (a ACME) allow(_ context.Context, host string) error {
	for _, domain := range a.Domains {
		if strings.EqualFold(host, domain) {
			return nil
		}
	}
	return fmt.Errorf("no certificate is asked for %.80q: it is not one of [server] acme-domains", host)
}
