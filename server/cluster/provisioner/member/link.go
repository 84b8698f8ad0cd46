package member

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/server/agent/trust"
)

// link is the way to the server, with the present certificate. It is an http.RoundTripper.
type link struct {
	authority *x509.CertPool
	log       *slog.Logger
	current   atomic.Pointer[generation]
	ahead     atomic.Int64 // of the server's clock, in nanoseconds
	warned    atomic.Bool
}

// generation has the connections that were made with one certificate.
type generation struct {
	pair      *tls.Certificate
	transport *http.Transport
}

// idle is shorter than the time after which the server closes a connection that is not used, so that no request meets
// the end of one.
const idle = 10 * time.Second

func newLink(authority *x509.CertPool, pair *tls.Certificate, log *slog.Logger) *link {
	l := &link{authority: authority, log: log}
	l.use(pair)
	return l
}

// use makes connections with another certificate from now on. Requests that are under way end as they began.
func (l *link) use(pair *tls.Certificate) {
	settings := trust.TLS(l.authority, l.warn, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair, nil
	})
	old := l.current.Swap(&generation{pair, &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, TLSHandshakeTimeout: 20 * time.Second,
		IdleConnTimeout: idle, MaxIdleConnsPerHost: 16,
	}})
	if old != nil {
		old.transport.CloseIdleConnections()
	}
}

func (l *link) now() *generation { return l.current.Load() }

func (l *link) warn(problem string) {
	if l.warned.CompareAndSwap(false, true) {
		l.log.Warn("the server's certificate is not valid by the clock of this machine, which may be wrong; "+
			"it is accepted, since it is one of the server's own authority", "problem", problem)
	}
}

// RoundTrip sends a request.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	g := l.now()
	answer, err := g.transport.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized && l.now() != g && r.GetBody != nil {
		// The certificate was replaced while the request was under way. The server has refused it before it read
		// anything.
		body, broken := r.GetBody()
		if broken != nil {
			return answer, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
		_ = answer.Body.Close()
		again := r.Clone(r.Context())
		again.Body = body
		answer, err = l.now().transport.RoundTrip(again)
	}
	if err == nil {
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			l.ahead.Store(int64(time.Until(at)))
		}
	}
	return answer, err
}

// CloseIdleConnections is for http.Client.
func (l *link) CloseIdleConnections() { l.now().transport.CloseIdleConnections() }

// serverTime returns what time it is at the server.
func (l *link) serverTime() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// parsePair reads a key and a certificate in PEM.
func parsePair(text []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	if pair.Leaf == nil {
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	return &pair, err
}

// firstBlock returns the first block of a PEM, or nothing.
func firstBlock(text string) []byte {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	return block.Bytes
}
