package gateway

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// window is how many commands an agent has at most without an answer. The others wait in the record.
const window = 64

// digest is a SHA-256 that all links share, because most agents hold the same contents.
type digest = unique.Handle[[32]byte]

// link is the connection of one agent.
type link struct {
	g       *Gateway
	ws      *websocket.Conn
	who     authority.Identified
	address string
	number  int64 // of the connection, in the record
	slot    int   // in which it is pinged

	limiter *rate.Limiter
	heard   atomic.Int64 // when something came from the agent, in nanoseconds
	partial *partial     // the answer that arrives; of the goroutine that reads
	renewed int          // how many certificates it got on this link; of that goroutine
	calling context.Context
	hangUp  context.CancelFunc

	mu      sync.Mutex
	out     outbox
	holds   map[digest]struct{}
	flight  map[uuid.UUID]struct{} // commands that it has, whose answers are not recorded
	over    map[uuid.UUID]struct{} // commands of its hello that have ended in the record
	more    bool                   // the record may have more commands than the window had room for
	closed  bool
	slow    bool
	asked   time.Time // when it was last asked to renew its certificate
	running int       // calls
	waiting []*protocol.CallMessage
}

func newLink(g *Gateway, ws *websocket.Conn, who authority.Identified, address string) *link {
	ws.SetReadLimit(protocol.MaxMessage + 1) // so that one that is too large is noticed here, and answered with bye
	l := &link{
		g: g, ws: ws, who: who, address: address,
		limiter: rate.NewLimiter(protocol.ReceiveRate, protocol.ReceiveBurst),
	}
	l.heard.Store(time.Now().UnixNano())
	return l
}

// serve reads until the connection ends.
func (l *link) serve() {
	l.calling, l.hangUp = context.WithCancel(l.g.work)
	defer l.hangUp()
	if l.begin() {
		l.readAll()
		l.g.unregister(l)
	}
	l.mu.Lock()
	farewell := l.out.last && l.out.writing
	if !farewell {
		l.closed = true
	}
	l.mu.Unlock()
	if !farewell { // otherwise the goroutine that writes bye closes the connection
		l.cut()
	}
	l.dropPartial()
}

// begin reads hello, and answers it. It reports whether the link has begun.
func (l *link) begin() bool {
	late := time.AfterFunc(protocol.HelloTimeout, l.cut)
	m, _, err := l.readMessage()
	if !late.Stop() || err != nil {
		if why := new(violation); errors.As(err, why) {
			l.refuse(why.Error())
		}
		return false
	}
	hello, ok := m.(*protocol.HelloMessage)
	switch {
	case !ok:
		l.refuse("the first message has to be hello")
		return false
	case hello.Protocol < protocol.Oldest:
		l.refuse(fmt.Sprintf("the agent (%.60s) speaks version %d of the protocol, and this server %d to %d: "+
			"bring the agent up to date", hello.Program, hello.Protocol, protocol.Oldest, protocol.Version))
		return false
	}
	l.number, err = l.g.c.Store.ConnectAgent(l.g.work, l.who.Environment, l.who.Agent, l.who.Serial, hello.Program,
		intent.RemoteMachine(hello.Machine))
	switch {
	case fault.Is(err, fault.NotFound):
		l.bye(protocol.IsRevoked, "the agent was revoked or removed", 0)
		return false
	case err != nil:
		l.g.c.Logger.Error("an agent cannot connect", "agent", l.who.Agent, "error", err)
		l.bye(protocol.Draining, "the server cannot record the connection now", 5)
		return false
	}
	l.holds = make(map[digest]struct{}, len(hello.Holds))
	for _, h := range hello.Holds {
		l.holds[digestOf(h)] = struct{}{}
	}
	recorded, err := l.resume(hello)
	if err != nil {
		l.g.depart(l)
		return false
	}
	if !l.post(protocol.WelcomeMessage{
		Type: protocol.Welcome, Protocol: min(hello.Protocol, protocol.Version), Server: l.g.c.Version,
		Environment: l.who.Environment.String(), Agent: l.who.Agent, Now: time.Now().UTC(),
		PingSeconds: max(
			1,
			int(l.g.c.Ping/time.Second),
		), MaxMessage: protocol.MaxMessage, MaxAnswer: l.g.c.MaxAnswer,
	}) || len(recorded) > 0 && !l.post(protocol.RecordedMessage{Type: protocol.Recorded, IDs: recorded}) {
		l.g.depart(l)
		return false
	}
	if !l.g.register(l) {
		l.g.depart(l)
		return false
	}
	l.g.c.Logger.Debug("an agent connected", "environment", l.who.Environment, "agent", l.who.Agent,
		"address", l.address, "program", hello.Program)
	return true
}

