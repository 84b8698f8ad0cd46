// Package ca is the small certificate authority of the agent server: it signs the
// certificates by which the server knows agents, and the server's own when the
// operator has none. It knows keys and certificates, and no database: package
// authority decides who gets which.
//
//	CA (P-256, 20 years, may only sign URIs ordain://agent/…)
//	├─▶ agents: URI ordain://agent/<environment>/<name>, for clients only
//	├─▶ provisioners: another scheme and organisation (provisioner.go), for clients only
//	└─▶ agent server: its hosts, for servers only, dated so that wrong clocks do no harm
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	scheme = "ordain"
	host   = "agent"

	day  = 24 * time.Hour
	year = 365 * day
	// backdated is how long before it is made a certificate of the CA or of the server is valid, for agents whose clock
	// is late; that of agents is only checked by servers.
	backdated      = 10 * year
	lifetime       = 20 * year
	serverLifetime = 10 * year
	// Skew is how long before it is made a certificate of a client is valid.
	Skew = 5 * time.Minute
)

// Identity is who an agent is.
type Identity struct {
	Environment uuid.UUID
	Agent       string
}

// URI returns the form in which the identity is in certificates.
func (i Identity) URI() *url.URL {
	path := "/" + i.Environment.String() + "/"
	return &url.URL{Scheme: scheme, Host: host, Path: path + i.Agent, RawPath: path + url.PathEscape(i.Agent)}
}

func (i Identity) String() string {
	return "agent " + i.Agent + " of environment " + i.Environment.String()
}

func identityOf(u *url.URL) (i Identity, err error) {
	wrong := errors.New("the certificate has no identity of an agent")
	env, name, ok := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.Scheme != scheme || u.Host != host || !ok || strings.Contains(name, "/") {
		return i, wrong
	}
	if i.Environment, err = uuid.Parse(env); err != nil {
		return i, wrong
	}
	if i.Agent, err = url.PathUnescape(name); err != nil || i.Agent == "" {
		return i, wrong
	}
	return i, nil
}

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	roots       *x509.CertPool
}

// Make makes an authority, and returns its certificate and its key, both in DER.
func Make(now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Ordain agents"},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true, PermittedURIDomains: []string{host},
	}
	certificate, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return certificate, key, err
}

// Open returns the authority with a certificate and its key.
func Open(certificate, key []byte) (*Authority, error) {
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	private, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	a := &Authority{certificate: parsed, roots: x509.NewCertPool()}
	var ok bool
	if a.key, ok = private.(*ecdsa.PrivateKey); !ok || !a.key.PublicKey.Equal(parsed.PublicKey) {
		return nil, errors.New("the key of the agents' CA is not that of its certificate")
	}
	a.roots.AddCert(parsed)
	return a, nil
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() string { return encode(a.certificate.Raw) }

// Hash returns the SHA-256 of the certificate of the authority, in hexadecimal.
func (a *Authority) Hash() string { return Hash(a.certificate.Raw) }

// Hash returns the SHA-256 of a certificate in DER, in hexadecimal.
func Hash(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

func encode(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// serial returns a random number of 127 bits.
func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic("no random numbers: " + err.Error()) // crypto/rand never fails
	}
	return n.Add(n, big.NewInt(1))
}

// Issued is a certificate of an agent.
type Issued struct {
	PEM     string
	Serial  string // hexadecimal
	Made    time.Time
	Expires time.Time
}

// SignAgent makes the certificate that a request in PEM asks for. Only the key is taken from the request.
func (a *Authority) SignAgent(request string, who Identity, now time.Time, lifetime time.Duration) (Issued, error) {
	return a.signClient(request, pkix.Name{CommonName: "Ordain agent"}, who.URI(), now, lifetime)
}

// signClient makes a certificate for a client.
func (a *Authority) signClient(
	request string, subject pkix.Name, identity *url.URL, now time.Time, lifetime time.Duration,
) (Issued, error) {
	block, _ := pem.Decode([]byte(request))
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return Issued{}, errors.New("the certificate request is not in PEM, as CERTIFICATE REQUEST")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Issued{}, fmt.Errorf("the certificate request cannot be read: %w", err)
	}
	if key, ok := asked.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return Issued{}, errors.New("the certificate request has no ECDSA key on the curve P-256")
	}
	if err := asked.CheckSignature(); err != nil {
		return Issued{}, errors.New("the certificate request is not signed with its own key")
	}
	out := Issued{Made: now.UTC(), Expires: now.Add(lifetime).UTC().Truncate(time.Second)}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: subject, URIs: []*url.URL{identity},
		NotBefore: now.Add(-Skew), NotAfter: out.Expires, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, asked.PublicKey, a.key)
	if err != nil {
		return Issued{}, err
	}
	out.PEM, out.Serial = encode(der), hex.EncodeToString(template.SerialNumber.Bytes())
	return out, nil
}

// ErrExpired: the certificate is one of this authority, and has expired.
var ErrExpired = errors.New("the certificate has expired")

// Identify returns whom a certificate is of, and its serial number, if it is valid at a time.
func (a *Authority) Identify(c *x509.Certificate, now time.Time) (who Identity, serial string, err error) {
	if isProvisioner(c) {
		return who, "", errors.New("the certificate is one of a provisioner, and not of an agent")
	}
	if err := a.verify(c, now); errors.Is(err, ErrExpired) {
		return who, "", err
	} else if err != nil {
		return who, "", fmt.Errorf("the certificate is not one of this server's agents: %w", err)
	}
	if len(c.URIs) != 1 {
		return Identity{}, "", errors.New("the certificate has no identity of an agent")
	}
	who, err = identityOf(c.URIs[0])
	return who, hex.EncodeToString(c.SerialNumber.Bytes()), err
}

// verify checks that a certificate is one that this authority made for a client, and is valid at a time.
func (a *Authority) verify(c *x509.Certificate, now time.Time) error {
	_, err := c.Verify(x509.VerifyOptions{
		Roots: a.roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.After(c.NotAfter) &&
		c.CheckSignatureFrom(a.certificate) == nil {
		return ErrExpired
	}
	return err
}

// SignServer makes a key and a certificate for a server with these names and addresses.
func (a *Authority) SignServer(hosts []string, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Ordain agent server"},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(serverLifetime), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, nil
}

// Request makes a key and a certificate request, both in PEM, as agents do.
func Request() (request, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return "", "", err
	}
	coded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	request = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return request, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded})), nil
}
