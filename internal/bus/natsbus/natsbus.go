// Package natsbus connects the buses of several processes through a NATS server.
//
//	Publish ─▶ queue ─▶ ordain.<installation>.event.<environment>.<topic> ─▶ Receive of the others
//	Ask ─────────────▶ ordain.<installation>.ask.<environment>.<question> ─▶ Respond of the others ─▶ answer
//
// The server is no place of record: it may be stopped, deleted and installed again at any
// time. A Conn tries to reach it for ever. After each connection it makes the subscribers
// of its own bus lag, and those of the others too if events of its own may have been
// lost. Messages of others are checked before anything is done with them.
package natsbus

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"ordain.dev/ordain/internal/bus"
)

// Target is a NATS server, or several of one cluster, and how to log in there.
type Target struct {
	Servers []string // URLs without credentials: nats://host:port, or tls://host:port
	// TLS demands TLS with this configuration; nil: the server decides.
	TLS *tls.Config
	// Embedded says that a replica runs the server: the TLS handshake comes first, and while another replica takes
	// over, the server may refuse what it will accept a moment later.
	Embedded       bool
	User, Password string
	Credentials    string // file with a user's JWT and seed
	Seed           []byte // of an nkey
}

// Config configures a Conn.
type Config struct {
	Bus          *bus.Bus
	Installation uuid.UUID // separates installations that share a cluster
	Name         string    // of this process, for the people who run the cluster
	// Find returns the server to connect to. It is called before each try.
	Find func(ctx context.Context) (Target, error)
	// Moved receives a value when Find may return another target; the Conn then looks at once. May be nil.
	Moved  <-chan struct{}
	Logger *slog.Logger
}

const (
	queueLength = 4096             // events that wait to be sent
	maxPause    = 5 * time.Second  // between two tries
	dialTimeout = 5 * time.Second  // of each server, with TLS and log-in
	pingEvery   = 3 * time.Second  // a server that misses two of these is gone
	unconfirmed = 30 * time.Second // an event sent this long before the connection broke has arrived
	passing     = 5 * time.Second  // an interruption that is this short needs no warning
	farewell    = time.Second      // for what still waits when the Conn is closed
)

// Status says for people whether the bus is connected.
type Status struct {
	Connected bool
	Since     time.Time // when it became so
	Server    string    // its address, without secrets; empty when it is not known
	Error     string    // what is wrong, empty when nothing is
}

// Conn is the link of a bus. New makes it.
type Conn struct {
	cfg     Config
	subject string // what the subjects of this installation begin with

	queue   chan bus.Event
	owed    atomic.Bool   // events were dropped: the others must lag
	wake    chan struct{} // the sender looks at owed
	session atomic.Pointer[nats.Conn]
	answers chan struct{} // holds a value for each answer that is being made
	// answering waits for them.
	answering sync.WaitGroup

	mu        sync.Mutex
	status    Status
	warned    string // the reason of the last warning
	closed    bool   // nothing more is answered
	complaint string // of the server, about a connection that goes on

	dropped atomic.Int64 // messages of others that were refused
	cancel  context.CancelFunc
	done    chan struct{}
}

// New connects a bus, in the background, until Close.
func New(cfg Config) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{
		cfg: cfg, subject: "ordain." + cfg.Installation.String() + ".",
		queue: make(chan bus.Event, queueLength), wake: make(chan struct{}, 1),
		answers: make(chan struct{}, maxAnswers), cancel: cancel, done: make(chan struct{}),
		status: Status{Since: time.Now()},
	}
	cfg.Bus.SetLink(c)
	go c.run(ctx)
	return c
}

// Close disconnects the bus, after a last attempt to send what waits. The bus then serves only this process.
func (c *Conn) Close() {
	c.cfg.Bus.SetLink(nil)
	c.cancel()
	<-c.done
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.answering.Wait()
}

// Status returns whether the bus is connected.
func (c *Conn) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// run connects again and again until ctx ends.
func (c *Conn) run(ctx context.Context) {
	defer close(c.done)
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		target, err := c.cfg.Find(ctx)
		if err == nil {
			err = c.connected(ctx, target)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errMoved) {
			failures = 0
			continue
		}
		if time.Since(began) > maxPause {
			failures = 0
		}
		c.note(target, err)
		pause := min(maxPause, 100*time.Millisecond<<min(failures, 10))
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.cfg.Moved:
		}
		timer.Stop()
	}
}

// note records why the bus is not connected. It warns once of each reason that does not pass by itself, and of the
// others when they last.
func (c *Conn) note(target Target, err error) {
	why, lasting := explain(err)
	c.mu.Lock()
	if c.status.Connected {
		c.status = Status{Since: time.Now()}
	}
	c.status.Server, c.status.Error = target.address(), why
	warn := c.warned != why && (lasting && !target.Embedded || time.Since(c.status.Since) > passing)
	if warn {
		c.warned = why
	}
	c.mu.Unlock()
	if warn {
		c.cfg.Logger.Warn("the event bus is not connected; everything goes on, more slowly",
			"server", target.address(), "error", why)
	}
}
