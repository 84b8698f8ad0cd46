package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/agent/agenttest"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// site is a database with an environment, and what replicas have in common.
type site struct {
	t   *testing.T
	url string
	key *secret.Key
	env intent.EnvironmentID
	*replica
}

// replica is one agent server.
type replica struct {
	store     *store.Store
	bus       *bus.Bus
	record    *record.Record
	authority *authority.Service
	gateway   *gateway.Gateway
	address   string
	ahead     atomic.Int64 // of the clock of the authority, in nanoseconds
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSite(t *testing.T, change func(*gateway.Config)) *site {
	t.Helper()
	key, err := secret.OpenKey(t.TempDir() + "/key")
	must(t, err)
	s := &site{t: t, url: storetest.URL(t), key: key, env: uuid.New()}
	s.replica = s.newReplica(&bus.Bus{}, change)
	project := intent.Project{ID: uuid.New(), Name: "p"}
	must(t, s.store.CreateProject(t.Context(), project))
	must(
		t,
		s.store.CreateEnvironment(t.Context(), intent.Environment{ID: s.env, ProjectID: project.ID, Name: "e"}, nil),
	)
	return s
}

func (s *site) newReplica(events *bus.Bus, change func(*gateway.Config)) *replica {
	t := s.t
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &replica{bus: events, address: "https://" + l.Addr().String()}
	log := storetest.Logger(t)
	r.store, err = store.Open(t.Context(), store.Config{URL: s.url, Logger: log})
	must(t, err)
	t.Cleanup(r.store.Close)
	_, err = r.store.Beat(
		t.Context(),
		intent.Replica{Name: "r", Roles: []string{"agent"}, Started: time.Now()},
		time.Hour,
	)
	must(t, err)
	r.record, err = record.New(record.Config{Store: r.store, Key: s.key, Bus: events})
	must(t, err)
	r.authority, err = authority.New(t.Context(), authority.Config{
		Store: r.store, Key: s.key, Bus: events, Logger: log, URL: func() string { return r.address },
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
	must(t, err)
	c := gateway.Config{
		Authority: r.authority, Record: r.record, Store: r.store, Bus: events, Logger: log, Version: "test",
		Listener: l, Hosts: []string{"127.0.0.1"},
	}
	if change != nil {
		change(&c)
	}
	r.gateway, err = gateway.New(c)
	must(t, err)
	must(t, r.gateway.Start(t.Context()))
	t.Cleanup(r.gateway.Stop)
	return r
}

// join makes an agent.
func (s *site) join(name string) *agenttest.Credentials {
	s.t.Helper()
	_, token, err := s.authority.CreateToken(s.t.Context(), s.env, name, 0)
	must(s.t, err)
	c, err := agenttest.Join(s.t.Context(), token)
	must(s.t, err)
	return c
}

// start connects an agent.
func (s *site) start(c *agenttest.Credentials, change func(*protocol.HelloMessage)) *agenttest.Conn {
	s.t.Helper()
	hello := agenttest.Hello()
	if change != nil {
		change(&hello)
	}
	conn, welcome, err := c.Start(s.t.Context(), hello)
	must(s.t, err)
	s.t.Cleanup(conn.Close)
	if welcome.Environment != s.env.String() || welcome.Agent != c.Answer.Agent {
		s.t.Fatalf("the server takes the agent for %+v", welcome)
	}
	return conn
}

// put records a command.
func (s *site) put(agent string, change func(*protocol.CommandMessage)) uuid.UUID {
	s.t.Helper()
	id := uuid.New()
	m := protocol.CommandMessage{
		ID: id.String(), Action: protocol.Deploy, DeadlineMS: 60_000, Needs: []string{},
		Payload: protocol.Payload{Task: &protocol.Task{
			Resource: protocol.Resource{ID: "fs::File[" + agent + ",path=/x]", Version: 1,
				Attributes: json.RawMessage(`{"password":"hunter2"}`), Requires: []string{}},
			Requires: map[string]string{},
		}},
	}
	if change != nil {
		change(&m)
	}
	must(s.t, s.record.Put(s.t.Context(), s.env, agent, "", m))
	return id
}

// next returns the next message, which has to be of this type.
func next[M any](s *site, c *agenttest.Conn) *M {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	got, err := c.Next(ctx)
	must(s.t, err)
	m, ok := got.(*M)
	if !ok {
		s.t.Fatalf("the server sent %T %+v", got, got)
	}
	return m
}

// closed waits until the server has closed a connection, after bye with a reason.
func (s *site) closed(c *agenttest.Conn, reason protocol.Reason) string {
	s.t.Helper()
	m := next[protocol.ByeMessage](s, c)
	if m.Reason != reason {
		s.t.Fatalf("bye %s: %s, want %s", m.Reason, m.Message, reason)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	if _, err := c.Receive(ctx); err == nil || ctx.Err() != nil {
		s.t.Fatalf("the connection stays open after bye: %v", err)
	}
	return m.Message
}

// await waits for the answer of a command.
func (s *site) await(id uuid.UUID) protocol.AnswerBody {
	s.t.Helper()
	return await(s.t, func() (protocol.AnswerBody, bool) {
		all, err := s.record.Answers(s.t.Context(), s.env, []uuid.UUID{id})
		must(s.t, err)
		a, ok := all[id]
		return a, ok
	})
}

func await[V any](t *testing.T, look func() (V, bool)) V {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if v, ok := look(); ok {
			return v
		}
	}
	t.Fatal("it does not happen")
	panic("unreachable")
}

// agent returns what people see of an agent.
func (s *site) agent(name string) intent.RemoteAgent {
	s.t.Helper()
	all, err := s.authority.Agents(s.t.Context(), s.env)
	must(s.t, err)
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	return intent.RemoteAgent{}
}

// An agent joins, connects, gets the content that it lacks and then the command, and answers: the answer is in the
// record, and neither the payload nor the answer can be read there.
func TestACommandAndItsAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *gateway.Config) {
		c.Variables = func(context.Context, intent.EnvironmentID) (map[string]string, []string, error) {
			return map[string]string{"TOKEN": "s3cret", "PROXY": "p"}, []string{"PROXY"}, nil
		}
	})
	c := s.join("router/1")
	conn := s.start(c, nil)
	await(t, func() (bool, bool) { return true, s.agent("router/1").Connected })

	content := []byte(strings.Repeat("code ", 100_000)) // two parts
	hash, err := s.record.PutContent(t.Context(), content)
	must(t, err)
	events := s.bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Answered })
	defer events.Close()
	need := func(m *protocol.CommandMessage) { m.Needs = []string{hash} }
	first, second := s.put("router/1", need), s.put("router/1", need)

	var got []byte
	for {
		part := next[protocol.ContentMessage](s, conn)
		if part.Hash != hash || part.Offset != int64(len(got)) || part.Size != int64(len(content)) {
			t.Fatalf("part %+v after %d bytes", part, len(got))
		}
		if got = append(got, part.Data...); part.Last {
			break
		}
	}
	if protocol.Hash(got) != hash {
		t.Fatal("the content is another one")
	}
	must(t, conn.Send(t.Context(), protocol.StoredMessage{Type: protocol.Stored, Hash: hash}))
	m := next[protocol.CommandMessage](s, conn)
	if m.ID != first.String() || m.Seq != 1 || m.DeadlineMS < 50_000 || m.Payload.Variables["TOKEN"] != "s3cret" ||
		string(m.Payload.Task.Resource.Attributes) != `{"password":"hunter2"}` {
		t.Fatalf("the command is %+v", m)
	}
	if m = next[protocol.CommandMessage](s, conn); m.ID != second.String() || m.Seq != 2 {
		t.Fatalf("the second command, which needs no content any more, is %+v", m)
	}
	answer := agenttest.Done()
	answer.Facts = []protocol.Fact{{Name: "n", Value: strings.Repeat("v", 3<<19)}} // two parts
	must(t, conn.Answer(t.Context(), first.String(), answer))
	if m := next[protocol.RecordedMessage](s, conn); len(m.IDs) != 1 || m.IDs[0] != first.String() {
		t.Fatalf("recorded %v", m.IDs)
	}
	if e := <-events.Events(); e.ID != first.String() || e.Environment != s.env {
		t.Errorf("the event is %+v", e)
	}
	if a := s.await(first); a.Status != "deployed" || len(a.Facts[0].Value) != 3<<19 {
		t.Errorf("the answer is %s with %d facts", a.Status, len(a.Facts))
	}
	must(t, s.record.Finish(t.Context(), s.env, first))
	if left, err := s.record.Unfinished(t.Context(), s.env); err != nil || len(left) != 1 || left[0].ID != second {
		t.Errorf("unfinished: %+v, %v", left, err)
	}
}

