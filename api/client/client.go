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
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if env != "" {
		req.Header.Set("X-Inmanta-tid", env)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		e := fault.Wrap("client.Call", fault.Unavailable, err).Say("the server at " + c.base + " does not answer")
		var untrusted *tls.CertificateVerificationError
		switch {
		case errors.As(err, &untrusted):
			return nil, fault.Wrap("client.Call", fault.Unavailable, err).
				Say("the certificate of the server at " + c.base + " is not trusted").
				Hint("name the file of the authority that signed it: --ca, ORDAIN_CA")
		case errors.Is(err, syscall.ECONNREFUSED):
			return nil, e.Hint("start it with `ordain up`, or name another with --server")
		}
		return nil, e
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fault.Wrap("client.Call", fault.Unavailable, err).Say("the server's answer broke off")
	}
	if resp.StatusCode >= 400 {
		return nil, refusal(resp.StatusCode, text)
	}
	return text, nil
}

// unexpected begins the message of the status 500.
const unexpected = "An unexpected error occurred in the server while processing the request: "

// refusal turns an error of the server into a fault.
func refusal(code int, text []byte) error {
	kind := map[int]fault.Kind{
		400: fault.Invalid, 401: fault.Unauthorized, 403: fault.Forbidden,
		404: fault.NotFound, 409: fault.Conflict, 429: fault.TooMany, 503: fault.Unavailable,
	}[code]
	if kind == "" {
		kind = fault.Internal
	}
	var body struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = fmt.Sprintf("the server answered %d", code)
	}
	// A value that a setting cannot take is answered like an internal error, as clients of the reference expect. People
	// want to read what is wrong with the value.
	if why, ok := strings.CutPrefix(body.Message, unexpected); ok && strings.HasPrefix(why, "setting ") {
		kind, body.Message = fault.Invalid, why
	}
	return fault.New("client.Call", kind, body.Message)
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
