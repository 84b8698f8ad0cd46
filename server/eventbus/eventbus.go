// Package eventbus connects the bus of this process to those of the other replicas.
//
// With a cluster of NATS of the operator's own, it only connects to that. Otherwise one of
// the replicas runs a NATS server, and the others find it through the record:
//
//	lock "bus" ─▶ server with a new certificate and new credentials ─▶ row of the table bus ─▶ all replicas connect
//
// When that replica ends or loses the lock, its server ends too, and the next one to take
// the lock starts another. Nothing is lost with a server, since the bus is no place of
// record; while there is none, everything goes on, more slowly.
package eventbus

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/natsbus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/locks"
)

// Record is where the replicas agree on who runs the server.
type Record interface {
	Hold(ctx context.Context, name string) (*locks.Held, error)
	BusServer(ctx context.Context) (intent.BusServer, error)
	SetBusServer(ctx context.Context, held *locks.Held, b intent.BusServer) error
}

// Config configures a Service.
type Config struct {
	Bus          *bus.Bus
	Record       Record
	Installation uuid.UUID   // separates installations that share a cluster
	Key          *secret.Key // seals the credentials of our own server
	Name         string      // of this process, for people
	Logger       *slog.Logger

	// Cluster is the operator's own; without servers, one of the replicas runs one.
	Cluster Cluster
	// Listen is the host and port of the server that this process may run, as the other replicas reach it; empty: any
	// port of the loopback interface, which only replicas on this machine reach.
	Listen string
}

const (
	lookEvery    = 500 * time.Millisecond // while there is no connection
	compareEvery = 10 * time.Second       // while there is one
	failedStart  = 10 * time.Second       // before a server that could not start is started again
)

// Service connects the bus while it runs.
type Service struct {
	cfg     Config
	machine string
	running service.Runner
	moved   chan struct{}

	mu      sync.Mutex
	conn    *natsbus.Conn    // nil while the service does not run
	using   intent.BusServer // what conn was sent to last
	problem string           // why our own server did not start
	serving bool
}

// New checks the configuration. It does not connect or write anything.
func New(cfg Config) (*Service, error) {
	machine, err := os.Hostname()
	if err != nil {
		return nil, fault.Wrap("eventbus.New", fault.Internal, err).Say("this machine has no name")
	}
	if cfg.Cluster.isExternal() {
		_, err = cfg.Cluster.target()
	} else {
		err = checkListen(cfg.Listen)
	}
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, machine: machine, moved: make(chan struct{}, 1)}, nil
}

// Start begins to connect. It does not wait for a connection, which may never come about.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(ctx, func(context.Context) (func(context.Context), error) { return s.run, nil })
}

// Stop disconnects the bus, which then serves this process only.
func (s *Service) Stop() { s.running.Stop() }

// Status says for people whether the bus is connected.
type Status struct {
	natsbus.Status
	External bool // a cluster of the operator's own
	Serving  bool // this process runs the server
}

// Status returns whether the bus is connected.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{External: s.cfg.Cluster.isExternal(), Serving: s.serving}
	if s.conn != nil {
		status.Status = s.conn.Status()
	}
	if s.problem != "" && !status.Connected {
		status.Error = s.problem
	}
	return status
}

func (s *Service) run(ctx context.Context) {
	defer s.fail(nil)
	conn := natsbus.New(natsbus.Config{
		Bus: s.cfg.Bus, Installation: s.cfg.Installation, Name: s.cfg.Name, Find: s.find, Moved: s.moved,
		Logger: s.cfg.Logger,
	})
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	defer func() {
		conn.Close()
		s.mu.Lock()
		s.conn = nil
		s.mu.Unlock()
	}()
	if s.cfg.Cluster.isExternal() {
		<-ctx.Done()
		return
	}
	s.takeTurns(ctx, conn)
}

// takeTurns runs the server whenever no other replica does.
func (s *Service) takeTurns(ctx context.Context, conn *natsbus.Conn) {
	for compared := (time.Time{}); ctx.Err() == nil; pause(ctx, lookEvery) {
		if conn.Status().Connected && time.Since(compared) < compareEvery {
			continue
		}
		compared = time.Now()
		held, err := s.cfg.Record.Hold(ctx, store.BusLock)
		switch {
		case err != nil: // the database does not answer, which others report
		case held != nil:
			s.serve(ctx, held)
			compared = time.Time{}
		default:
			s.compare(ctx)
		}
	}
}

// compare makes the connection move when the record says that the server is elsewhere by now.
func (s *Service) compare(ctx context.Context) {
	b, err := s.cfg.Record.BusServer(ctx)
	s.mu.Lock()
	stale := err == nil && b.Address != "" && s.using.Address != "" &&
		string(b.Certificate) != string(s.using.Certificate)
	s.mu.Unlock()
	if stale {
		s.move()
	}
}

func (s *Service) move() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// serve runs the server until ctx ends or the lock is lost.
func (s *Service) serve(ctx context.Context, held *locks.Held) {
	server, err := s.announce(ctx, held)
	s.fail(err)
	if err != nil {
		held.Release() // so that another replica may try
		pause(ctx, failedStart)
		return
	}
	s.setServing(true)
	defer func() {
		server.stop() // before another one starts
		held.Release()
		s.setServing(false)
	}()
	s.cfg.Logger.Info("this process runs the server of the event bus", "address", server.address)
	s.move()
	select {
	case <-ctx.Done():
	case <-held.Lost():
		s.cfg.Logger.Warn("the lock of the event bus was lost, and its server ends; the next holder starts another")
	}
}

// announce starts the server and records where it is.
func (s *Service) announce(ctx context.Context, held *locks.Held) (*embedded, error) {
	server, err := s.start()
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Record.SetBusServer(ctx, held, server.record(s.machine)); err != nil {
		server.stop()
		return nil, err
	}
	return server, nil
}

func (s *Service) setServing(serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = serving
}

// fail records what is wrong; nil: nothing.
func (s *Service) fail(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	news := s.problem != text
	s.problem = text
	s.mu.Unlock()
	if news && text != "" {
		s.cfg.Logger.Warn("the event bus is not available; everything goes on, more slowly", "error", text)
	}
}

// pause waits about d, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
