// Package client calls the server's REST API, for the command line.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base  string
	token string // of a login; empty: none
	http  *http.Client
}

// New returns a client of the server at an address such as http://127.0.0.1:8888.
func New(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault.New("client.New", fault.Invalid, fmt.Sprintf("%q is not the address of a server", address)).
			Hint("it looks like http://127.0.0.1:8888")
	}
	return &Client{base: strings.TrimSuffix(address, "/"), http: &http.Client{Timeout: 2 * time.Minute}}, nil
}

// Trust makes the client trust a server whose certificate is of an authority in a file of certificates in PEM. The
// authorities of the machine count, too.
func (c *Client) Trust(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.Wrap("client.Trust", fault.Invalid, err).Say("the authorities of the server cannot be read")
	}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		authorities = x509.NewCertPool() // the machine has none
	}
	if !authorities.AppendCertsFromPEM(text) {
		return fault.New("client.Trust", fault.Invalid, file+" has no certificate in PEM").
			Hint("name the file of the authority that signed the server's certificate: --ca, ORDAIN_CA")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	c.http.Transport = transport
	return nil
}

// Address returns the address of the server.
func (c *Client) Address() string { return c.base }

// WithToken returns a client that sends a token, unless it is empty.
func (c *Client) WithToken(token string) *Client {
	return &Client{base: c.base, token: token, http: c.http}
}

// Environment is an environment as the API shows it.
type Environment struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	ProjectID  string         `json:"project_id"`
	RepoURL    string         `json:"repo_url"`
	RepoBranch string         `json:"repo_branch"`
	Halted     bool           `json:"halted"`
	Settings   map[string]any `json:"settings"`
}

// Call sends a request. env goes into the X-Inmanta-tid header when it is set.
// For paths of version 2 it decodes the data of the answer into out, otherwise the
// whole answer.
func (c *Client) Call(ctx context.Context, method, path, env string, body, out any) error {
	text, err := c.send(ctx, method, path, env, body)
	if err != nil || out == nil || len(text) == 0 {
		return err
	}
	if strings.HasPrefix(path, "/api/v2/") {
		return unwrap(text, out, nil)
	}
	return json.Unmarshal(text, out)
}

// Metadata gets a path of version 2 and decodes the metadata of the answer.
func (c *Client) Metadata(ctx context.Context, path, env string, out any) error {
	text, err := c.send(ctx, http.MethodGet, path, env, nil)
	if err != nil {
		return err
	}
	return unwrap(text, nil, out)
}

// unwrap decodes the data and the metadata of an answer; either may be nil.
func unwrap(text []byte, data, metadata any) error {
	var envelope struct {
		Data     json.RawMessage `json:"data"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return err
	}
	if data != nil {
		return json.Unmarshal(envelope.Data, data)
	}
	return json.Unmarshal(envelope.Metadata, metadata)
}

// send sends a request and returns the text of the answer, or a fault when the server rejects the request.
func (c *Client) send(ctx context.Context, method, path, env string, body any) ([]byte, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	resp, err := c.do(ctx, c.http, request{method, path, env, "application/json", reader})
	if err != nil {
		return nil, err
	}
	return read(resp)
}

// read returns the body of an answer.
func read(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fault.Wrap("client.Call", fault.Unavailable, err).Say("the server's answer broke off")
	}
	return text, nil
}

// Whole gets a path whose answer is not wrapped, and returns its text.
func (c *Client) Whole(ctx context.Context, path, env string) ([]byte, error) {
	return c.send(ctx, http.MethodGet, path, env, nil)
}

// Upload posts a file, and decodes the data of the answer into out. It takes as long as it takes.
func (c *Client) Upload(ctx context.Context, path string, content io.Reader, out any) error {
	resp, err := c.do(ctx, c.patient(), request{http.MethodPost, path, "", "application/octet-stream", content})
	if err != nil {
		return err
	}
	text, err := read(resp)
	if err != nil {
		return err
	}
	return unwrap(text, out, nil)
}

// Download gets a file. The caller closes it. It takes as long as it takes.
func (c *Client) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, c.patient(), request{http.MethodGet, path, "", "application/json", nil})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// patient returns the client without its limit of time, which holds for whole answers.
func (c *Client) patient() *http.Client {
	patient := *c.http
	patient.Timeout = 0
	return &patient
}

// request is what to send; env goes into a header when it is set.
type request struct {
	method, path, env, media string
	body                     io.Reader
}

// do sends a request, and returns an answer that is not an error.
func (c *Client) do(ctx context.Context, by *http.Client, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, r.body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", r.media)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.env != "" {
		req.Header.Set("X-Inmanta-tid", r.env)
	}
	resp, err := by.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	text, err := read(resp)
	if err != nil {
		return nil, err
	}
	return nil, refusal(resp.StatusCode, text)
}

// unreachable says why there is no answer.
func (c *Client) unreachable(err error) error {
	e := fault.Wrap("client.Call", fault.Unavailable, err).Say("the server at " + c.base + " does not answer")
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fault.Wrap("client.Call", fault.Unavailable, err).
			Say("the certificate of the server at " + c.base + " is not trusted").
			Hint("name the file of the authority that signed it: --ca, ORDAIN_CA")
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.Hint("start it with `ordain up`, or name another with --server")
	}
	return e
}

// Find finds an environment by id, by name, or by project/name.
func (c *Client) Find(ctx context.Context, name string) (Environment, error) {
	var projects []struct {
		Name         string        `json:"name"`
		Environments []Environment `json:"environments"`
	}
	if err := c.Call(ctx, http.MethodGet, "/api/v2/project?environment_details=false", "", nil, &projects); err != nil {
		return Environment{}, err
	}
	var found []Environment
	for _, p := range projects {
		for _, e := range p.Environments {
			if e.ID == name || e.Name == name || p.Name+"/"+e.Name == name {
				found = append(found, e)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Environment{}, fault.New("client.Find", fault.NotFound, "there is no environment "+name).
			Hint("`ordain environment list` shows all")
	}
	several := fmt.Sprintf("%d environments are called %s", len(found), name)
	return Environment{}, fault.New("client.Find", fault.Conflict, several).Hint("say project/" + name)
}
