// Package gateway is the agent server: the only thing that remote agents talk to. Provisioners that run elsewhere use
// the same port (provisioners.go).
//
//	agents ══TLS, WebSocket══▶ link ─▶ recorder ──answers──▶ record ─▶ bus.Answered
//	   ▲                        ▲
//	   ╚══ contents, commands ══╝◀─ dispatcher ◀──claims── record ◀─ bus.Command, or a sweep
//
// A link has one goroutine that reads, and one that writes while there is something to
// write. It knows which commands its agent has, and nothing that the record does not
// know: when a connection or this process ends, the next one begins with the hello of
// the agent and what the record has not got an answer for.
//
// Memory is bounded whatever agents do: messages above 64 KiB, and answers in several
// parts, need a place, of which there are few; queues have an end; who does not read is
// disconnected, and who sends too quickly is read later.
package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/store"
)

// Desk answers the calls that the handlers of an environment make to the server. *callback.Desk does.
type Desk interface {
	Call(
		ctx context.Context, name string, positional []json.RawMessage, named map[string]json.RawMessage,
	) (code int, body json.RawMessage, known bool)
}

// Files are the files of an environment, by their SHA-1.
type Files interface {
	File(ctx context.Context, sha1 string) ([]byte, error)
	PutFile(ctx context.Context, content []byte) (string, error)
}

// Config configures a Gateway. All fields are required unless their comment says otherwise.
type Config struct {
	Authority *authority.Service
	Record    *record.Record
	Store     *store.Store
	Bus       *bus.Bus
	Logger    *slog.Logger
	Version   string // of the server
	// Listener takes the connections. The gateway closes it.
	Listener net.Listener
	// TLS holds the operator's certificate; nil: the authority makes one for Hosts.
	TLS   *tls.Config
	Hosts []string
	// Desk and Files are for the handlers of an environment; nil: calls are refused.
	Desk  func(intent.EnvironmentID) (Desk, error)
	Files func(intent.EnvironmentID) (Files, error)
	// Variables returns the environment variables of the handlers of an environment, and the names of those that are no
	// secrets; nil: none.
	Variables func(ctx context.Context, env intent.EnvironmentID) (values map[string]string, plain []string, err error)
	// Progress gets log lines of commands that run; may be nil. It must not wait.
	Progress func(env intent.EnvironmentID, agent, command string, lines []json.RawMessage)
	// Provisioners serves what is below /provisioner/, with or without a certificate of the client; nil: nothing is. It
	// extends the deadlines of requests that take long. Its connections are closed when the gateway stops.
	Provisioners http.Handler
	// MaxAnswer is how many bytes an answer may have; 64 MiB when zero.
	MaxAnswer int
	// MaxAgents is how many connections there may be; 20,000 when zero.
	MaxAgents int
	// Ping is the time between two pings, and Sweep that between two looks at the record; 10 and 5 seconds when zero.
	Ping, Sweep time.Duration
}

// Limits of the whole gateway.
const (
	largeMessages = 32  // of up to 4 MiB that are being read
	largeAnswers  = 2   // of up to 64 MiB that are being put together
	callsAtOnce   = 64  // of all agents
	joinsAtOnce   = 16  // requests to join
	claimsAtOnce  = 500 // links in one claim
)

// Gateway serves agents. It is a service.Service that runs once.
type Gateway struct {
	c        Config
	running  service.Runner
	server   *http.Server
	contents *contents
	recorder *recorder
	vars     *variables

	large, big, calls, joins *semaphore.Weighted

	mu       sync.Mutex
	links    map[ca.Identity]*link
	slots    [pingSlots]map[*link]struct{}
	next     int // the slot of the next link
	dirty    map[*link]struct{}
	draining bool

	wake chan struct{} // the dispatcher
	gone chan store.AgentConnection
	all  sync.WaitGroup // goroutines of links
	work context.Context
	end  context.CancelFunc
}

var _ service.Service = (*Gateway)(nil)