// After a cut nothing is lost and nothing runs twice: what runs or is answered is not sent again, and what the agent
// never got is.
func TestResume(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	conn := s.start(c, nil)
	running, answered, lost := s.put("a", nil), s.put("a", nil), s.put("a", nil)
	for range 3 {
		next[protocol.CommandMessage](s, conn)
	}
	old := s.put("a", nil)
	next[protocol.CommandMessage](s, conn)
	must(t, conn.Answer(t.Context(), old.String(), agenttest.Done()))
	next[protocol.RecordedMessage](s, conn) // the agent never reads it: see unrecorded
	must(t, s.record.Finish(t.Context(), s.env, old))
	conn.Close()

	conn = s.start(c, func(h *protocol.HelloMessage) {
		h.Seen, h.Running, h.Unrecorded = 2, []string{running.String()}, []string{answered.String(), old.String()}
	})
	if m := next[protocol.RecordedMessage](s, conn); len(m.IDs) != 1 || m.IDs[0] != old.String() {
		t.Fatalf("recorded %v", m.IDs)
	}
	if m := next[protocol.CommandMessage](s, conn); m.ID != lost.String() {
		t.Fatalf("%s is sent again", m.ID)
	}
	for _, id := range []uuid.UUID{old, answered, running, lost} { // perhaps before it has read recorded
		must(t, conn.Answer(t.Context(), id.String(), agenttest.Done()))
		if m := next[protocol.RecordedMessage](s, conn); m.IDs[0] != id.String() {
			t.Fatalf("recorded %v", m.IDs)
		}
	}
	for _, id := range []uuid.UUID{running, answered, lost} {
		s.await(id)
	}
}

