package natsbus_test

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/internal/bus/natsbus"
	"ordain.dev/ordain/internal/bus/natsbus/natstest"
)

func TestMain(m *testing.M) {
	natstest.Main()
	os.Exit(m.Run())
}

var installation = uuid.MustParse("0f5c1a52-6a3c-4b61-9f0f-3d3a2f5c7a10")

// join returns a bus that is being connected to a server.
func join(t testing.TB, target natsbus.Target) (*bus.Bus, *natsbus.Conn) {
	t.Helper()
	b := &bus.Bus{}
	c := natsbus.New(natsbus.Config{
		Bus: b, Installation: installation, Name: t.Name(), Logger: logger(t),
		Find: func(context.Context) (natsbus.Target, error) { return target, nil },
	})
	t.Cleanup(c.Close)
	return b, c
}

// joined returns two buses that are connected to a server.
func joined(t testing.TB, s *natstest.Server) (here, there *bus.Bus) {
	t.Helper()
	here, a := join(t, natsbus.Target{Servers: []string{s.URL()}})
	there, b := join(t, natsbus.Target{Servers: []string{s.URL()}})
	natstest.Await(t, "the connections", func() bool { return a.Status().Connected && b.Status().Connected })
	return here, there
}

// Two buses over a real server do all that is promised.
func TestBusOverNATS(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	bustest.Test(t, func(t *testing.T) (here, there *bus.Bus) { return joined(t, s) })
}

// The server is killed, its folder deleted, and another one installed on its port. In the meantime each process goes
// on alone; afterwards each subscriber is told that it missed events, and events and questions work as before.
func TestTheServerIsDeletedAndInstalledAgain(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	here, a := join(t, natsbus.Target{Servers: []string{s.URL()}})
	there, b := join(t, natsbus.Target{Servers: []string{s.URL()}})
	connected := func() bool { return a.Status().Connected && b.Status().Connected }
	natstest.Await(t, "the connections", connected)
	near, far := here.Subscribe(nil), there.Subscribe(nil)
	there.Answer("who", func(context.Context, uuid.UUID, []byte) ([]byte, bool) { return []byte("me"), true })
	env := uuid.New()
	for round := range 2 {
		s.Delete(t)
		natstest.Await(t, "the end of the connections", func() bool {
			return !a.Status().Connected && !b.Status().Connected && a.Status().Error != ""
		})
		here.Publish(bus.Event{Environment: env, Topic: bus.People}) // the others lose it
		if e := bustest.Next(t, near); e.Topic != bus.People {
			t.Fatalf("without a server, the own process got %v", e)
		}
		if _, err := here.Ask(t.Context(), env, "who", nil); err == nil {
			t.Fatal("an answer came without a server")
		}
		drain(near, far)
		s.Install(t)
		natstest.Await(t, "the new connections", connected)
		bustest.AwaitLagged(t, near)
		bustest.AwaitLagged(t, far)
		here.Publish(bus.Event{Environment: env, Topic: bus.Request})
		if e := bustest.Next(t, far); e.Environment != env || e.Topic != bus.Request {
			t.Fatalf("round %d: got %v", round, e)
		}
		there.Publish(bus.Event{Environment: env, Topic: bus.Pull})
		for e := (bus.Event{}); e.Topic != bus.Pull; {
			e = bustest.Next(t, near)
		}
		answer, err := here.Ask(t.Context(), env, "who", nil)
		if err != nil || string(answer) != "me" {
			t.Fatalf("round %d: the answer is %q, %v", round, answer, err)
		}
	}
	if st := a.Status(); st.Error != "" || st.Server != s.Addr || st.Since.IsZero() {
		t.Errorf("the status is %+v", st)
	}
}

// Only the publisher loses its connection. The others, whose connections hold, must hear that they missed something.
func TestOthersLagWhenThePublisherWasCutOff(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	there, b := join(t, natsbus.Target{Servers: []string{s.URL()}})
	natstest.Await(t, "the connection", func() bool { return b.Status().Connected })
	far := there.Subscribe(nil)
	reachable := make(chan struct{})
	here := &bus.Bus{}
	a := natsbus.New(natsbus.Config{
		Bus: here, Installation: installation, Name: "cut off", Logger: logger(t),
		Find: func(ctx context.Context) (natsbus.Target, error) {
			select {
			case <-reachable:
			case <-ctx.Done():
			}
			return natsbus.Target{Servers: []string{s.URL()}}, ctx.Err()
		},
	})
	t.Cleanup(a.Close)
	drain(far)
	here.Publish(bus.Event{Topic: bus.Request})
	close(reachable)
	bustest.AwaitLagged(t, far)
}