// New makes a gateway.
func New(c Config) (*Gateway, error) {
	if c.Authority == nil || c.Record == nil || c.Store == nil || c.Bus == nil || c.Logger == nil || c.Listener == nil {
		return nil, errors.New("gateway.New: a part of the configuration is missing")
	}
	if c.MaxAgents == 0 {
		c.MaxAgents = 20_000
	}
	if c.MaxAnswer == 0 {
		c.MaxAnswer = protocol.MaxAnswer
	}
	if c.Ping == 0 {
		c.Ping = protocol.PingInterval
	}
	if c.Sweep == 0 {
		c.Sweep = 5 * time.Second
	}
	g := &Gateway{
		c: c, contents: newContents(c.Store), vars: &variables{read: c.Variables},
		large: semaphore.NewWeighted(largeMessages), big: semaphore.NewWeighted(largeAnswers),
		calls: semaphore.NewWeighted(callsAtOnce), joins: semaphore.NewWeighted(joinsAtOnce),
		links: map[ca.Identity]*link{}, dirty: map[*link]struct{}{},
		wake: make(chan struct{}, 1), gone: make(chan store.AgentConnection, 1024),
	}
	for i := range g.slots {
		g.slots[i] = map[*link]struct{}{}
	}
	g.recorder = newRecorder(g)
	var err error
	g.server, err = g.newServer()
	return g, err
}

// Start begins to serve agents.
func (g *Gateway) Start(ctx context.Context) error {
	return g.running.Start(context.WithoutCancel(ctx), func(ctx context.Context) (func(context.Context), error) {
		g.work, g.end = context.WithCancel(context.WithoutCancel(ctx))
		return g.run, nil
	})
}

// Stop disconnects the agents, which connect elsewhere or again, and waits until nothing runs any more.
func (g *Gateway) Stop() { g.running.Stop() }

// run serves until ctx ends.
func (g *Gateway) run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){g.dispatch, g.listenToBus, g.ping, g.reconcile, g.recordGone} {
		loops.Go(func() { loop(g.work) })
	}
	recorded := make(chan struct{})
	go func() {
		g.recorder.run(g.work)
		close(recorded)
	}()
	served := make(chan error, 1)
	go func() { served <- g.server.ServeTLS(g.limit(g.c.Listener), "", "") }()
	g.c.Logger.Info("agents can connect", "address", g.c.Listener.Addr().String())
	select {
	case <-ctx.Done():
	case err := <-served:
		g.c.Logger.Error("the agent server cannot accept connections any more", "error", err)
		<-ctx.Done()
	}
	_ = g.server.Close() // connections of agents are not among those that it closes, but those of provisioners are
	g.drain()
	g.end()
	loops.Wait()
	<-recorded
}

// drainTime is how long agents have to take leave, and answers to be recorded.
const drainTime = 5 * time.Second

// drain says goodbye to all agents.
func (g *Gateway) drain() {
	g.mu.Lock()
	g.draining = true
	links := make([]*link, 0, len(g.links))
	for _, l := range g.links {
		links = append(links, l)
	}
	g.mu.Unlock()
	for i, l := range links {
		// They come back one after another.
		l.bye(protocol.Draining, "this server stops; another one will answer, or this one again", 1+i%5)
	}
	done := make(chan struct{})
	go func() {
		g.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainTime):
		for _, l := range links {
			l.cut()
		}
		<-done
	}
}

// Agents returns how many agents are connected.
func (g *Gateway) Agents() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.links)
}

// problem notes for people what went wrong with an agent.
func (g *Gateway) problem(who ca.Identity, text string) {
	g.c.Logger.Warn("trouble with an agent", "environment", who.Environment, "agent", who.Agent, "problem", text)
	ctx, cancel := context.WithTimeout(g.work, 10*time.Second)
	defer cancel()
	if err := g.c.Store.NoteAgentProblem(ctx, who.Environment, who.Agent, text); err != nil && g.work.Err() == nil {
		g.c.Logger.Error("a problem of an agent cannot be recorded", "agent", who.Agent, "error", err)
	}
}

// publish says that something about an agent changed.
func (g *Gateway) publish(who ca.Identity) {
	g.c.Bus.Publish(bus.Event{Environment: who.Environment, Topic: bus.Command, ID: who.Agent})
}
