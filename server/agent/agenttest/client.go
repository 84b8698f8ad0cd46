// Package agenttest has an agent that does what a test says: it joins, connects, and
// sends and receives messages. bench/agents uses it too, ten thousand times.
package agenttest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
)

// Credentials are what an agent keeps after it has joined.
type Credentials struct {
	Certificate tls.Certificate
	Roots       *x509.CertPool
	Answer      protocol.JoinAnswer
}

// Refused is the answer of a server that refuses.
type Refused struct {
	Code int
	protocol.Refusal
}

func (r *Refused) Error() string { return fmt.Sprintf("%d %s: %s", r.Code, r.Reason, r.Message) }

func refused(r *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	out := &Refused{Code: r.StatusCode}
	if json.Unmarshal(body, &out.Refusal) != nil {
		out.Message = string(body)
	}
	return out
}

// Join joins with a token. It checks the server's CA as docs/agent-protocol.md says.
func Join(ctx context.Context, token string) (*Credentials, error) {
	t, err := protocol.ParseToken(token)
	if err != nil {
		return nil, err
	}
	c := &Credentials{}
	if c.Roots, err = authorities(ctx, t); err != nil {
		return nil, err
	}
	request, key, err := ca.Request()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(protocol.JoinRequest{Token: token, Request: request, Program: "agenttest 1"})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.Roots}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+protocol.JoinPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return nil, refused(answer)
	}
	if err := json.NewDecoder(answer.Body).Decode(&c.Answer); err != nil {
		return nil, err
	}
	c.Certificate, err = tls.X509KeyPair([]byte(c.Answer.Certificate), []byte(key))
	return c, err
}

// authorities returns the CA with the hash of the token.
func authorities(ctx context.Context, t protocol.JoinToken) (*x509.CertPool, error) {
	if t.CA == "" {
		return x509.SystemCertPool()
	}
	// The connection proves nothing; the hash does.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL+protocol.AuthorityPath, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || ca.Hash(block.Bytes) != t.CA {
		return nil, errors.New("the server's CA is not the one of the token")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return pool, nil
}

// Conn is a connection of an agent. One goroutine at a time may receive.
type Conn struct{ ws *websocket.Conn }

// Connect connects without a word; the agent's first message is hello.
func (c *Credentials) Connect(ctx context.Context) (*Conn, error) {
	settings := &tls.Config{RootCAs: c.Roots}
	if len(c.Certificate.Certificate) > 0 {
		settings.Certificates = []tls.Certificate{c.Certificate}
	}
	transport := &http.Transport{TLSClientConfig: settings}
	ws, answer, err := websocket.Dial(ctx, "wss"+strings.TrimPrefix(c.Answer.URL, "https")+protocol.SubscribePath,
		&websocket.DialOptions{
			HTTPClient:   &http.Client{Transport: transport},
			Subprotocols: []string{protocol.Subprotocol},
		})
	if err != nil {
		if answer != nil && answer.Body != nil && answer.StatusCode >= 400 {
			return nil, refused(answer)
		}
		return nil, err
	}
	ws.SetReadLimit(protocol.MaxMessage)
	return &Conn{ws}, nil
}

// Hello is a hello that has everything and says nothing.
func Hello() protocol.HelloMessage {
	return protocol.HelloMessage{
		Type: protocol.Hello, Protocol: protocol.Version, Program: "agenttest 1",
		Machine: protocol.Machine{OS: "linux", Arch: "amd64", Libc: "glibc-2.36", Pythons: []string{"3.11"}},
		Running: []string{}, Unrecorded: []string{}, Holds: []string{},
	}
}

// Start connects, and exchanges hello for welcome.
func (c *Credentials) Start(ctx context.Context, hello protocol.HelloMessage) (*Conn, *protocol.WelcomeMessage, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := conn.Send(ctx, hello); err != nil {
		return nil, nil, err
	}
	m, err := conn.Receive(ctx)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	welcome, ok := m.(*protocol.WelcomeMessage)
	if !ok {
		conn.Close()
		if bye, is := m.(*protocol.ByeMessage); is {
			return nil, nil, fmt.Errorf("bye %s: %s", bye.Reason, bye.Message)
		}
		return nil, nil, fmt.Errorf("the server began with %T", m)
	}
	return conn, welcome, nil
}

// Send sends a message, or bytes as they are.
func (c *Conn) Send(ctx context.Context, message any) error {
	data, ok := message.([]byte)
	if !ok {
		var err error
		if data, err = protocol.Encode(message); err != nil {
			return err
		}
	}
	return c.ws.Write(ctx, websocket.MessageText, data)
}

// Receive returns the next message.
func (c *Conn) Receive(ctx context.Context) (any, error) {
	_, data, err := c.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	return protocol.DecodeFromServer(data)
}

// Next returns the next message that is no ping; pings are answered.
func (c *Conn) Next(ctx context.Context) (any, error) {
	for {
		m, err := c.Receive(ctx)
		ping, is := m.(*protocol.PingMessage)
		if err != nil || !is {
			return m, err
		}
		if err := c.Send(ctx, protocol.PongMessage{Type: protocol.Pong, ID: ping.ID}); err != nil {
			return nil, err
		}
	}
}

// Answer answers a command in parts.
func (c *Conn) Answer(ctx context.Context, id string, body protocol.AnswerBody) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for part := 0; ; part++ {
		n := min(len(data), protocol.MaxPart)
		m := protocol.AnswerMessage{Type: protocol.Answer, ID: id, Part: part, Last: n == len(data), Data: data[:n]}
		if err := c.Send(ctx, m); err != nil {
			return err
		}
		if data = data[n:]; m.Last {
			return nil
		}
	}
}

// Done is an answer without anything special.
func Done() protocol.AnswerBody {
	return protocol.AnswerBody{Status: "deployed", Change: "nochange", DurationMS: 1}
}

// Close ends the connection without a word.
func (c *Conn) Close() { _ = c.ws.CloseNow() }

// Renewal makes a request for another certificate, which use puts in place of the present one.
func (c *Credentials) Renewal() (use func(certificate string) error, request string, err error) {
	request, key, err := ca.Request()
	return func(certificate string) (err error) {
		c.Certificate, err = tls.X509KeyPair([]byte(certificate), []byte(key))
		return err
	}, request, err
}

// Get reads a page of the agent server.
func (c *Credentials) Get(ctx context.Context, path string) (code int, body string) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.Roots}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Answer.URL+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(text)
}
