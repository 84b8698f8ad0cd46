package target

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
)

// asAgent is the variable that makes this test binary an agent with the folder that it names.
const asAgent = "ORDAIN_TEST_AGENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asAgent); dir != "" {
		c := Config{
			StateDir: dir, Program: "test 1", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			pause: 100 * time.Millisecond,
		}
		ctx := context.Background()
		if token := os.Getenv("ORDAIN_JOIN_TOKEN"); token != "" && !Joined(c) {
			if err := Join(ctx, c, token); err != nil {
				log.Fatal(err)
			}
		}
		a, err := New(ctx, c)
		if err == nil {
			err = a.Run(ctx)
		}
		log.Fatal(err)
	}
	os.Exit(parallel.Wide(m, 3).Run())
}

// patience is how long a test waits for anything.
const patience = 60 * time.Second

// fakeServer is an agent server that does what a test says, and nothing by itself but pings.
type fakeServer struct {
	t         *testing.T
	authority *ca.Authority
	who       ca.Identity
	url       string
	links     chan *fakeLink

	mu    sync.Mutex
	token string // the join token that is accepted, once
}

// fakeLink is a connection of an agent.
type fakeLink struct {
	t     *testing.T
	conn  *websocket.Conn
	ctx   context.Context
	hello protocol.HelloMessage
	in    chan any // messages of the agent but pongs
}

// newServer starts a server at an address of this machine.
func newServer(t *testing.T, host string, now time.Time) *fakeServer {
	t.Helper()
	certificate, key, err := ca.Make(now)
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{t: t, who: ca.Identity{Environment: uuid.New(), Agent: "host 1"}, links: make(chan *fakeLink, 100)}
	if s.authority, err = ca.Open(certificate, key); err != nil {
		t.Fatal(err)
	}
	own, err := s.authority.SignServer([]string{host}, now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + l.Addr().String()
	s.token = protocol.JoinToken{
		URL: s.url, ID: uuid.NewString(), Secret: strings.Repeat("A", 43), CA: s.authority.Hash(),
	}.String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.AuthorityPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, s.authority.PEM())
	})
	mux.HandleFunc("POST "+protocol.JoinPath, func(w http.ResponseWriter, r *http.Request) { s.join(w, r, now) })
	mux.HandleFunc("GET "+protocol.SubscribePath, s.subscribe)
	server := &http.Server{
		Handler: mux, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: patience,
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *fakeServer) join(w http.ResponseWriter, r *http.Request, now time.Time) {
	var asked protocol.JoinRequest
	_ = json.NewDecoder(r.Body).Decode(&asked)
	s.mu.Lock()
	accepted := asked.Token == s.token
	s.mu.Unlock()
	if !accepted {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(protocol.Refusal{Message: "this join token was used", Reason: "used"})
		return
	}
	issued, err := s.authority.SignAgent(asked.Request, s.who, now, 24*time.Hour)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(protocol.JoinAnswer{
		Certificate: issued.PEM, CA: s.authority.PEM(), Environment: s.who.Environment.String(), Agent: s.who.Agent,
		URL: s.url,
	})
}

func (s *fakeServer) subscribe(w http.ResponseWriter, r *http.Request) {
	if len(r.TLS.PeerCertificates) == 0 {
		http.Error(w, "no certificate", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.Subprotocol}})
	if err != nil {
		return
	}
	conn.SetReadLimit(protocol.MaxMessage)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer func() { _ = conn.CloseNow() }()
	l := &fakeLink{t: s.t, conn: conn, ctx: ctx, in: make(chan any, 10_000)}
	_, data, err := conn.Read(ctx)
	if err != nil || json.Unmarshal(data, &l.hello) != nil {
		return
	}
	l.send(protocol.WelcomeMessage{
		Type: protocol.Welcome, Protocol: 1, Server: "test",
		Environment: s.who.Environment.String(), Agent: s.who.Agent,
		Now: time.Now(), PingSeconds: 1, MaxMessage: protocol.MaxMessage, MaxAnswer: protocol.MaxAnswer,
	})
	s.links <- l
	go func() {
		for id := int64(1); ctx.Err() == nil; id++ {
			l.send(protocol.PingMessage{Type: protocol.Ping, ID: id})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}()
	defer close(l.in)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		m, err := protocol.DecodeFromAgent(data)
		if err != nil {
			s.t.Errorf("the agent sent nonsense: %v", err)
			return
		}
		if _, pong := m.(*protocol.PongMessage); !pong {
			l.in <- m
		}
	}
}

// link waits for the next connection.
func (s *fakeServer) link() *fakeLink {
	s.t.Helper()
	select {
	case l := <-s.links:
		return l
	case <-time.After(patience):
		s.t.Fatal("the agent did not connect")
		return nil
	}
}

// send sends a message; a broken connection shows at the next read.
func (l *fakeLink) send(m any) {
	text, err := json.Marshal(m)
	if err != nil {
		l.t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	_ = l.conn.Write(ctx, websocket.MessageText, text)
}

// await returns the next message of type T.
func await[T any](l *fakeLink) T {
	l.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case m, open := <-l.in:
			if !open {
				l.t.Fatalf("the connection ended before %T came", *new(T))
			}
			if wanted, ok := m.(T); ok {
				return wanted
			}
		case <-timeout:
			l.t.Fatalf("no %T came", *new(T))
		}
	}
}

