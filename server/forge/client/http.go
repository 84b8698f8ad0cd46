package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// LimitedError says that a forge wants to be left alone for a while.
type LimitedError struct {
	Until time.Time
	Code  int
}

// Error says until when.
func (e *LimitedError) Error() string {
	return fmt.Sprintf("the forge answered %d: it takes no more calls until %s", e.Code,
		e.Until.UTC().Format(time.RFC3339))
}

func limitOf(err error) *LimitedError {
	var limited *LimitedError
	if errors.As(err, &limited) {
		return limited
	}
	return nil
}

const (
	// maxAnswer bounds what a forge may say in one answer.
	maxAnswer = 16 << 20
	// maxPause bounds how long a forge is believed to want to be left alone.
	maxPause = 2 * time.Hour
	// minPause is how long it is left alone when it does not say.
	minPause = time.Minute
)

// newClient makes the HTTP client that all calls go through.
func newClient(cfg Config) (*http.Client, error) {
	t := &http.Transport{
		TLSHandshakeTimeout:   10 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:     true,
		ResponseHeaderTimeout: cfg.Timeout,
		IdleConnTimeout:       time.Minute,
		DisableKeepAlives:     true, // a client lives for one piece of work
	}
	var proxy *url.URL
	if cfg.Proxy != "" {
		var err error
		if proxy, err = url.Parse(cfg.Proxy); err != nil || proxy.Host == "" {
			return nil, fault.New("forge.New", fault.Invalid, "the setting git_proxy is not the URL of a proxy")
		}
	}
	reach.Dialer{Rules: cfg.Reach, Timeout: 10 * time.Second}.Use(t, proxy)
	if cfg.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(cfg.CA)) {
			return nil, fault.New("forge.New", fault.Invalid, "the setting git_ca_bundle holds no certificate")
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: guarded{t, cfg.UserAgent}, Timeout: cfg.Timeout, CheckRedirect: sameHost}, nil
}

// sameHost follows redirects only to where the token is meant for.
func sameHost(next *http.Request, before []*http.Request) error {
	if first := before[0].URL; next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return errors.New("the forge redirects to another host: correct the repository's URL, or set forge_api")
	}
	if len(before) > 3 {
		return errors.New("the forge redirects without end")
	}
	return nil
}

// guarded bounds answers, and turns those that ask for a pause into a *LimitedError.
type guarded struct {
	next  http.RoundTripper
	agent string
}

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", g.agent)
	answer, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if until, limited := pauseOf(answer, time.Now()); limited {
		_ = answer.Body.Close()
		return nil, &LimitedError{Until: until, Code: answer.StatusCode}
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

// pauseOf reads whether an answer says that there were too many calls, and until when.
func pauseOf(answer *http.Response, now time.Time) (until time.Time, limited bool) {
	h := answer.Header
	after := h.Get("Retry-After")
	spent := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusForbidden: // GitHub says it so
		if after == "" && !spent {
			return until, false
		}
	case http.StatusServiceUnavailable:
		if after == "" {
			return until, false
		}
	default:
		return until, false
	}
	until = now.Add(minPause)
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		until = now.Add(time.Duration(min(seconds, int(maxPause/time.Second))) * time.Second)
	} else if at, err := http.ParseTime(after); err == nil {
		until = at
	} else if spent {
		for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if unix, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && unix > 0 {
				until = time.Unix(unix, 0)
				break
			}
		}
	}
	if until.Before(now) {
		until = now.Add(time.Second)
	}
	if latest := now.Add(maxPause); until.After(latest) {
		until = latest
	}
	return until, true
}
