// Package link connects a server with a provisioner that it starts, over a socket pair.
//
//	server: New ── Serve(desk) ──┐  HTTP/2 without TLS, one connection   ┌── Connect ── http.Client: provisioner
//	             Child ──────────┼───────────────────────────────────────┘
//	                             └ descriptor that the child inherits
//
// The connection is the credential: nobody else has an end of it, so the server knows which project asks. There is only
// one, for the life of the child, and requests share it, since a request for tasks waits while leases are renewed. When
// either process dies, the other one notices that the connection has ended.
package link

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Base is the URL of the desk for the client that Connect returns.
const Base = "http://desk.invalid"

// requestsMax is how many requests are answered at a time; further ones wait.
const requestsMax = 1000

// Link is the server's end.
type Link struct {
	// Child is the other end, for the child to inherit. The server closes it once the child has started.
	Child *os.File
	conn  net.Conn
}

// New makes a connection.
func New() (*Link, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap("link.New", fault.Exhausted, err).Say("cannot make a connection for a provisioner")
	}
	ours, child := os.NewFile(uintptr(ends[0]), "provisioner"), os.NewFile(uintptr(ends[1]), "desk")
	conn, err := net.FileConn(ours) // has a descriptor of its own
	_ = ours.Close()
	if err != nil {
		_ = child.Close()
		return nil, fault.Wrap("link.New", fault.Exhausted, err).Say("cannot make a connection for a provisioner")
	}
	return &Link{Child: child, conn: conn}, nil
}

// Close ends the connection: the child ends, too.
func (l *Link) Close() {
	_ = l.Child.Close()
	_ = l.conn.Close()
}

// Serve answers the requests of the child until the connection or the context ends, and closes the connection. The
// contexts of requests end with it.
func (l *Link) Serve(ctx context.Context, handler http.Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: handler, Protocols: &protocols, ReadHeaderTimeout: time.Minute,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: requestsMax},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	conn := &watched{Conn: l.conn, lost: make(chan struct{})}
	stop := context.AfterFunc(ctx, conn.end)
	defer stop()
	defer conn.Close()
	_ = server.Serve(&single{conn: conn}) // it returns when the connection has ended
	_ = server.Close()
}

// single is a listener with one connection.
type single struct {
	conn     *watched
	accepted bool
}

// Accept returns the connection, and then waits for its end.
func (s *single) Accept() (net.Conn, error) {
	if !s.accepted {
		s.accepted = true
		return s.conn, nil
	}
	<-s.conn.lost
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s *single) Close() error {
	s.conn.end()
	return nil
}

// Addr implements net.Listener.
func (s *single) Addr() net.Addr { return &net.UnixAddr{Name: "provisioner", Net: "unix"} }

// errEnded is what a provisioner is told when it asks after the end of the connection.
var errEnded = errors.New("the connection to the server has ended")

// Connect makes an HTTP client of an inherited descriptor, which is not passed on to further programs. lost is closed
// when the connection has ended: the server is gone, or wants the provisioner to end.
func Connect(descriptor int) (client *http.Client, lost <-chan struct{}, err error) {
	if descriptor < 3 {
		return nil, nil, fault.New("link.Connect", fault.Invalid, "a provisioner of a server inherits its connection")
	}
	syscall.CloseOnExec(descriptor)
	file := os.NewFile(uintptr(descriptor), "desk")
	conn, err := net.FileConn(file)
	if file != nil {
		_ = file.Close()
	}
	if err != nil {
		return nil, nil, fault.Wrap("link.Connect", fault.Invalid, err).
			Say("the descriptor is no connection to a server").
			Hint("this form of the command is for the server itself; with --join, a provisioner runs anywhere")
	}
	w := &watched{Conn: conn, lost: make(chan struct{})}
	var once sync.Once
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{
		Protocols: &protocols,
		HTTP2:     &http.HTTP2Config{StrictMaxConcurrentRequests: true}, // there is no second connection
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			var first net.Conn
			once.Do(func() { first = w })
			if first == nil {
				return nil, errEnded
			}
			return first, nil
		},
	}}, w.lost, nil
}

// watched is a connection that says when it has ended.
type watched struct {
	net.Conn
	once sync.Once
	lost chan struct{}
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.end()
	}
	return n, err
}

// Close ends the connection; the HTTP client does so when it finds it broken.
func (w *watched) Close() error {
	defer w.end()
	return w.Conn.Close()
}

func (w *watched) end() { w.once.Do(func() { close(w.lost) }) }
