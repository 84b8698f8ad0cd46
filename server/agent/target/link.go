package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/trust"
)

const (
	dialTimeout  = 45 * time.Second
	writeTimeout = 30 * time.Second
	// leastCounted is what the server counts for a small message.
	leastCounted = 4 << 10
)

// link is a connection to the server.
type link struct {
	a       *Agent
	conn    *websocket.Conn
	ctx     context.Context
	cancel  context.CancelFunc
	allowed *rate.Limiter // bytes that the server takes
	sending chan struct{} // has room for one: parts of answers do not mix

	mu    sync.Mutex
	next  int64
	calls map[int64]chan *protocol.ReturnedMessage
}

// farewell is why a connection ended, if the server said so.
type farewell struct{ *protocol.ByeMessage }

func (f farewell) Error() string {
	return fmt.Sprintf("the server closed the connection (%s): %s", f.Reason, f.Message)
}

// final reports whether an agent ends after this.
func (f farewell) final() bool {
	return f.Reason == protocol.IsRevoked || f.Reason == protocol.IsRemoved
}

// keepLinked connects again and again until ctx ends. It returns an error when the server no longer wants this agent.
func (a *Agent) keepLinked(ctx context.Context) error {
	pause := a.c.pause
	for {
		welcomed, err := a.connect(ctx)
		var bye farewell
		said := errors.As(err, &bye)
		switch {
		case ctx.Err() != nil:
			return nil
		case said && bye.final(), fault.Is(err, fault.Unauthorized):
			return err
		case said && bye.Reason == protocol.Replaced:
			a.log.Error(
				"another agent with this identity has connected: two programs use copies of one state directory",
				"message",
				bye.Message,
			)
		case welcomed:
			pause = a.c.pause
		}
		wait := pause
		if said && bye.RetrySeconds > 0 {
			wait = time.Duration(min(bye.RetrySeconds, 3600)) * time.Second
		}
		wait += time.Duration(rand.Int64N(int64(wait)/2 + 1))
		a.log.Warn("not connected to the server", "error", err, "again_in", wait.Round(time.Millisecond))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, longPause)
	}
}

// connect makes a connection and serves it until it ends. It reports whether the server welcomed the agent.
func (a *Agent) connect(ctx context.Context) (welcomed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := a.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	l := &link{
		a: a, conn: conn, ctx: ctx, cancel: cancel, calls: map[int64]chan *protocol.ReturnedMessage{},
		allowed: rate.NewLimiter(protocol.ReceiveRate*9/10, protocol.ReceiveBurst/2),
		sending: make(chan struct{}, 1),
	}
	_, _, seen := a.journal.known()
	running, unrecorded := a.state()
	if err := l.send(protocol.HelloMessage{
		Type: protocol.Hello, Protocol: protocol.Version, Program: a.c.Program, Machine: a.machine, Seen: seen,
		Running: running, Unrecorded: unrecorded, Holds: a.contents.holds(),
	}); err != nil {
		return false, err
	}
	welcome, err := l.welcome()
	if err != nil {
		return false, err
	}
	a.log.Info("connected to the server", "url", a.id.URL, "environment", welcome.Environment, "agent", welcome.Agent,
		"server", welcome.Server)
	if off := time.Since(welcome.Now).Abs(); off > time.Minute && !welcome.Now.IsZero() {
		a.log.Warn("the clock of this machine differs from that of the server", "by", off.Round(time.Second))
	}
	a.attach(l)
	defer a.detach(l)
	return true, l.serve(time.Duration(welcome.PingSeconds) * time.Second)
}