// What was never sent is cancelled at once, and of what was sent the agent is told. What is too late is not sent.
func TestCancelAndLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	never := s.put("a", nil)
	late := s.put("a", func(m *protocol.CommandMessage) { m.DeadlineMS = 1 })
	must(t, s.record.Cancel(t.Context(), s.env, never))
	if a := s.await(never); a.Status != protocol.Cancelled || len(a.Lines) != 1 {
		t.Errorf("answered %+v", a)
	}
	await(t, func() (bool, bool) {
		must(t, s.record.EndLate(t.Context(), s.env))
		all, err := s.record.Answers(t.Context(), s.env, []uuid.UUID{late})
		must(t, err)
		return true, all[late].Status == protocol.Late
	})
	conn := s.start(c, nil)
	sent := s.put("a", nil)
	if m := next[protocol.CommandMessage](s, conn); m.ID != sent.String() {
		t.Fatalf("%s was sent", m.ID)
	}
	must(t, s.record.Cancel(t.Context(), s.env, sent))
	if m := next[protocol.CancelMessage](s, conn); m.ID != sent.String() {
		t.Fatalf("cancelled %s", m.ID)
	}
	must(t, conn.Answer(t.Context(), sent.String(), protocol.AnswerBody{Status: protocol.Cancelled}))
	next[protocol.RecordedMessage](s, conn)
}