// resume compares the commands in hello with the record. It returns those whose answers are recorded or not wanted any
// more.
func (l *link) resume(hello *protocol.HelloMessage) (recorded []string, err error) {
	l.flight, l.over = map[uuid.UUID]struct{}{}, map[uuid.UUID]struct{}{}
	var ids []uuid.UUID
	for _, list := range [][]string{hello.Running, hello.Unrecorded} {
		for _, text := range list {
			if id, err := uuid.Parse(text); err == nil {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := l.g.c.Store.AgentCommandStates(l.g.work, ids)
	if err != nil {
		l.bye(protocol.Draining, "the server cannot read the record now", 5)
		return nil, err
	}
	for _, id := range ids {
		l.over[id] = struct{}{}
	}
	for _, s := range states {
		switch {
		case s.Environment != l.who.Environment || s.Agent != l.who.Agent:
			l.refuse("its hello has the command " + s.ID.String() + ", which was sent to another agent")
			return nil, errors.New("a command of another agent")
		case !s.Answered:
			delete(l.over, s.ID)
			l.flight[s.ID] = struct{}{}
		}
	}
	for _, text := range hello.Unrecorded {
		if id, err := uuid.Parse(text); err == nil {
			if _, over := l.over[id]; over {
				recorded = append(recorded, text)
			}
		}
	}
	return recorded, nil
}

func digestOf(hash string) digest {
	var sum [32]byte
	_, _ = hex.Decode(sum[:], []byte(hash)) // the protocol has checked it
	return unique.Make(sum)
}

func (l *link) holding(hash string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.holds[digestOf(hash)]
	return ok
}

func (l *link) hold(hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[digestOf(hash)] = struct{}{}
}

// violation is what an agent did against the protocol.
type violation string

func (v violation) Error() string { return string(v) }

// refuse ends the link of an agent that broke the protocol.
func (l *link) refuse(why string) {
	l.bye(protocol.BadMessage, why, 0)
	l.g.problem(l.who.Identity, "it was disconnected, because it broke the protocol: "+why)
}

const (
	small     = 64 << 10 // a message that needs no place
	least     = 4 << 10  // what a message counts, however small it is
	stallTime = 30 * time.Second
)

var buffers = sync.Pool{New: func() any { return new([small]byte) }}

// readMessage reads and checks one message, and returns its size too.
func (l *link) readMessage() (m any, size int, err error) {
	kind, r, err := l.ws.Reader(context.Background())
	if err != nil {
		return nil, 0, err
	}
	if kind != websocket.MessageText {
		return nil, 0, violation("a message is in a binary frame")
	}
	pooled := buffers.Get().(*[small]byte)
	defer buffers.Put(pooled)
	stalled := time.AfterFunc(stallTime, l.cut)
	defer stalled.Stop()
	data := pooled[:]
	n, err := io.ReadFull(r, data)
	switch {
	case err == nil: // there may be more
		stalled.Stop()
		if err := l.g.large.Acquire(l.calling, 1); err != nil {
			return nil, 0, err
		}
		defer l.g.large.Release(1)
		stalled.Reset(stallTime)
		data = append(make([]byte, 0, 4*small), data...)
		for err == nil {
			if len(data) == cap(data) {
				data = append(data, 0)[:len(data)]
			}
			n, err = r.Read(data[len(data):min(cap(data), len(data)+small)])
			data = data[:len(data)+n]
			stalled.Reset(stallTime)
			l.heard.Store(time.Now().UnixNano())
			if len(data) > protocol.MaxMessage {
				return nil, 0, violation(fmt.Sprintf("a message has more than %d bytes", protocol.MaxMessage))
			}
		}
		if err != io.EOF {
			return nil, 0, err
		}
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		data = data[:n]
	default:
		return nil, 0, err
	}
	stalled.Stop()
	l.heard.Store(time.Now().UnixNano())
	if m, err = protocol.DecodeFromAgent(data); err != nil {
		return nil, 0, violation(err.Error())
	}
	return m, len(data), nil
}

// readAll handles what the agent sends until the connection ends.
func (l *link) readAll() {
	for {
		m, size, err := l.readMessage()
		if err == nil {
			err = l.handle(m)
		}
		if err == nil {
			err = l.limiter.WaitN(l.calling, max(size, least))
		}
		if err == nil {
			continue
		}
		var broken violation
		var leave farewell
		switch {
		case errors.As(err, &broken):
			l.refuse(broken.Error())
		case errors.As(err, &leave):
			l.bye(protocol.Draining, string(leave), 5)
		}
		return
	}
}

// farewell ends a link for a reason that is not the agent's fault.
type farewell string

func (f farewell) Error() string { return string(f) }

// handle does what a message asks for.
func (l *link) handle(m any) error {
	switch m := m.(type) {
	case *protocol.PongMessage: // that it was heard is enough
		return nil
	case *protocol.StoredMessage:
		l.stored(m)
		return nil
	case *protocol.ProgressMessage:
		id, err := uuid.Parse(m.ID)
		if l.g.c.Progress != nil && err == nil && l.has(id) {
			l.g.c.Progress(l.who.Environment, l.who.Agent, m.ID, m.Lines)
		}
		return nil
	case *protocol.AnswerMessage:
		return l.answered(m)
	case *protocol.CallMessage:
		return l.call(m)
	case *protocol.RenewMessage:
		return l.renew(m)
	case *protocol.HelloMessage:
		return violation("hello comes once")
	}
	return nil
}

// has reports whether the agent has a command whose answer is not recorded.
func (l *link) has(id uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.flight[id]
	return ok
}

// stored notes which contents the agent has.
func (l *link) stored(m *protocol.StoredMessage) {
	if m.Error == "" {
		return // it was noted when the content was sent
	}
	l.mu.Lock()
	_, held := l.holds[digestOf(m.Hash)]
	delete(l.holds, digestOf(m.Hash))
	l.mu.Unlock()
	if held {
		l.g.problem(l.who.Identity, fmt.Sprintf("it cannot use the content %s: %.500s", m.Hash, m.Error))
	}
}

// maxRenewals is how often an agent may renew its certificate on one link.
const maxRenewals = 10

func (l *link) renew(m *protocol.RenewMessage) error {
	if l.renewed++; l.renewed > maxRenewals {
		return violation("it renews its certificate again and again")
	}
	issued, broken, err := l.g.c.Authority.Renew(l.calling, l.who.Identity, m.Request)
	switch {
	case broken != nil:
		return violation(broken.Error())
	case err != nil:
		l.g.c.Logger.Error("the certificate of an agent cannot be renewed", "agent", l.who.Agent, "error", err)
		return nil // it is asked again
	}
	l.g.c.Logger.Info("the certificate of an agent was renewed", "environment", l.who.Environment,
		"agent", l.who.Agent, "expires", issued.Expires)
	l.mu.Lock()
	l.who.Made, l.who.Expires = issued.Made, issued.Expires
	l.mu.Unlock()
	l.post(protocol.CertificateMessage{Type: protocol.Certificate, Certificate: issued.PEM})
	return nil
}

// connection returns the link as the record knows it.
func (l *link) connection() store.AgentConnection {
	return store.AgentConnection{Environment: l.who.Environment, Name: l.who.Agent, Connection: l.number}
}