// dial opens the WebSocket.
func (a *Agent) dial(ctx context.Context) (*websocket.Conn, error) {
	const op = "agent.connect"
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, strings.TrimRight(a.id.URL, "/")+protocol.SubscribePath,
		&websocket.DialOptions{
			HTTPClient:   &http.Client{Transport: trust.Transport(a.id.tls())},
			Subprotocols: []string{protocol.Subprotocol},
		})
	if err == nil {
		conn.SetReadLimit(protocol.MaxMessage)
		return conn, nil
	}
	if answer == nil {
		return nil, fault.Wrap(op, fault.Unavailable, err).Say("the agent server at " + a.id.URL + " cannot be reached")
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // what arrived of it is enough
	var why protocol.Refusal
	_ = json.Unmarshal(body, &why)
	text := "the agent server refuses this agent: " + trust.Refusal(answer, body)
	if !slices.Contains([]string{"certificate", "expired", "revoked", "removed"}, why.Reason) {
		return nil, fault.New(op, fault.Unavailable, text)
	}
	return nil, fault.New(op, fault.Unauthorized, text).
		Hint("join again: make a join token on the server, delete the " +
			"state directory of this agent, and start it with --join TOKEN")
}

// send sends a message. An error means that the connection is broken.
func (l *link) send(message any) error {
	text, err := protocol.Encode(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.ctx, writeTimeout)
	defer cancel()
	if err := l.allowed.WaitN(ctx, min(max(len(text), leastCounted), l.allowed.Burst())); err != nil {
		return err
	}
	return l.conn.Write(ctx, websocket.MessageText, text)
}

// read reads a message.
func (l *link) read(ctx context.Context) (any, error) {
	_, data, err := l.conn.Read(ctx)
	if err != nil {
		return nil, fault.Wrap("agent.link", fault.Unavailable, err).Say("the connection to the server broke")
	}
	m, err := protocol.DecodeFromServer(data)
	if err != nil {
		return nil, fault.Wrap("agent.link", fault.Unavailable, err).Say("the server sent what is not understood here")
	}
	if bye, ok := m.(*protocol.ByeMessage); ok {
		return nil, farewell{bye}
	}
	return m, nil
}

// welcome waits for the server's first message.
func (l *link) welcome() (*protocol.WelcomeMessage, error) {
	ctx, cancel := context.WithTimeout(l.ctx, 30*time.Second)
	defer cancel()
	m, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	w, ok := m.(*protocol.WelcomeMessage)
	if !ok {
		return nil, errors.New("the server did not begin with a welcome")
	}
	return w, nil
}

// attach makes a connection the one that answers and calls use, and sends what the server has not recorded.
func (a *Agent) attach(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.link = l
	close(a.linked)
	for _, c := range a.commands {
		if c.isAnswered() {
			go l.sendAnswer(c)
		}
	}
}

func (a *Agent) detach(l *link) {
	l.cancel()
	a.contents.drop()
	a.mu.Lock()
	a.link = nil
	a.linked = make(chan struct{})
	a.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, waiting := range l.calls {
		close(waiting)
	}
	l.calls = nil
}