// An agent sees its own commands only, and answers only those: for others, also of its own environment, it is
// disconnected, and people see why.
func TestAnAgentAnswersForAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	good, bad := s.join("good"), s.join("bad")
	goodConn, badConn := s.start(good, nil), s.start(bad, nil)
	id := s.put("good", nil)
	next[protocol.CommandMessage](s, goodConn)
	must(t, badConn.Answer(t.Context(), id.String(), agenttest.Done()))
	if why := s.closed(badConn, protocol.BadMessage); !strings.Contains(why, "another agent") {
		t.Errorf("bye says %q", why)
	}
	await(t, func() (bool, bool) { return true, strings.Contains(s.agent("bad").Problem, "another agent") })
	// Nor does it help to claim the command in hello.
	conn, err := bad.Connect(t.Context())
	must(t, err)
	hello := agenttest.Hello()
	hello.Unrecorded = []string{id.String()}
	must(t, conn.Send(t.Context(), hello))
	s.closed(conn, protocol.BadMessage)
	// Nor to guess.
	conn = s.start(bad, nil)
	must(t, conn.Answer(t.Context(), uuid.NewString(), agenttest.Done()))
	if why := s.closed(conn, protocol.BadMessage); !strings.Contains(why, "not sent to it") {
		t.Errorf("bye says %q", why)
	}
	must(t, goodConn.Answer(t.Context(), id.String(), agenttest.Done()))
	if a := s.await(id); a.Status != "deployed" {
		t.Errorf("the answer is %s", a.Status)
	}
}

// A join token works once, in time, and until it is revoked; the agent is told which it is, and so are people.
func TestJoinTokensEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx := t.Context()
	refusal := func(token, reason string) {
		t.Helper()
		_, err := agenttest.Join(ctx, token)
		var refused *agenttest.Refused
		if !errors.As(err, &refused) || refused.Code != http.StatusForbidden || refused.Reason != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	_, token, err := s.authority.CreateToken(ctx, s.env, "a", 0)
	must(t, err)
	credentials, err := agenttest.Join(ctx, token)
	must(t, err)
	refusal(token, "used")
	made, token, err := s.authority.CreateToken(ctx, s.env, "b", 0)
	must(t, err)
	must(t, s.authority.RevokeToken(ctx, s.env, made.ID))
	refusal(token, "revoked")
	parsed, err := protocol.ParseToken(token)
	must(t, err)
	parsed.Secret = strings.Repeat("A", 43)
	refusal(parsed.String(), "unknown")
	parsed.ID = uuid.NewString()
	refusal(parsed.String(), "unknown")
	_, token, err = s.authority.CreateToken(ctx, s.env, "c", 0)
	must(t, err)
	s.ahead.Store(int64(2 * time.Hour))
	refusal(token, "expired")
	s.ahead.Store(0)

	page, err := s.store.Audit(ctx, uuid.Nil, s.env, intent.ListQuery{Limit: 100})
	must(t, err)
	var problems []string
	for _, e := range page.Items {
		if e.Verb == "agent.join" {
			problems = append(problems, string(e.Outcome)+" "+e.Problem)
		}
	}
	all := strings.Join(problems, "\n")
	for _, want := range []string{"done", "was used", "was revoked", "expired"} {
		if !strings.Contains(all, want) {
			t.Errorf("the audit trail has no %q:\n%s", want, all)
		}
	}
	if len(problems) != 4 {
		t.Errorf("the audit trail has\n%s", all)
	}
	s.start(credentials, nil)
}