// answer waits for the answer of a command, and puts its parts together.
func (l *fakeLink) answer(id string) *protocol.AnswerBody {
	l.t.Helper()
	var all []byte
	for part := 0; ; {
		m := await[*protocol.AnswerMessage](l)
		if m.ID != id {
			continue
		}
		if m.Part != part {
			l.t.Fatalf("part %d of the answer has the number %d", part, m.Part)
		}
		part++
		all = append(all, m.Data...)
		if m.Last {
			break
		}
	}
	a, err := protocol.DecodeAnswer(all)
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

func (l *fakeLink) record(ids ...string) {
	l.send(protocol.RecordedMessage{Type: protocol.Recorded, IDs: ids})
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// give sends a content and waits until the agent has it.
func (l *fakeLink) give(content []byte) string {
	l.t.Helper()
	h := sha256Of(content)
	for at := 0; at == 0 || at < len(content); at += protocol.MaxPart {
		end := min(at+protocol.MaxPart, len(content))
		l.send(protocol.ContentMessage{
			Type: protocol.Content, Hash: h, Size: int64(len(content)), Offset: int64(at), Data: content[at:end],
			Last: end == len(content),
		})
	}
	if m := await[*protocol.StoredMessage](l); m.Hash != h || m.Error != "" {
		l.t.Fatalf("stored %+v", m)
	}
	return h
}

// handlers is a module whose handlers do what the value of a resource says.
const handlers = `
import os
import time

from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource


@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("agent", "name", "file", "do")


@provider("lab::Thing", name="lab")
class Lab(CRUDHandler):
    def read_resource(self, ctx, resource):
        ctx.info("working on %(name)s", name=resource.name)
        with open(resource.file, "a") as f:
            f.write(resource.name + "\n")
        if resource.do == "wait":
            while not os.path.exists(resource.file + ".go"):
                time.sleep(0.02)
        if resource.do == "large":
            for n in range(100):
                ctx.info("x" * 1000_000)
        if resource.do == "facts":
            for n in range(100):
                ctx.set_fact("fact %d" % n, "y" * 1000_000)
        if resource.do == "ask":
            client = self.get_client()
            code = self.run_sync(lambda: client.get_param(tid=self._agent.environment, id="name")).code
            ctx.info("the server says %(code)s", code=code)
        resource.do = "" # no difference is left but for this one

    def update_resource(self, ctx, changes, resource):
        ctx.set_updated()
`

// blueprint gives the agent a module and returns its blueprint.
func (l *fakeLink) blueprint(python string) (*protocol.Blueprint, []string) {
	l.t.Helper()
	source := l.give([]byte(handlers))
	archive, runtimeHash := runtime.Archive()
	_ = archive // the agent is of the same build
	b := &protocol.Blueprint{
		Hash: "lab", Python: python,
		Modules: map[string]string{"inmanta_plugins.lab": "inmanta_plugins/lab/__init__.py"},
		Files:   map[string]string{"inmanta_plugins/lab/__init__.py": source},
		Wheels:  []protocol.Wheel{}, Runtime: runtimeHash,
	}
	return b, []string{source, runtimeHash}
}

// deployment is a command to deploy a resource whose handler writes its name into a file.
func deployment(seq int64, b *protocol.Blueprint, needs []string, name, file, do string) protocol.CommandMessage {
	attributes, err := json.Marshal(map[string]any{
		"agent": "host 1", "name": name, "file": file, "do": do, "purged": false, "send_event": false,
		"receive_events": true, "purge_on_delete": false, "version": 1,
	})
	if err != nil {
		panic(err)
	}
	return protocol.CommandMessage{
		Type: protocol.Command, Seq: seq, ID: uuid.NewString(), DeadlineMS: 60_000, Action: protocol.Deploy,
		Needs: needs,
		Payload: protocol.Payload{Blueprint: b, Task: &protocol.Task{
			Reason: "test", Requires: map[string]string{}, TimeoutMS: 50_000, Resource: protocol.Resource{
				ID: "lab::Thing[host 1,name=" + name + "]", Version: 1, Attributes: attributes, Requires: []string{},
			},
		}},
	}
}

// inProcess joins an agent and runs it in this process.
func inProcess(t *testing.T, s *fakeServer, change func(*Config)) (c Config, stop func()) {
	t.Helper()
	c = Config{
		StateDir: t.TempDir(), Program: "test 1", pause: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testLog{t}, nil)),
	}
	if change != nil {
		change(&c)
	}
	if err := Join(t.Context(), c, s.token); err != nil {
		t.Fatal(err)
	}
	return c, start(t, c)
}

// start runs an agent that has joined.
func start(t *testing.T, c Config) (stop func()) {
	t.Helper()
	a, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			t.Errorf("the agent ended: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// asProcess starts an agent as a process of its own.
func asProcess(t *testing.T, dir, token string, wrapper ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrapper, self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), asAgent+"="+dir, "ORDAIN_JOIN_TOKEN="+token)
	cmd.Stderr = testLog{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("agent: %s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// ranTimes counts how often the handler of a resource ran.
func ranTimes(t *testing.T, file, name string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), name+"\n")
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this did not come true: " + what)
		}
	}
}

func text(a *protocol.AnswerBody) string { return fmt.Sprintf("%s %s %s", a.Status, a.Change, a.Lines) }