// The server's process stops reading. Publishing waits for nothing and takes no more memory, and when the server
// continues, or its connections are replaced, the others learn that they missed events.
func TestAStalledServerStallsNobody(t *testing.T) { // not parallel: it measures memory
	s := natstest.Start(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	here, there := joined(t, s)
	far := there.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request })
	env := uuid.New()
	event := bus.Event{Environment: env, Topic: bus.Resource, ID: "std::File[a,path=" + strings.Repeat("x", 900) + "]"}
	s.Pause(t)
	began := time.Now()
	const n = 200_000 // 200 MB of messages
	for range n {
		here.Publish(event)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := took / n; each > 20*time.Microsecond {
		t.Errorf("publishing an event took %s", each)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	drain(far)
	s.Resume(t)
	bustest.AwaitLagged(t, far)
	for e := (bus.Event{}); e.Topic != bus.Request; { // until the flood is over
		here.Publish(bus.Event{Environment: env, Topic: bus.Request})
		select {
		case e = <-far.Events():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Somebody else on the server floods the bus. The subscriber lags, and memory stays bounded.
func TestAFloodOfOthersEndsInLagged(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	here, _ := joined(t, s)
	slow := here.Subscribe(nil)
	other := raw(t, s)
	subject := "ordain." + installation.String() + ".event." + uuid.NewString() + ".resource"
	drain(slow)
	for range 50_000 {
		if err := other.Publish(subject, []byte("std::File[a,path=/x]")); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitLagged(t, slow)
	if n := len(slow.Events()); n > 256 {
		t.Errorf("%d events wait", n)
	}
}

// So much arrives that the connection itself drops messages. Every subscriber lags, since nobody knows whose they were.
func TestDroppedMessagesMakeEverySubscriberLag(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	arrived := make(signal, 1)
	here := &bus.Bus{}
	c := natsbus.New(natsbus.Config{
		Bus: here, Installation: installation, Name: t.Name(), Logger: slog.New(slog.NewTextHandler(arrived, nil)),
		Find: func(context.Context) (natsbus.Target, error) { return natsbus.Target{Servers: []string{s.URL()}}, nil },
	})
	t.Cleanup(c.Close)
	natstest.Await(t, "the connection", func() bool { return c.Status().Connected })
	<-arrived // the log says that it is connected
	uninterested := here.Subscribe(func(bus.Event) bool { return false })
	stuck := make(chan struct{})
	blocking := here.Subscribe(func(bus.Event) bool { <-stuck; return false })
	defer blocking.Close()
	drain(uninterested)
	other := raw(t, s)
	subject := "ordain." + installation.String() + ".event." + uuid.NewString() + ".resource"
	for range 20_000 {
		if err := other.Publish(subject, []byte("std::File[a,path=/x]")); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Publish("ordain."+installation.String()+".ask.production.who", nil); err != nil {
		t.Fatal(err)
	}
	<-arrived // the log says that this last message was refused
	close(stuck)
	bustest.AwaitLagged(t, uninterested)
}

// signal receives a value when something is written.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// What nobody of ours sends is ignored, and changes nothing for what follows it.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, "max_payload: 8388608")
	here, c := join(t, natsbus.Target{Servers: []string{s.URL()}})
	natstest.Await(t, "the connection", func() bool { return c.Status().Connected })
	asked := make(chan string, 100)
	here.Answer("who", func(_ context.Context, _ uuid.UUID, body []byte) ([]byte, bool) {
		asked <- string(body)
		return []byte("me"), true
	})
	all := here.Subscribe(nil)
	drain(all)
	other := raw(t, s)
	env := uuid.NewString()
	event, ask := "ordain."+installation.String()+".event.", "ordain."+installation.String()+".ask."
	for _, m := range []struct{ subject, body string }{
		{event + env + ".resource", strings.Repeat("x", bus.MaxID+1)},
		{event + env + ".resource", strings.Repeat("x", 7<<20)},
		{event + env + ".resource", "std::File[a,path=\x1b[2J]"},
		{event + env + ".resource", "\xff\xfe"},
		{event + env + ".compile", "../../etc/passwd"},
		{event + env + ".version", "1; DROP TABLE version"},
		{event + env + ".version", strings.Repeat("9", 21)},
		{event + env + ".people", "root"},
		{event + env + ".Resource", ""},
		{event + env + ".everything", ""},
		{event + strings.ToUpper(env) + "x.resource", ""},
		{event + "{" + env + "}.resource", ""},
		{event + "production.resource", ""},
		{"ordain." + uuid.NewString() + ".event." + env + ".resource", ""},
	} {
		if err := other.Publish(m.subject, []byte(m.body)); err != nil {
			t.Fatal(err)
		}
	}
	reply := "ordain." + installation.String() + ".reply.x"
	for _, m := range []struct{ subject, reply, body string }{
		{ask + env + ".who", "ordain." + installation.String() + ".event." + env + ".people", "answer elsewhere"},
		{ask + env + ".who", "", "answer nowhere"},
		{ask + env + ".who", reply, strings.Repeat("x", bus.MaxQuestion+1)},
		{ask + "production.who", reply, "no environment"},
		{ask + env + ".WHO", reply, "no question"},
		{ask + env + ".who", reply, "a good one"},
	} {
		if err := other.PublishMsg(&nats.Msg{Subject: m.subject, Reply: m.reply, Data: []byte(m.body)}); err != nil {
			t.Fatal(err)
		}
	}
	last := bus.Event{Environment: uuid.MustParse(env), Topic: bus.Command, ID: "last"}
	if err := other.Publish(event+env+"."+string(last.Topic), []byte(last.ID)); err != nil {
		t.Fatal(err)
	}
	if e := bustest.Next(t, all); e != last {
		t.Errorf("%v was delivered", e)
	}
	<-asked
	c.Close() // no more answers
	if len(asked) > 0 {
		t.Errorf("the question %.20q was answered too", <-asked)
	}
}

// What was published before a process ended reaches the others.
func TestCloseSendsWhatWaits(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	there, b := join(t, natsbus.Target{Servers: []string{s.URL()}})
	here, a := join(t, natsbus.Target{Servers: []string{s.URL()}})
	natstest.Await(t, "the connections", func() bool { return a.Status().Connected && b.Status().Connected })
	far := there.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request })
	here.Publish(bus.Event{Topic: bus.Request})
	a.Close()
	a.Close()
	bustest.Next(t, far)
	near := here.Subscribe(nil)
	here.Publish(bus.Event{Topic: bus.People})
	bustest.Next(t, near)
}

// raw returns a client of the server that is none of ours.
func raw(t testing.TB, s *natstest.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// drain forgets what has arrived so far.
func drain(subs ...*bus.Subscription) {
	for _, s := range subs {
		for len(s.Events()) > 0 {
			<-s.Events()
		}
	}
}
