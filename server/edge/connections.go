package edge

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds how many connections are open. When there are too many, it closes one on which no request is
// being answered, of the address that has most of these: a flood drives out itself.
type connections struct {
	limit int
	log   *slog.Logger

	mu   sync.Mutex
	open map[*connection]struct{}
}

func newConnections(limit int, log *slog.Logger) *connections {
	return &connections{limit: limit, log: log, open: map[*connection]struct{}{}}
}

// Listen bounds the connections of a listener.
func (g *Guard) Listen(l net.Listener) net.Listener { return &listener{l, g.connections} }

type listener struct {
	net.Listener
	connections *connections
}

// Accept returns the next connection for which there is room.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.connections.admit(inner); c != nil {
			return c, nil
		}
		_ = inner.Close() // nothing was sent or received on it
	}
}

// admit returns nil when there is no room.
func (cs *connections) admit(inner net.Conn) *connection {
	c := &connection{Conn: inner, address: hostname(inner.RemoteAddr().String()), owner: cs}
	c.waiting.Store(time.Now().UnixNano())
	cs.mu.Lock()
	var victim *connection
	if len(cs.open) >= cs.limit {
		if victim = cs.victim(); victim == nil {
			cs.mu.Unlock()
			cs.log.Warn("a connection was refused, since all others are busy", "limit", cs.limit)
			return nil
		}
		delete(cs.open, victim)
	}
	cs.open[c] = struct{}{}
	cs.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // its reader sees that it is closed
	}
	return c
}

// victim returns the connection that has waited longest among those of the address with most waiting connections, or
// nil. The caller holds the lock.
func (cs *connections) victim() (oldest *connection) {
	waiting := map[string]int{}
	for c := range cs.open {
		if c.waiting.Load() != 0 {
			waiting[c.address]++
		}
	}
	for c := range cs.open {
		since := c.waiting.Load()
		if since == 0 {
			continue
		}
		if oldest == nil || waiting[c.address] > waiting[oldest.address] ||
			waiting[c.address] == waiting[oldest.address] && since < oldest.waiting.Load() {
			oldest = c
		}
	}
	return oldest
}

// connection ends when its client reads nothing for writeStall.
type connection struct {
	net.Conn
	address string
	owner   *connections
	// waiting is when the connection began to wait for a request, in nanoseconds; 0 while one is being answered.
	waiting atomic.Int64
	busy    atomic.Int32 // requests that are being answered; several with HTTP/2

	mu       sync.Mutex
	deadline time.Time // of writing, as the server set it
}

const (
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

func (c *connection) begin() {
	c.busy.Add(1)
	c.waiting.Store(0)
}

func (c *connection) end() {
	if c.busy.Add(-1) == 0 {
		c.waiting.Store(time.Now().UnixNano())
	}
}

// Close forgets the connection and closes it.
func (c *connection) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// Write gives the client writeStall for each piece, or less when the server set an earlier deadline.
func (c *connection) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writePiece)]
		if err := c.Conn.SetWriteDeadline(c.nextDeadline()); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

func (c *connection) nextDeadline() time.Time {
	stall := time.Now().Add(writeStall)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deadline.IsZero() && c.deadline.Before(stall) {
		return c.deadline
	}
	return stall
}

// SetWriteDeadline sets a deadline for the writes that follow, and for one that is under way.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines of reading and writing.
func (c *connection) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

type connectionKey struct{}

// inContext makes the connection of a request known to Handler.
func inContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secure.NetConn() // of TLS
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