// A revoked agent is disconnected at once and stays outside, and its commands end; with a new token it comes back, and
// its first certificate does not.
func TestRevoke(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	first := s.join("a")
	conn := s.start(first, nil)
	id := s.put("a", nil)
	next[protocol.CommandMessage](s, conn)
	must(t, s.authority.Revoke(t.Context(), s.env, "a"))
	s.closed(conn, protocol.IsRevoked)
	if a := s.await(id); a.Status != protocol.Lost {
		t.Errorf("the command ended as %s", a.Status)
	}
	outside := func(reason string) {
		t.Helper()
		_, _, err := first.Start(t.Context(), agenttest.Hello())
		var refused *agenttest.Refused
		if !errors.As(err, &refused) || refused.Code != http.StatusForbidden || refused.Reason != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	outside("revoked")
	second := s.join("a")
	outside("revoked")
	conn = s.start(second, nil)
	third := s.join("a") // joining again ends the connection of before
	s.closed(conn, protocol.Replaced)
	conn = s.start(third, nil)
	must(t, s.authority.Remove(t.Context(), s.env, "a"))
	s.closed(conn, protocol.IsRemoved)
	outside("removed")
	if a := s.agent("a"); a.Name != "" {
		t.Errorf("a removed agent is shown: %+v", a)
	}
}

// Of two connections of one name the newer one counts, also when they are at two servers without a bus between them;
// commands go to the newer one.
func TestTwoAgentsWithOneName(t *testing.T) {
	t.Parallel()
	quick := func(c *gateway.Config) { c.Sweep = 100 * time.Millisecond }
	s := newSite(t, quick)
	c := s.join("a")
	one := s.start(c, nil)
	two := s.start(c, nil)
	s.closed(one, protocol.Replaced)
	await(t, func() (bool, bool) { return true, strings.Contains(s.agent("a").Problem, "took over") })
	other := s.newReplica(&bus.Bus{}, quick)
	here := c.Answer.URL
	c.Answer.URL = other.address
	three := s.start(c, nil)
	s.closed(two, protocol.Replaced)
	id := s.put("a", nil) // the bus of the other server does not say so
	next[protocol.CommandMessage](s, three)
	must(t, three.Answer(t.Context(), id.String(), agenttest.Done()))
	next[protocol.RecordedMessage](s, three)
	if s.await(id).Status != "deployed" {
		t.Error("the answer is another one")
	}
	c.Answer.URL = here
	s.start(c, nil)
	s.closed(three, protocol.Replaced)
}

// A server that stops says goodbye, and its agents count as disconnected.
func TestDraining(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	conn := s.start(c, nil)
	await(t, func() (bool, bool) { return true, s.agent("a").Connected })
	stopped := make(chan struct{})
	go func() {
		s.gateway.Stop()
		close(stopped)
	}()
	s.closed(conn, protocol.Draining)
	<-stopped
	if s.agent("a").Connected {
		t.Error("the agent counts as connected")
	}
}

// Agents that break the protocol are told how, and disconnected.
func TestBrokenAgents(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	for name, test := range map[string]struct {
		hello   any
		then    []any
		message string
	}{
		"no hello":    {protocol.PongMessage{Type: protocol.Pong}, nil, "hello"},
		"no JSON":     {[]byte("{"), nil, "JSON"},
		"too old":     {[]byte(`{"type":"hello","protocol":0,"program":"old 0.1"}`), nil, "bring the agent up to date"},
		"hello twice": {agenttest.Hello(), []any{agenttest.Hello()}, "once"},
		"huge message": {agenttest.Hello(), []any{[]byte(`{"type":"pong","id":1,"x":"` +
			strings.Repeat("x", protocol.MaxMessage) + `"}`)}, "bytes"},
		"a bad request": {agenttest.Hello(), []any{protocol.RenewMessage{Type: protocol.Renew, Request: "x"}}, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := c.Connect(t.Context())
			must(t, err)
			defer conn.Close()
			must(t, conn.Send(t.Context(), test.hello))
			if test.then != nil {
				next[protocol.WelcomeMessage](s, conn)
			}
			for _, m := range test.then {
				_ = conn.Send(t.Context(), m) // the server may close before it has read everything
			}
			if why := s.closed(conn, protocol.BadMessage); !strings.Contains(why, test.message) {
				t.Errorf("bye says %q", why)
			}
		})
	}
	// Without a certificate, and with one of another server, there is no connection.
	_, _, err := (&agenttest.Credentials{Roots: c.Roots, Answer: c.Answer}).Start(t.Context(), agenttest.Hello())
	var refused *agenttest.Refused
	if !errors.As(err, &refused) || refused.Reason != "certificate" {
		t.Errorf("without a certificate: %v", err)
	}
	stranger := newSite(t, nil).join("a")
	stranger.Roots, stranger.Answer.URL = c.Roots, c.Answer.URL
	if _, _, err = stranger.Start(t.Context(), agenttest.Hello()); !errors.As(err, &refused) ||
		refused.Reason != "certificate" {
		t.Errorf("with the certificate of another server: %v", err)
	}
}

