// Command agents connects many agents to one agent server, over real TLS connections
// on loopback, and measures what that takes: the memory of the server's process, the
// round of pings, and the round trip of commands through the record.
//
//	this process: agents ══TLS══▶ child process: agent server ──▶ PostgreSQL
//	                                             owner: puts commands, waits for the answers
//
//	go run ./bench/agents -agents 10000 -rate 500
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/agent/agenttest"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

type options struct {
	agents, rate int
	idle, load   time.Duration
	dir          string
	serve        bool
	url, env     string
}

func main() {
	var o options
	flag.IntVar(&o.agents, "agents", 10_000, "agents to connect")
	flag.IntVar(&o.rate, "rate", 500, "commands per second")
	flag.DurationVar(&o.idle, "idle", 30*time.Second, "how long the agents only answer pings")
	flag.DurationVar(&o.load, "load", 30*time.Second, "how long commands are sent")
	flag.StringVar(&o.dir, "dir", "", "folder for the database; empty: a temporary one")
	flag.BoolVar(&o.serve, "serve", false, "be the agent server; for the program's own use")
	flag.StringVar(&o.url, "url", "", "database of the agent server")
	flag.StringVar(&o.env, "env", "", "environment of the agents")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := measure
	if o.serve {
		run = serve
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

func nameOf(n int) string { return fmt.Sprintf("agent-%05d", n) }

// measure is the parent: the database, the agents, and what is printed.
func measure(ctx context.Context, o options) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "ordain-bench-agents-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
		o.dir = dir
	}
	quiet := slog.New(slog.DiscardHandler)
	database, err := postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(o.dir, "data"), SocketDir: filepath.Join(o.dir, "socket"),
		CacheDir: filepath.Join(o.dir, "cache"), Logger: quiet,
	})
	if err != nil {
		return err
	}
	defer func() { _ = database.Stop(context.WithoutCancel(ctx)) }() // it is thrown away
	o.url = database.URL()
	server, err := startServer(ctx, &o)
	if err != nil {
		return err
	}
	defer server.stop()
	began := time.Now()
	credentials, err := joinAll(ctx, o, server.address)
	if err != nil {
		return err
	}
	fmt.Printf("%d agents joined in %s\n", o.agents, time.Since(began).Round(time.Second))
	began = time.Now()
	herd := newHerd(credentials)
	if err := herd.connect(ctx); err != nil {
		return err
	}
	fmt.Printf("%d agents connected in %s\n", o.agents, time.Since(began).Round(100*time.Millisecond))
	if err := server.ask(ctx, "idle", o.idle); err != nil {
		return err
	}
	herd.report()
	if err := server.ask(ctx, "load", o.load); err != nil {
		return err
	}
	herd.report()
	herd.over.Store(true)
	if n := herd.broken.Load(); n > 0 {
		return fmt.Errorf("%d connections broke", n)
	}
	return nil
}

// server is the child process.
type server struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	address string
}

func startServer(ctx context.Context, o *options) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.env = uuid.NewString()
	s := &server{}
	s.cmd = exec.CommandContext(ctx, self, "-serve", "-url", o.url, "-dir", o.dir, "-env", o.env,
		"-agents", fmt.Sprint(o.agents), "-rate", fmt.Sprint(o.rate))
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	if !s.out.Scan() {
		return nil, errors.New("the agent server did not start")
	}
	s.address = s.out.Text()
	return s, nil
}

// ask has the server do something for a while, and prints what it says.
func (s *server) ask(ctx context.Context, what string, time time.Duration) error {
	if _, err := fmt.Fprintln(s.in, what, time); err != nil {
		return err
	}
	for s.out.Scan() {
		if s.out.Text() == "." {
			return ctx.Err()
		}
		fmt.Println(s.out.Text())
	}
	return errors.New("the agent server ended")
}

func (s *server) stop() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

