package natsbus

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"ordain.dev/ordain/internal/bus"
)

// Bounds of what waits in this process for messages of others to be looked at.
const (
	pendingEvents         = 8192
	pendingEventBytes     = 4 << 20
	pendingQuestions      = 64
	pendingQuestionsBytes = 4 << 20
)

// connected connects once, and carries events until the connection breaks, the target moves or ctx ends. It returns
// why it ended.
func (c *Conn) connected(ctx context.Context, target Target) error {
	closed := make(chan struct{})
	// The end of ctx interrupts the beginning of a connection, but later leaves time for what waits.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	begun := context.AfterFunc(ctx, cancel)
	defer begun()
	c.mu.Lock()
	c.complaint = ""
	c.mu.Unlock()
	nc, err := c.dial(dialing, target, closed)
	if err != nil {
		return err
	}
	defer func() {
		c.session.Store(nil)
		nc.Close()
		<-closed
	}()
	if err := c.subscribe(nc); err != nil {
		return err
	}
	// Subscribers read everything again once the server knows our subscriptions: what happens later, they are told.
	if err := nc.FlushTimeout(dialTimeout); err != nil {
		return err
	}
	begun()
	c.session.Store(nc)
	c.mu.Lock()
	c.warned = ""
	c.status = Status{Connected: true, Since: time.Now(), Server: serverOf(nc), Error: c.complaint}
	c.mu.Unlock()
	c.cfg.Logger.Info("the event bus is connected", "server", serverOf(nc))
	c.cfg.Bus.Lag()
	return c.send(ctx, nc, closed)
}

// dial connects to one of the servers, and closes closed when the connection has ended.
func (c *Conn) dial(ctx context.Context, target Target, closed chan struct{}) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name(c.cfg.Name), nats.NoReconnect(), nats.NoEcho(), nats.IgnoreDiscoveredServers(),
		nats.SetCustomDialer(dialer{ctx}), nats.Timeout(dialTimeout), nats.FlusherTimeout(dialTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.ReconnectOnFlusherError(),
		nats.CustomInboxPrefix(c.subject + "reply"),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complain(err) }),
	}
	if target.TLS != nil {
		options = append(options, nats.Secure(target.TLS))
	}
	if target.Embedded {
		options = append(options, nats.TLSHandshakeFirst())
	}
	switch {
	case target.Seed != nil:
		pair, err := nkeys.FromSeed(target.Seed)
		if err != nil {
			return nil, err
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Nkey(public, pair.Sign))
	case target.Credentials != "":
		options = append(options, nats.UserCredentials(target.Credentials))
	case target.User != "" || target.Password != "":
		options = append(options, nats.UserInfo(target.User, target.Password))
	}
	return nats.Connect(strings.Join(target.Servers, ","), options...)
}

// dialer dials, and closes the connection when the context ends.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &dialled{conn, context.AfterFunc(d.ctx, func() { _ = conn.Close() })}, nil
}

// dialled is a connection that its context no longer watches once it is closed.
type dialled struct {
	net.Conn
	forget func() bool
}

func (d *dialled) Close() error {
	d.forget()
	return d.Conn.Close()
}

// send sends what is published until the connection ends.
func (c *Conn) send(ctx context.Context, nc *nats.Conn, closed <-chan struct{}) error {
	var last time.Time // when an event was sent
	defer func() {
		if time.Since(last) < unconfirmed {
			c.owed.Store(true)
		}
	}()
	for {
		if c.owed.Swap(false) {
			c.skip()
			last = time.Now()
			if err := c.emit(nc, bus.Event{Topic: bus.Lagged}); err != nil {
				return err
			}
		}
		select {
		case <-closed:
			return cause(nc)
		case <-ctx.Done():
			return c.leave(nc)
		case <-c.cfg.Moved:
			return errMoved
		case <-c.wake:
		case e := <-c.queue:
			last = time.Now()
			if err := c.emit(nc, e); err != nil {
				return err
			}
		}
	}
}

// skip drops the events that wait: the others will read everything again.
func (c *Conn) skip() {
	for {
		select {
		case <-c.queue:
		default:
			return
		}
	}
}

// leave sends what still waits.
func (c *Conn) leave(nc *nats.Conn) error {
	for {
		select {
		case e := <-c.queue:
			if err := c.emit(nc, e); err != nil {
				return err
			}
		default:
			return nc.FlushTimeout(farewell)
		}
	}
}

var errMoved = errors.New("the server of the bus has changed")

// cause returns why a connection ended.
func cause(nc *nats.Conn) error {
	if err := nc.LastError(); err != nil {
		return err
	}
	return io.EOF
}

// complain records an error that does not end the connection, such as a missing permission.
func (c *Conn) complain(err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		return // receive notices that messages are missing
	}
	why, _ := explain(err)
	c.mu.Lock()
	news := c.complaint != why
	if c.complaint = why; c.status.Connected {
		c.status.Error = why
	}
	c.mu.Unlock()
	if news {
		c.cfg.Logger.Warn("the server of the event bus complains", "error", why)
	}
}

// serverOf returns the address of the server, without what may be secret in its URL.
func serverOf(nc *nats.Conn) string {
	return Target{Servers: []string{nc.ConnectedUrlRedacted()}}.address()
}

// address returns the hosts of the servers.
func (t Target) address() string {
	hosts := make([]string, 0, len(t.Servers))
	for _, s := range t.Servers {
		if u, err := url.Parse(s); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return strings.Join(hosts, ",")
}