// An answer that is too large is not kept; the command ends as failed, and the agent goes on.
func TestAHugeAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *gateway.Config) { c.MaxAnswer = 2 << 20 })
	conn := s.start(s.join("a"), nil)
	id := s.put("a", nil)
	next[protocol.CommandMessage](s, conn)
	part := []byte(strings.Repeat("x", protocol.MaxPart))
	for i := range 5 {
		must(t, conn.Send(t.Context(), protocol.AnswerMessage{
			Type: protocol.Answer, ID: id.String(), Part: i, Last: i == 4, Data: part,
		}))
	}
	next[protocol.RecordedMessage](s, conn)
	if a := s.await(id); a.Status != "failed" || !strings.Contains(string(a.Lines[0]), "larger than") {
		t.Errorf("the answer is %s %s", a.Status, a.Lines)
	}
	id = s.put("a", nil)
	next[protocol.CommandMessage](s, conn)
	must(t, conn.Answer(t.Context(), id.String(), agenttest.Done()))
	next[protocol.RecordedMessage](s, conn)
}

type desk struct{}

func (desk) Call(
	_ context.Context, name string, positional []json.RawMessage, named map[string]json.RawMessage,
) (int, json.RawMessage, bool) {
	if name != "get_param" {
		return 0, nil, false
	}
	body, _ := json.Marshal(map[string]any{"positional": positional, "named": named})
	return 200, body, true
}

// Handlers of running commands call the server, up to many at a time; others do not.
func TestCalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *gateway.Config) {
		c.Desk = func(intent.EnvironmentID) (gateway.Desk, error) { return desk{}, nil }
	})
	conn := s.start(s.join("a"), nil)
	call := func(id, method string, n int64) {
		must(t, conn.Send(t.Context(), protocol.CallMessage{
			Type: protocol.Call, ID: id, Call: n, Method: method, Args: map[string]json.RawMessage{"id": []byte(`"x"`)},
			Positional: []json.RawMessage{[]byte("1")},
		}))
	}
	call(uuid.NewString(), "get_param", 1)
	if m := next[protocol.ReturnedMessage](s, conn); m.Code != http.StatusForbidden || m.Call != 1 {
		t.Errorf("a call for no command returned %+v", m)
	}
	id := s.put("a", nil)
	next[protocol.CommandMessage](s, conn)
	call(id.String(), "delete_everything", 2)
	if m := next[protocol.ReturnedMessage](s, conn); m.Code != 0 {
		t.Errorf("a forbidden call returned %+v", m)
	}
	seen := map[int64]bool{}
	for n := range int64(50) {
		call(id.String(), "get_param", 100+n)
	}
	for range 50 {
		m := next[protocol.ReturnedMessage](s, conn)
		if m.Code != 200 || string(m.Body) != `{"named":{"id":"x"},"positional":[1]}` {
			t.Fatalf("the call returned %+v %s", m, m.Body)
		}
		seen[m.Call] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d calls were answered", len(seen))
	}
}

// An agent renews its certificate when the server asks; the new one works, and the old one too.
func TestRenew(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	conn := s.start(c, nil)
	fresh, request, err := c.Renewal()
	must(t, err)
	must(t, conn.Send(t.Context(), protocol.RenewMessage{Type: protocol.Renew, Request: request}))
	must(t, fresh(next[protocol.CertificateMessage](s, conn).Certificate))
	conn.Close()
	s.start(c, nil)
}

// The listener says whether it can serve, and what is missing.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.join("a")
	code, body := c.Get(t.Context(), "/healthz")
	if code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
	code, body = c.Get(t.Context(), "/provisioner/v1/hello")
	if code != 404 || !strings.Contains(body, "cluster service") {
		t.Errorf("provisioners without a cluster service: %d %q", code, body)
	}
	code, body = c.Get(t.Context(), "/readyz")
	if code != http.StatusOK || !strings.Contains(body, `"ready":true`) || !strings.Contains(body, "role process") {
		t.Errorf("/readyz: %d %q", code, body)
	}
}
