package gitsync

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// newHTTPClient makes a client for all fetches with the same trust.
func newHTTPClient(t Trust, within *reach.Rules) (*http.Client, error) {
	via, err := parseProxy(t.Proxy)
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CABundle != "" {
		if secure.RootCAs, err = x509.SystemCertPool(); err != nil {
			secure.RootCAs = x509.NewCertPool()
		}
		if !secure.RootCAs.AppendCertsFromPEM([]byte(t.CABundle)) {
			return nil, fault.New("gitsync.HTTP", fault.Invalid,
				"the setting git_ca_bundle holds no certificate that can be read").
				Hint("set it to the certificate of the authority, as PEM text")
		}
	}
	out := &http.Transport{
		TLSHandshakeTimeout:   15 * time.Second,
		TLSClientConfig:       secure,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
	}
	reach.Dialer{Rules: within, Timeout: dialTimeout}.Use(out, via)
	return &http.Client{Transport: shortErrors{out}}, nil
}

// clientKey is the part of a Trust that HTTP clients depend on.
type clientKey struct{ bundle, proxy string }

// maxClients is how many clients are kept. It is bounded because settings change.
const maxClients = 64

// client returns the HTTP client for a trust; equal ones share a client.
func (s *Syncer) client(t Trust) (*http.Client, error) {
	key := clientKey{t.CABundle, t.Proxy}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[key]; c != nil {
		return c, nil
	}
	c, err := newHTTPClient(t, s.cfg.Reach)
	if err != nil {
		return nil, err
	}
	if len(s.clients) >= maxClients {
		for old, c := range s.clients {
			c.CloseIdleConnections()
			delete(s.clients, old)
			break
		}
	}
	s.clients[key] = c
	return c, nil
}

// closeIdle closes the idle connections.
func (s *Syncer) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
}

// shortErrors cuts off the bodies of error answers, because go-git reads them whole.
type shortErrors struct{ http.RoundTripper }

func (s shortErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode >= 300 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 4096), res.Body}
	}
	return res, err
}

// CloseIdleConnections reaches the transport through http.Client.
func (s shortErrors) CloseIdleConnections() {
	if t, ok := s.RoundTripper.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

func (s *Syncer) openHTTP(p place) (*web, error) {
	endpoint, err := transport.NewEndpoint(p.shown)
	if err != nil {
		return nil, err
	}
	// go-git appends /info/refs to this path as it is.
	if u, err := url.Parse(p.shown); err == nil {
		endpoint.Path = strings.TrimRight(u.EscapedPath(), "/")
	}
	auth := p.basicAuth()
	var method transport.AuthMethod
	if auth != nil {
		method = auth
	}
	client, err := s.client(p.trust)
	if err != nil {
		return nil, err
	}
	session, err := githttp.NewClient(client).NewUploadPackSession(endpoint, method)
	if err != nil {
		return nil, err
	}
	both := &httpSession{
		packSession: session, v2: &v2Session{client: client, base: endpoint.String(), auth: auth, place: p},
	}
	return &web{place: p, session: both, depth: p.depth}, nil
}
