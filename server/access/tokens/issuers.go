package tokens

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// Bounds of what issuers are asked for.
const (
	issuerTimeout = 10 * time.Second
	issuerAnswer  = 1 << 20
	askAgainAfter = 30 * time.Second // the same address; tokens with made-up key ids would have it asked all the time
	maxIssuers    = 100
	providerTime  = time.Hour // after which an issuer's description is read again
)

// issuers knows the keys of issuers. It reads the description of an issuer when it is first needed; go-oidc then reads
// its keys, and reads them again when a token names a key that is not known.
type issuers struct {
	client *http.Client
	mu     sync.Mutex
	known  map[string]*issuer
}

type issuer struct {
	mu       sync.Mutex
	provider *oidc.Provider
	failed   error
	read     time.Time
}

func newIssuers(within *reach.Rules) *issuers {
	return &issuers{client: newClient(issuerTimeout, within, nil), known: map[string]*issuer{}}
}

// verifier returns what verifies the tokens of an issuer for an audience.
func (i *issuers) verifier(address, audience string, now func() time.Time) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	one := i.known[address]
	if one == nil {
		if len(i.known) >= maxIssuers {
			clear(i.known)
		}
		one = &issuer{}
		i.known[address] = one
	}
	i.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	age := time.Since(one.read)
	if one.provider == nil && age > askAgainAfter || one.provider != nil && age > providerTime {
		// The provider keeps the context for later requests, which outlive this call.
		p, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), address)
		one.read, one.failed = time.Now(), err
		if err == nil {
			one.provider = p
		}
	}
	if one.provider == nil {
		return nil, fault.Wrap("tokens.issuer", fault.Unavailable, one.failed).
			Say("the issuer " + address + " cannot be asked for its keys").
			Hint("check its address, and whether this server can reach it")
	}
	return one.provider.Verifier(&oidc.Config{
		ClientID: audience, Now: now,
		SupportedSigningAlgs: []string{
			oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.PS256, oidc.EdDSA,
		},
	}), nil
}

// checkIssuer checks the address of an issuer.
func checkIssuer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(address) > 500 ||
		u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u)) {
		return fault.New("tokens.issuer", fault.Invalid, "the address of an issuer begins with https://, such as "+
			"https://token.actions.githubusercontent.com or https://gitlab.com")
	}
	return nil
}

func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// newClient returns a client that reads descriptions and keys. It follows no redirects and reads bounded answers.
// Only an issuer whose address says so may be on this machine.
func newClient(timeout time.Duration, within *reach.Rules, change func(*http.Transport)) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	reach.Dialer{Rules: within, Timeout: timeout}.Use(t, nil)
	elsewhere, here := t.DialContext, *within
	here.Allow = append(slices.Clip(here.Allow), reach.Loopback()...)
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if isLoopback(&url.URL{Host: address}) {
			return reach.Dialer{Rules: &here, Timeout: timeout}.DialContext(ctx, network, address)
		}
		return elsewhere(ctx, network, address)
	}
	t.MaxResponseHeaderBytes = 64 << 10
	if change != nil {
		change(t)
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     &sparing{next: t, answers: map[string]answer{}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sparing asks the same address at most every askAgainAfter, and answers with what it got then.
type sparing struct {
	next    http.RoundTripper
	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
}

func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	s.mu.Lock()
	a, ok := s.answers[address]
	s.mu.Unlock()
	if !ok || time.Since(a.at) > askAgainAfter {
		response, err := s.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, issuerAnswer+1))
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > issuerAnswer {
			return nil, fmt.Errorf("the answer of %s is larger than %d bytes", r.URL.Host, issuerAnswer)
		}
		a = answer{response.StatusCode, response.Header, body, time.Now()}
		s.mu.Lock()
		if len(s.answers) >= maxIssuers {
			clear(s.answers)
		}
		s.answers[address] = a
		s.mu.Unlock()
	}
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Header: a.header.Clone(), Request: r,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}