// awaitLink waits for a connection.
func (a *Agent) awaitLink(ctx context.Context) (*link, error) {
	for {
		a.mu.Lock()
		l, linked := a.link, a.linked
		a.mu.Unlock()
		if l != nil {
			return l, nil
		}
		select {
		case <-linked:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// serve does what the server says until the connection ends.
func (l *link) serve(ping time.Duration) error {
	quiet := time.AfterFunc(3*ping, func() {
		l.a.log.Warn("the server was silent for three rounds of pings")
		_ = l.conn.CloseNow()
	})
	defer quiet.Stop()
	for {
		m, err := l.read(l.ctx)
		if err != nil {
			return err
		}
		quiet.Reset(3 * ping)
		if err := l.obey(m); err != nil {
			return err
		}
	}
}

func (l *link) obey(m any) error {
	a := l.a
	switch m := m.(type) {
	case *protocol.PingMessage:
		return l.send(protocol.PongMessage{Type: protocol.Pong, ID: m.ID})
	case *protocol.ContentMessage:
		done, err := a.contents.add(m)
		switch {
		case err != nil:
			a.log.Error("a content is thrown away", "hash", m.Hash, "error", err)
			return l.send(protocol.StoredMessage{Type: protocol.Stored, Hash: m.Hash, Error: err.Error()})
		case done:
			return l.send(protocol.StoredMessage{Type: protocol.Stored, Hash: m.Hash})
		}
	case *protocol.CommandMessage:
		a.take(m)
	case *protocol.CancelMessage:
		a.cancelCommand(m.ID)
	case *protocol.RecordedMessage:
		a.forgetRecorded(m.IDs)
	case *protocol.ReturnedMessage:
		l.returned(m)
	case *protocol.RotateMessage:
		request, err := a.id.renewal()
		if err != nil {
			a.log.Error("no new key can be made", "error", err)
			return nil
		}
		return l.send(protocol.RenewMessage{Type: protocol.Renew, Request: request})
	case *protocol.CertificateMessage:
		if err := a.id.renewed(m.Certificate); err != nil {
			a.log.Error("the new certificate cannot be used; the old one stays", "error", err)
		} else {
			a.log.Info("the agent has a new certificate")
		}
	}
	return nil
}

// tellDamage tells the server that a content is gone.
func (a *Agent) tellDamage(hash string) {
	a.log.Error("a content was damaged on the disk and is deleted", "hash", hash)
	a.mu.Lock()
	l := a.link
	a.mu.Unlock()
	if l != nil { // otherwise the next hello says what there is
		_ = l.send(
			protocol.StoredMessage{Type: protocol.Stored, Hash: hash, Error: "it was damaged on the agent's disk"},
		)
	}
}

// send sends the answer of a command if there is a connection. Otherwise the next one gets it.
func (a *Agent) send(c *command) {
	a.mu.Lock()
	l := a.link
	a.mu.Unlock()
	if l != nil {
		go l.sendAnswer(c)
	}
}

// sendAnswer sends an answer in parts.
func (l *link) sendAnswer(c *command) {
	select {
	case l.sending <- struct{}{}:
		defer func() { <-l.sending }()
	case <-l.ctx.Done():
		return
	}
	c.mu.Lock()
	text, twice := c.answer, c.sentOn == l
	c.sentOn = l
	c.mu.Unlock()
	if twice { // its parts must not mix with themselves
		return
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sentOn == l {
			c.sentOn = nil
		}
	}()
	if text == nil {
		var err error
		if text, err = os.ReadFile(l.a.answerFile(c.id)); errors.Is(err, os.ErrNotExist) { // it was recorded meanwhile
			return
		} else if err != nil {
			l.a.log.Error("an answer cannot be read", "command", c.id, "error", err)
			return
		}
	}
	for part := 0; ; part++ {
		n := min(len(text), protocol.MaxPart)
		m := protocol.AnswerMessage{Type: protocol.Answer, ID: c.id, Part: part, Last: n == len(text), Data: text[:n]}
		if l.send(m) != nil || m.Last {
			return
		}
		text = text[n:]
	}
}

// call makes a call and waits for what it returns.
func (l *link) call(ctx context.Context, m protocol.CallMessage) (*protocol.ReturnedMessage, error) {
	lost := fault.New("agent.call", fault.Unavailable, "the connection to the server broke during the call")
	waiting := make(chan *protocol.ReturnedMessage, 1)
	l.mu.Lock()
	if l.calls == nil {
		l.mu.Unlock()
		return nil, lost
	}
	l.next++
	m.Call = l.next
	l.calls[m.Call] = waiting
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, m.Call)
	}()
	if text, err := protocol.Encode(m); err != nil || len(text) > protocol.MaxMessage {
		return nil, fault.New("agent.call", fault.Invalid, "the arguments of the call are too large, or no JSON")
	}
	if err := l.send(m); err != nil {
		return nil, lost
	}
	select {
	case r := <-waiting:
		if r == nil {
			return nil, lost
		}
		return r, nil
	case <-ctx.Done():
		return nil, fault.Wrap("agent.call", fault.Unavailable, ctx.Err()).
			Say("the server did not answer the call in time")
	}
}

func (l *link) returned(m *protocol.ReturnedMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting := l.calls[m.Call]; waiting != nil {
		waiting <- m
		delete(l.calls, m.Call)
	}
}
