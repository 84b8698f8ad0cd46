package main

import (
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordain.dev/ordain/bench/peer"
)

// network passes connections on to a server, until it is cut.
type network struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	whole chan struct{} // closed while nothing is cut
	open  map[net.Conn]bool
}

func newNetwork(to string) (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &network{listener: l, to: to, whole: make(chan struct{}), open: map[net.Conn]bool{}}
	close(n.whole)
	go n.accept()
	return n, nil
}

func (n *network) url() string { return "https://" + n.listener.Addr().String() }

func (n *network) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return
		}
		go n.pass(c)
	}
}

// pass copies both directions. While the network is cut nothing passes, and nobody is told.
func (n *network) pass(from net.Conn) {
	defer n.drop(from)
	<-n.now()
	to, err := net.Dial("tcp", n.to)
	if err != nil {
		return
	}
	defer n.drop(to)
	n.mu.Lock()
	n.open[from], n.open[to] = true, true
	n.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			buffer := make([]byte, 32<<10)
			for {
				k, err := pair[0].Read(buffer)
				<-n.now()
				if _, failed := pair[1].Write(buffer[:k]); err != nil || failed != nil {
					break
				}
			}
			done <- struct{}{}
		}()
	}
	<-done
}

func (n *network) now() chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.whole
}

func (n *network) drop(c net.Conn) {
	_ = c.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, c)
}

// cut lets nothing pass for a while. If hard is set, all connections break in the end, and what was in them is lost.
func (n *network) cut(d time.Duration, hard bool) {
	n.mu.Lock()
	gate := make(chan struct{})
	n.whole = gate
	n.mu.Unlock()
	time.Sleep(d)
	n.mu.Lock()
	if hard {
		for c := range n.open {
			_ = c.Close()
		}
	}
	close(gate)
	n.mu.Unlock()
}

func (n *network) close() { _ = n.listener.Close() }

// nats is the bus: a NATS server on a fixed port, which keeps nothing.
type nats struct {
	port int
	mu   sync.Mutex
	now  *server.Server
}

func startNATS() (*nats, error) {
	port, err := peer.FreePort()
	if err != nil {
		return nil, err
	}
	n := &nats{port: port}
	return n, n.start()
}

func (n *nats) url() string { return "nats://127.0.0.1:" + strconv.Itoa(n.port) }

func (n *nats) start() error {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: n.port, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return io.ErrNoProgress
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = s
	return nil
}

func (n *nats) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now != nil {
		n.now.Shutdown()
		n.now.WaitForShutdown()
		n.now = nil
	}
}