// joinAll makes certificates for all agents, without the network: joining is not what is measured.
func joinAll(ctx context.Context, o options, address string) ([]*agenttest.Credentials, error) {
	log := slog.New(slog.DiscardHandler)
	records, err := store.Open(ctx, store.Config{URL: o.url, Logger: log})
	if err != nil {
		return nil, err
	}
	defer records.Close()
	key, err := secret.OpenKey(filepath.Join(o.dir, "key"))
	if err != nil {
		return nil, err
	}
	office, err := authority.New(ctx, authority.Config{
		Store: records, Key: key, Bus: &bus.Bus{}, Logger: log, URL: func() string { return address },
	})
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(office.Trust()))
	env := uuid.MustParse(o.env)
	all := make([]*agenttest.Credentials, o.agents)
	return all, each(o.agents, 8, func(n int) error {
		_, token, err := office.CreateToken(ctx, env, nameOf(n), 0)
		if err != nil {
			return err
		}
		request, private, err := ca.Request()
		if err != nil {
			return err
		}
		c := &agenttest.Credentials{Roots: roots}
		if c.Answer, err = office.Join(ctx, protocol.JoinRequest{
			Token: token, Request: request, Program: "bench",
		}, "127.0.0.1"); err != nil {
			return err
		}
		c.Certificate, err = tls.X509KeyPair([]byte(c.Answer.Certificate), []byte(private))
		all[n] = c
		return err
	})
}

// each calls f with 0 to n-1, some at a time.
func each(n, atOnce int, f func(int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	var mu sync.Mutex
	var all error
	for range atOnce {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					mu.Lock()
					all = errors.Join(all, fmt.Errorf("%d: %w", i, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	workers.Wait()
	return all
}

// herd are the agents.
type herd struct {
	credentials []*agenttest.Credentials
	broken      atomic.Int64
	over        atomic.Bool // the connections may break
	commands    atomic.Int64

	mu   sync.Mutex
	last []time.Time
	gaps []time.Duration
}

func newHerd(all []*agenttest.Credentials) *herd {
	return &herd{credentials: all, last: make([]time.Time, len(all))}
}

func (h *herd) connect(ctx context.Context) error {
	return each(len(h.credentials), 64, func(n int) error {
		conn, _, err := h.credentials[n].Start(ctx, agenttest.Hello())
		if err != nil {
			return err
		}
		go h.live(ctx, n, conn)
		return nil
	})
}

// live is an agent that answers everything at once.
func (h *herd) live(ctx context.Context, n int, conn *agenttest.Conn) {
	for {
		m, err := conn.Receive(ctx)
		if err == nil {
			switch m := m.(type) {
			case *protocol.PingMessage:
				h.pinged(n)
				err = conn.Send(ctx, protocol.PongMessage{Type: protocol.Pong, ID: m.ID})
			case *protocol.CommandMessage:
				h.commands.Add(1)
				err = conn.Answer(ctx, m.ID, agenttest.Done())
			}
		}
		if err != nil {
			if !h.over.Load() && h.broken.Add(1) <= 3 {
				fmt.Fprintln(os.Stderr, "a connection broke:", err)
			}
			return
		}
	}
}

func (h *herd) pinged(n int) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last[n].IsZero() {
		h.gaps = append(h.gaps, now.Sub(h.last[n]))
	}
	h.last[n] = now
}

// report prints how the pings came since the last report.
func (h *herd) report() {
	h.mu.Lock()
	gaps := h.gaps
	h.gaps = nil
	silent := 0
	for _, t := range h.last {
		if time.Since(t) > 2*protocol.PingInterval {
			silent++
		}
	}
	h.mu.Unlock()
	fmt.Printf("  pings: %d, time between two: p50 %s, p99 %s, longest %s; agents without a ping for 20 s: %d\n",
		len(gaps), percentile(gaps, 50), percentile(gaps, 99), percentile(gaps, 100), silent)
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*p/100)].Round(100 * time.Microsecond)
}

// deploy is a command of a usual size.
func deploy(agent string) protocol.CommandMessage {
	attributes, _ := json.Marshal(map[string]string{"path": "/etc/motd", "content": "welcome to " + agent})
	return protocol.CommandMessage{
		ID: uuid.NewString(), Action: protocol.Deploy, DeadlineMS: 60_000, Needs: []string{},
		Payload: protocol.Payload{Task: &protocol.Task{
			Resource: protocol.Resource{
				ID: "fs::File[" + agent + ",path=/etc/motd]", Version: 1, Attributes: attributes, Requires: []string{},
			},
			Reason: "bench", Requires: map[string]string{},
		}, Variables: map[string]string{}},
	}
}
