// Package trust is how a program that has a join token finds out that it talks to the
// server of the token, and keeps to it. Agents and provisioners use it.
//
//	token ─ Fetch ─▶ the CA with the hash of the token ─ TLS ─▶ connections to the server of this CA
package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/protocol"
)

// Fetch gets the CA certificate that the token names, over a connection that proves nothing: the hash does.
// Without one in the token, the authorities of the machine decide, and it returns nil.
func Fetch(ctx context.Context, token protocol.JoinToken) (*x509.CertPool, error) {
	const op = "trust.Fetch"
	if token.CA == "" {
		return nil, nil
	}
	address := strings.TrimRight(token.URL, "/") + protocol.AuthorityPath
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err).Say("the join token has no usable address")
	}
	client := &http.Client{Transport: Transport(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})}
	answer, err := client.Do(r)
	if err != nil {
		return nil, Unreachable(op, token.URL, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, Unreachable(op, token.URL, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fault.New(op, fault.Unavailable, token.URL+" is not an agent server: "+Refusal(answer, text))
	}
	block, _ := pem.Decode(text)
	if block == nil || protocol.Hash(block.Bytes) != token.CA {
		return nil, fault.New(op, fault.Unauthorized, "the server at "+token.URL+" is not the one that the join token "+
			"comes from: its authority has another certificate").
			Hint("something between here and the server may answer in its place; the token was not sent")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(block))
	return pool, nil
}

// Unreachable is the error for a server that does not answer while a token is being used.
func Unreachable(op, url string, err error) error {
	return fault.Wrap(op, fault.Unavailable, err).Say("the agent server at " + url + " cannot be reached").
		Hint("the token is not used up: try again when the address can be reached from here")
}

// TLS checks the server's certificate as Go does, with one exception: a certificate that is only out of its time
// is accepted, because the clock of the machine may be wrong, and because it
// can come from the server's own authority only.
func TLS(
	authority *x509.CertPool,
	warn func(string),
	client func(*tls.CertificateRequestInfo) (*tls.Certificate, error),
) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: client}
	if authority == nil {
		return c
	}
	c.InsecureSkipVerify = true // VerifyConnection does it
	c.VerifyConnection = func(s tls.ConnectionState) error {
		chain := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			chain.AddCert(cert)
		}
		leaf := s.PeerCertificates[0]
		o := x509.VerifyOptions{DNSName: s.ServerName, Roots: authority, Intermediates: chain}
		_, err := leaf.Verify(o)
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
			o.CurrentTime = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
			if _, again := leaf.Verify(o); again == nil {
				warn(err.Error())
				return nil
			}
		}
		return err
	}
	return c
}

// Transport makes connections with a TLS configuration and nothing that is shared.
func Transport(c *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: c, TLSHandshakeTimeout: 20 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, DisableKeepAlives: true,
	}
}

// Refusal returns what a server said, for people.
func Refusal(r *http.Response, body []byte) string {
	var said protocol.Refusal
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		return said.Message
	}
	return "it answers " + r.Status
}
