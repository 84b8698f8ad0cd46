package target

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/trust"
)

// identity is who the agent is, for one server.
type identity struct {
	paths       layout.Agent
	Environment intent.EnvironmentID `json:"environment"`
	Agent       string               `json:"agent"`
	URL         string               `json:"url"`

	authority   *x509.CertPool // of the server; nil: those of the machine
	certificate atomic.Pointer[tls.Certificate]
	next        []byte // the key for which a new certificate was requested, in PEM
	// warn is called when the server's certificate is accepted although it is not valid at this time of day.
	warn func(problem string)
}

const joinTimeout = time.Minute

// join asks for the identity that a token is for, and keeps it.
func join(ctx context.Context, paths layout.Agent, text, program string) error {
	const op = "agent.join"
	if _, err := os.Lstat(paths.Identity()); err == nil {
		return fault.New(op, fault.Conflict, "this state directory belongs to an agent that has joined already").
			Hint("start it without --join, or use another --state-dir")
	}
	token, err := protocol.ParseToken(text)
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err)
	}
	key, request, err := newKey()
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	// The key is kept before the token is used, so that no disk that is full wastes a token.
	if err := trust.WriteFile(paths.Identity()+".new", key); err != nil {
		return err
	}
	defer os.Remove(paths.Identity() + ".new")
	body, err := json.Marshal(
		protocol.JoinRequest{Token: strings.TrimSpace(text), Request: string(request), Program: program},
	)
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	authority, err := trust.Fetch(ctx, token)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(token.URL, "/")+protocol.JoinPath,
		bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err).Say("the join token has no usable address")
	}
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: trust.Transport(trust.TLS(authority, func(string) {}, nil))}
	answer, err := client.Do(r)
	if err != nil {
		return trust.Unreachable(op, token.URL, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the answer of the agent server broke off").
			Hint("make another join token: this one is used up")
	}
	if answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusOK {
		return fault.New(op, fault.Unauthorized,
			"the agent server refuses the join token: "+trust.Refusal(answer, said))
	}
	var joined protocol.JoinAnswer
	if err := json.Unmarshal(said, &joined); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the agent server's answer cannot be read")
	}
	return keepIdentity(paths, key, joined, token.CA)
}

// keepIdentity writes what the server answered. The identity comes last: an agent has joined when it is there.
func keepIdentity(paths layout.Agent, key []byte, joined protocol.JoinAnswer, pin string) error {
	const op = "agent.join"
	env, err := uuid.Parse(joined.Environment)
	if err != nil || joined.Agent == "" || joined.URL == "" {
		return fault.New(op, fault.Unavailable, "the agent server's answer has no identity")
	}
	if pin != "" {
		block, _ := pem.Decode([]byte(joined.CA))
		if block == nil || protocol.Hash(block.Bytes) != pin {
			return fault.New(
				op,
				fault.Unauthorized,
				"the agent server sent a CA certificate that is not that of the token",
			)
		}
	}
	if _, err := tls.X509KeyPair([]byte(joined.Certificate), key); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the agent server's certificate is not for this agent's key")
	}
	about, err := json.MarshalIndent(&identity{Environment: env, Agent: joined.Agent, URL: joined.URL}, "", "  ")
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	files := []struct {
		path    string
		content []byte
	}{
		{paths.CA(), []byte(joined.CA)}, {paths.About(), about},
		{paths.Identity(), append(bytes.Clone(key), joined.Certificate...)},
	}
	for _, f := range files {
		if err := trust.WriteFile(f.path, f.content); err != nil {
			return err
		}
	}
	return nil
}

// readIdentity reads the identity of an agent that has joined.
func readIdentity(paths layout.Agent) (*identity, error) {
	const op = "agent.identity"
	i := &identity{paths: paths, warn: func(string) {}}
	pair, err := os.ReadFile(paths.Identity())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(op, fault.NotFound, "this agent has not joined a server").
			Hint("start it once with --join TOKEN")
	}
	if err != nil {
		return nil, fault.Disk(op, paths.Identity(), err)
	}
	damaged := func(path string, err error) error {
		return fault.Wrap(op, fault.Invalid, err).Say(path + " is damaged").
			Hint("delete the state directory and join again with a new token")
	}
	certificate, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, damaged(paths.Identity(), err)
	}
	i.certificate.Store(&certificate)
	about, err := os.ReadFile(paths.About())
	if err == nil {
		err = json.Unmarshal(about, i)
	}
	if err != nil {
		return nil, damaged(paths.About(), err)
	}
	ca, err := os.ReadFile(paths.CA())
	if err != nil {
		return nil, damaged(paths.CA(), err)
	}
	if len(bytes.TrimSpace(ca)) > 0 {
		i.authority = x509.NewCertPool()
		if !i.authority.AppendCertsFromPEM(ca) {
			return nil, damaged(paths.CA(), errors.New("it has no certificate"))
		}
	}
	return i, nil
}

// newKey makes a key and a certificate request, both in PEM.
func newKey() (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "ordain agent"}}, private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// renewal makes a new key and returns the request for its certificate.
func (i *identity) renewal() (string, error) {
	key, request, err := newKey()
	if err != nil {
		return "", err
	}
	i.next = key
	return string(request), nil
}

// renewed keeps the certificate for the new key. It is used from the next connection on.
func (i *identity) renewed(certificate string) error {
	if i.next == nil {
		return errors.New("the server sent a certificate that was not asked for")
	}
	pair := append(bytes.Clone(i.next), certificate...)
	parsed, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return fmt.Errorf("the server's certificate is not for the key that was made: %w", err)
	}
	if err := trust.WriteFile(i.paths.Identity(), pair); err != nil {
		return err
	}
	i.certificate.Store(&parsed)
	i.next = nil
	return nil
}

// tls returns the configuration of connections to the server.
func (i *identity) tls() *tls.Config {
	return trust.TLS(i.authority, i.warn, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return i.certificate.Load(), nil
	})
}
