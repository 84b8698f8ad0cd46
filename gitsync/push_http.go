package gitsync

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"ordain.dev/ordain/internal/fault"
)

// webPush pushes over HTTP.
type webPush struct {
	client *http.Client
	base   string // URL of the repository, without a slash at its end
	auth   *githttp.BasicAuth
}

func (s *Syncer) httpPush(p place) (pushSession, error) {
	client, err := s.client(p.trust)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(p.shown)
	if err != nil {
		return nil, fault.New(opWrite, fault.Invalid, "the Git URL is malformed")
	}
	return &webPush{client: client, base: u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"),
		auth: p.basicAuth()}, nil
}

// basicAuth returns the credentials for HTTP; nil for none.
func (p place) basicAuth() *githttp.BasicAuth {
	c := p.credentials
	if c.Username == "" && c.Password == "" {
		return nil
	}
	if c.Username == "" {
		c.Username = "git" // with a token, forges accept any user name, but it must not be empty
	}
	return &githttp.BasicAuth{Username: c.Username, Password: c.Password}
}

// AdvertisedReferencesContext implements pushSession.
func (w *webPush) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/info/refs?service=git-receive-pack", nil)
	if err != nil {
		return nil, err
	}
	res, err := w.do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	// A redirect, which http.Client followed without the credentials if it led to another host.
	if end := res.Request.URL; end.Host != req.URL.Host || end.Path != req.URL.Path || end.Scheme != req.URL.Scheme {
		at, ok := strings.CutSuffix(end.EscapedPath(), "/info/refs")
		if !ok {
			return nil, errNotGit
		}
		if end.Host != req.URL.Host || end.Scheme != req.URL.Scheme && end.Scheme != "https" {
			w.auth = nil
		}
		w.base = end.Scheme + "://" + end.Host + at
	}
	adv := packp.NewAdvRefs()
	if err := adv.Decode(io.LimitReader(res.Body, maxAdvertised)); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errNotGit
	}
	return adv, nil
}

// send implements pushSession.
func (w *webPush) send(ctx context.Context, request *bytes.Buffer) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/git-receive-pack", request)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-git-receive-pack-request")
	req.Header.Set("Accept", "application/x-git-receive-pack-result")
	res, err := w.do(req)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// do sends a request, and returns the errors that go-git returns.
func (w *webPush) do(req *http.Request) (*http.Response, error) {
	if w.auth != nil {
		w.auth.SetAuth(req)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if err := githttp.NewErr(res); err != nil {
		return nil, err
	}
	return res, nil
}

// Close implements pushSession. The client keeps its connections for others.
func (w *webPush) Close() error { return nil }
