package eventbus_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/internal/bus/natsbus/natstest"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/server/eventbus"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

func TestMain(m *testing.M) {
	natstest.Main()
	if url := os.Getenv(childURL); url != "" {
		runChild(url, os.Getenv(childKey))
	}
	os.Exit(m.Run())
}

var installation = uuid.MustParse("7a9b8e1e-51a5-4c0b-8f52-b1d8d50de0a4")

// replica is a process of an installation: a store of its own, a bus, and the service that connects it.
type replica struct {
	*eventbus.Service
	bus   *bus.Bus
	store *store.Store
}

// open makes a replica, with changes to its configuration. It starts nothing.
func open(t testing.TB, url string, key *secret.Key, change func(*eventbus.Config)) *replica {
	t.Helper()
	s := openStore(t, url)
	r := &replica{bus: &bus.Bus{}, store: s}
	cfg := eventbus.Config{
		Bus: r.bus, Record: s, Installation: installation, Key: key, Name: "test",
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.Service, err = eventbus.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func start(t testing.TB, url string, key *secret.Key, change func(*eventbus.Config)) *replica {
	t.Helper()
	r := open(t, url, key, change)
	if err := r.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return r
}

func openStore(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newKey(t testing.TB) *secret.Key {
	t.Helper()
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// serving waits until all replicas are connected and one of them runs the server, and returns that one.
func serving(t testing.TB, all ...*replica) (who int) {
	t.Helper()
	natstest.Await(t, "all replicas on one bus", func() bool {
		who = -1
		addresses := map[string]bool{}
		for i, r := range all {
			st := r.Status()
			if !st.Connected || st.Error != "" || st.External {
				return false
			}
			addresses[st.Server] = true
			if st.Serving {
				who = i
			}
		}
		return who >= 0 && len(addresses) == 1
	})
	return who
}

// exchange sends an event from each replica to all others. A replica that connects anew meanwhile is told to read
// everything again instead; then the event is sent once more.
func exchange(t *testing.T, all ...*replica) {
	t.Helper()
	for _, from := range all {
		for !reachesAll(t, from, all) {
		}
	}
}

// reachesAll sends an event, and reports whether everybody got it: false if somebody was told to read again.
func reachesAll(t *testing.T, from *replica, all []*replica) bool {
	t.Helper()
	env := uuid.New()
	var subs []*bus.Subscription
	for _, r := range all {
		s := r.bus.Subscribe(func(e bus.Event) bool { return e.Environment == env || e.Topic == bus.Lagged })
		defer s.Close()
		subs = append(subs, s)
	}
	from.bus.Publish(bus.Event{Environment: env, Topic: bus.Request})
	for i, s := range subs {
		select {
		case e := <-s.Events():
			if e.Topic == bus.Lagged {
				return false
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no event came to replica %d", i)
		}
	}
	return true
}

// Three replicas need no configuration to share a bus. The one that runs the server loses its lock, then another one
// is stopped: each time another server takes over, every subscriber is told to read again, and events get through.
func TestAnotherReplicaTakesOver(t *testing.T) {
	t.Parallel()
	url, key := storetest.URL(t), newKey(t)
	all := []*replica{start(t, url, key, nil), start(t, url, key, nil), start(t, url, key, nil)}
	first := serving(t, all...)
	exchange(t, all...)
	address := all[0].Status().Server
	subs := make([]*bus.Subscription, len(all))
	for i, r := range all {
		subs[i] = r.bus.Subscribe(nil)
	}
	drain := func() {
		for _, s := range subs {
			for len(s.Events()) > 0 {
				<-s.Events()
			}
		}
	}
	drain()
	killLocks(t, url, all[first])
	natstest.Await(t, "another server", func() bool { a := all[0].Status(); return a.Connected && a.Server != address })
	second := serving(t, all...)
	for _, s := range subs {
		bustest.AwaitLagged(t, s)
	}
	exchange(t, all...)

	drain()
	all[second].Stop()
	if st := all[second].Status(); st.Connected || st.Serving {
		t.Errorf("the stopped one says %+v", st)
	}
	rest := append(all[:second:second], all[second+1:]...)
	serving(t, rest...)
	for i, s := range subs {
		if i != second {
			bustest.AwaitLagged(t, s)
		}
	}
	exchange(t, rest...)
	local := all[second].bus.Subscribe(nil)
	all[second].bus.Publish(bus.Event{Topic: bus.People})
	bustest.Next(t, local)
}

// killLocks ends the connection with the locks of a replica.
func killLocks(t *testing.T, url string, r *replica) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	err = conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name = 'ordain locks ' || $1::text`, r.store.Replica()).Scan(&n)
	if err != nil || n != 1 {
		t.Fatalf("%d connections were ended: %v", n, err)
	}
}

// A handler, or anybody else on the machine, knows the port and the certificate of the server, but neither has the
// credentials nor may use those of an earlier server. Those who have them reach only their installation.
func TestStrangersOnTheServer(t *testing.T) {
	t.Parallel()
	url, key := storetest.URL(t), newKey(t)
	r := start(t, url, key, nil)
	serving(t, r)
	record, err := r.store.BusServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(record.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	connect := func(options ...nats.Option) (*nats.Conn, error) {
		nc, err := nats.Connect("tls://"+record.Address, append(options, nats.NoReconnect(), nats.TLSHandshakeFirst(),
			nats.Secure(&tls.Config{RootCAs: pool, ServerName: "ordain-bus"}))...)
		if nc != nil {
			t.Cleanup(nc.Close)
		}
		return nc, err
	}
	for name, options := range map[string][]nats.Option{
		"nothing": nil, "a password": {nats.UserInfo("ordain", "ordain")}, "another nkey": {seed(t, newSeed(t))},
	} {
		if _, err := connect(options...); err == nil || !strings.Contains(err.Error(), "uthorization") {
			t.Errorf("with %s: %v", name, err)
		}
	}
	opened, err := key.Open(record.Credentials, eventbus.SealContext(installation, record.Certificate))
	if err != nil {
		t.Fatal(err)
	}
	denied := make(chan error, 10)
	nc, err := connect(seed(t, opened), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		denied <- err
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{">", "$SYS.>", "ordain." + uuid.NewString() + ".event.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := <-denied; !strings.Contains(err.Error(), "ermissions") {
			t.Errorf("subscribing to %s: %v", subject, err)
		}
	}
	r.Stop()
	again := start(t, url, key, nil)
	serving(t, again)
	if record, err = again.store.BusServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(record.Certificate); err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	if _, err := connect(seed(t, opened)); err == nil || !strings.Contains(err.Error(), "uthorization") {
		t.Errorf("with the credentials of the server before: %v", err)
	}
}

func newSeed(t *testing.T) []byte {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seed(t *testing.T, s []byte) nats.Option {
	t.Helper()
	pair, err := nkeys.FromSeed(s)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return nats.Nkey(public, pair.Sign)
}

// A replica with another secret key, and one on another machine than a server that listens on loopback, say so.
func TestTheStatusSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	url, key := storetest.URL(t), newKey(t)
	first := start(t, url, key, nil)
	serving(t, first)
	status := func(r *replica, text string) {
		t.Helper()
		natstest.Await(
			t,
			text,
			func() bool { st := r.Status(); return !st.Connected && strings.Contains(st.Error, text) },
		)
	}
	status(start(t, url, newKey(t), nil), "sealed with another key")
	exchange(t, first)

	held, err := first.store.Hold(t.Context(), "another") // any lock: its number is not that of the bus
	if err != nil || held == nil {
		t.Fatal(held, err)
	}
	record, err := first.store.BusServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // numbers of locks that were never taken begin with 1, like that of the bus
		held.Release()
		if held, err = first.store.Hold(t.Context(), "another"); err != nil || held == nil {
			t.Fatal(held, err)
		}
	}
	record.Host = "far away"
	if err := first.store.SetBusServer(t.Context(), held, record); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a process without the lock recorded a server: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "UPDATE bus SET host = 'far away'"); err != nil {
		t.Fatal(err)
	}
	status(start(t, url, key, nil), "runs on far away")
}

// Another program has the port. The replica says so and lets another one run the server.
func TestAPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	url, key := storetest.URL(t), newKey(t)
	blocked := start(t, url, key, func(c *eventbus.Config) { c.Listen = l.Addr().String() })
	natstest.Await(t, "the error", func() bool { return strings.Contains(blocked.Status().Error, "[bus] listen") })
	other := start(t, url, key, nil)
	if who := serving(t, blocked, other); who != 1 {
		t.Error("the server runs where the port was in use")
	}
	exchange(t, blocked, other)
}

// With a cluster of the operator's own, nobody runs a server, and the installations that share it do not meet.
func TestAnExternalCluster(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, `authorization { user: ordain, password: right }`)
	cluster := func(c *eventbus.Config) {
		c.Cluster = eventbus.Cluster{Servers: []string{s.URL()}, User: "ordain", Password: "right"}
	}
	key := newKey(t)
	url := storetest.URL(t)
	a, b := start(t, url, key, cluster), start(t, url, key, cluster)
	stranger := start(t, url, key, func(c *eventbus.Config) {
		cluster(c)
		c.Installation = uuid.New()
	})
	natstest.Await(t, "the connections", func() bool {
		return a.Status().Connected && b.Status().Connected && stranger.Status().Connected
	})
	strange := stranger.bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request })
	exchange(t, a, b)
	stranger.bus.Publish(bus.Event{Topic: bus.Request, Environment: intent.EnvironmentID{1}})
	if e := bustest.Next(t, strange); e.Environment != (intent.EnvironmentID{1}) {
		t.Errorf("%v of another installation was delivered", e)
	}
	if st := a.Status(); !st.External || st.Serving || st.Server != s.Addr {
		t.Errorf("the status is %+v", st)
	}
	wrong := start(t, url, key, func(c *eventbus.Config) {
		c.Cluster = eventbus.Cluster{Servers: []string{s.URL()}, User: "ordain", Password: "wrong"}
	})
	natstest.Await(t, "the error", func() bool { return strings.Contains(wrong.Status().Error, "password-file") })
}

// The cluster asks for a certificate of ours.
func TestAClusterThatKnowsUsByACertificate(t *testing.T) {
	t.Parallel()
	cert, certKey, _ := natstest.Certificate(t)
	s := natstest.Start(t, `tls { cert_file: "`+cert+`", key_file: "`+certKey+`", ca_file: "`+cert+`", verify: true }`)
	url, key := storetest.URL(t), newKey(t)
	without := start(t, url, key, func(c *eventbus.Config) {
		c.Cluster = eventbus.Cluster{Servers: []string{s.URL()}, CA: cert}
	})
	with := start(t, url, key, func(c *eventbus.Config) {
		c.Cluster = eventbus.Cluster{Servers: []string{s.URL()}, CA: cert, Cert: cert, Key: certKey}
	})
	natstest.Await(t, "the connection", func() bool { return with.Status().Connected })
	natstest.Await(t, "the error", func() bool {
		return strings.Contains(without.Status().Error, "[bus] tls-ca, tls-cert")
	})
}

// A configuration that cannot work is refused before anything starts.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	far := []string{"tls://nats.example.org:4222"}
	for option, cfg := range map[string]eventbus.Config{
		"no port":              {Listen: "10.0.0.5"},
		"any address":          {Listen: "0.0.0.0:4222"},
		"a port":               {Listen: ":4222"},
		"any port":             {Listen: "10.0.0.5:0"},
		"bus.tls-ca":           {Cluster: eventbus.Cluster{Servers: far, CA: filepath.Join(dir, "none.pem")}},
		"holds no certificate": {Cluster: eventbus.Cluster{Servers: far, CA: empty}},
		"bus.tls-cert":         {Cluster: eventbus.Cluster{Servers: far, Cert: empty, Key: empty}},
		"bus.credentials-file": {Cluster: eventbus.Cluster{Servers: far, CredentialsFile: filepath.Join(dir, "none")}},
	} {
		_, err := eventbus.New(cfg)
		if !fault.Is(err, fault.Invalid) || cfg.Listen == "" && !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	url, key := storetest.URL(t), newKey(t)
	servicetest.Test(t, func(t *testing.T) service.Service { return open(t, url, key, nil) })
}
