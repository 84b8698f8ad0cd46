// Package member is the joining side of a provisioner that runs elsewhere: it keeps who
// the provisioner is, in a folder, and reaches the server's desk as that.
//
//	token ─ Join ─▶ folder: key and certificate, CA, server ─ Open ─▶ Member ─▶ *http.Client ─▶ client.Client
//	                   ▲                                        │
//	                   └── another certificate ◀── renewal ◀────┘ after two thirds of the lifetime
//
// The server is the one of the token: its CA has the token's hash, and connections are
// verified against this CA, also when the clock of this machine is wrong. The time of
// renewals goes by the clock of the server, which every answer has.
package member

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/trust"
	"ordain.dev/ordain/server/cluster/task"
)

// about says which server, project and name the provisioner has.
type about struct {
	URL     string    `json:"url"`
	Project uuid.UUID `json:"project"`
	Name    string    `json:"name"`
}

// Files of the folder. All are for their owner only.
const (
	identityFile = "identity.pem" // the key and the certificate
	caFile       = "ca.pem"       // empty: the authorities of the machine
	aboutFile    = "provisioner.json"
)

const joinTimeout = time.Minute

// Join uses a join token, and keeps the identity that it gives in a folder. It makes the folder.
func Join(ctx context.Context, text, folder string) error {
	const op = "provisioner.join"
	if present, err := readPair(folder); err == nil && time.Now().Before(present.Leaf.NotAfter) {
		return fault.New(op, fault.Conflict, "the folder "+folder+" belongs to a provisioner that has joined already").
			Hint("start it without --join, or delete " + filepath.Join(folder, identityFile) + " to join anew")
	}
	token, err := protocol.ParseProvisionerToken(text)
	if err != nil {
		return fault.New(op, fault.Invalid, err.Error())
	}
	request, key, err := ca.Request()
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	// The key is kept before the token is used, so that no disk that is full wastes a token.
	spare := filepath.Join(folder, identityFile+".new")
	if err := trust.WriteFile(spare, []byte(key)); err != nil {
		return err
	}
	defer os.Remove(spare)
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	authority, err := trust.Fetch(ctx, token)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: trust.Transport(trust.TLS(authority, func(string) {}, nil))}
	answer, said, err := post(ctx, client, token.URL, task.JoinPath, task.Join{
		Token: strings.TrimSpace(text), Request: request,
	})
	switch {
	case err != nil && answer != nil:
		return fault.Wrap(op, fault.Unavailable, err).Say("the answer of the server broke off").
			Hint("make another join token: this one is used up")
	case err != nil:
		return trust.Unreachable(op, token.URL, err)
	case answer.StatusCode != http.StatusCreated:
		return refused(op, "the server at "+token.URL+" refuses the join token", answer, said)
	}
	var joined task.Joined
	if err := json.Unmarshal(said, &joined); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the server's answer cannot be read")
	}
	return keep(folder, key, joined, token.CA)
}

// post sends a request, and reads the answer. An answer with an error broke off.
func post(ctx context.Context, client *http.Client, base, path string, body any) (*http.Response, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(base, "/")+path, bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer, said, err
}

// refused is the fault for an answer that is a refusal.
func refused(op, what string, answer *http.Response, said []byte) error {
	message := what + ": " + trust.Refusal(answer, said)
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fault.New(op, fault.Unauthorized, message)
	case code == http.StatusTooManyRequests || code == http.StatusNotFound || code >= 500:
		return fault.New(op, fault.Unavailable, message)
	}
	return fault.New(op, fault.Invalid, message)
}

// keep writes what the server answered. The identity comes last: a provisioner has joined when it is there.
func keep(folder, key string, joined task.Joined, pin string) error {
	const op = "provisioner.join"
	project, err := uuid.Parse(joined.Project)
	if err != nil || joined.Name == "" || joined.URL == "" {
		return fault.New(op, fault.Unavailable, "the server's answer has no identity")
	}
	if pin != "" {
		pool, err := x509.ParseCertificate(firstBlock(joined.CA))
		if err != nil || protocol.Hash(pool.Raw) != pin {
			return fault.New(op, fault.Unauthorized, "the server sent a CA certificate that is not that of the token")
		}
	}
	if _, err := tls.X509KeyPair([]byte(joined.Certificate), []byte(key)); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the certificate that the server sent is not for this key")
	}
	text, err := json.MarshalIndent(about{URL: joined.URL, Project: project, Name: joined.Name}, "", "  ")
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	files := []struct{ name, content string }{
		{caFile, joined.CA}, {aboutFile, string(text)}, {identityFile, key + joined.Certificate},
	}
	for _, f := range files {
		if err := trust.WriteFile(filepath.Join(folder, f.name), []byte(f.content)); err != nil {
			return err
		}
	}
	return nil
}

// Member is a provisioner that has joined. It is safe for concurrent use; while it runs as a service, it renews its
// certificate.
type Member struct {
	about
	folder    string
	log       *slog.Logger
	authority *x509.CertPool // of the server; nil: those of the machine
	link      *link
	running   service.Runner
	renewing  sync.Mutex
}

var _ service.Service = (*Member)(nil)

// Open opens the folder of a provisioner that has joined. It sends nothing.
func Open(folder string, log *slog.Logger) (*Member, error) {
	const op = "provisioner.open"
	damaged := func(name string, err error) error {
		path := filepath.Join(folder, name)
		var disk *os.PathError
		if errors.As(err, &disk) && !errors.Is(err, os.ErrNotExist) {
			return fault.Disk(op, path, err)
		}
		return fault.Wrap(op, fault.Invalid, err).Say(path + " is damaged").
			Hint("delete " + filepath.Join(folder, identityFile) + " and join again with a new token")
	}
	pair, err := readPair(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(op, fault.NotFound,
			"this provisioner has not joined a server: there is nothing in "+folder).
			Hint("start it once with --join TOKEN")
	}
	if err != nil {
		return nil, damaged(identityFile, err)
	}
	m := &Member{folder: folder, log: log}
	text, err := os.ReadFile(filepath.Join(folder, aboutFile))
	if err == nil {
		err = json.Unmarshal(text, &m.about)
	}
	if err != nil {
		return nil, damaged(aboutFile, err)
	}
	pem, err := os.ReadFile(filepath.Join(folder, caFile))
	if err != nil {
		return nil, damaged(caFile, err)
	}
	if len(bytes.TrimSpace(pem)) > 0 {
		m.authority = x509.NewCertPool()
		if !m.authority.AppendCertsFromPEM(pem) {
			return nil, damaged(caFile, errors.New("it has no certificate"))
		}
	}
	if time.Now().After(pair.Leaf.NotAfter) { // the server knows whether that is so
		log.Warn("by the clock of this machine, the provisioner's certificate has expired; if the server says so, "+
			"too, the provisioner has to join again, with a new token", "expired", pair.Leaf.NotAfter)
	}
	m.link = newLink(m.authority, pair, log)
	return m, nil
}

// readPair reads the key and the certificate.
func readPair(folder string) (*tls.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(folder, identityFile))
	if err != nil {
		return nil, err
	}
	return parsePair(text)
}

// HTTP returns a client for the server of the provisioner. It follows no redirects.
func (m *Member) HTTP() *http.Client {
	return &http.Client{Transport: m.link, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// Base returns the URL of the server.
func (m *Member) Base() string { return m.URL }

// Who returns the project that the provisioner serves, and its name there.
func (m *Member) Who() (project uuid.UUID, name string) { return m.Project, m.Name }

// Expires returns when the present certificate expires.
func (m *Member) Expires() time.Time { return m.link.now().pair.Leaf.NotAfter }
