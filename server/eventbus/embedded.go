package eventbus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const (
	serverName = "ordain-bus" // in the certificate: clients know the server by its certificate, not by its address
	readyTime  = 10 * time.Second
	// Bounds of the server.
	maxConnections = 1024
	maxPending     = 8 << 20 // bytes that wait for a client; one that lets more wait is disconnected
	writeDeadline  = 5 * time.Second
	handshakeTime  = 10 // seconds for TLS and for the log-in, on a busy machine too
)

// checkListen checks the address of a server of our own.
func checkListen(listen string) error {
	if listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(listen)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numberErr != nil || host == "" {
		return fault.New("eventbus.New", fault.Invalid,
			fmt.Sprintf("the option bus.listen is wrong: %q is not a host and a port", listen)).
			Hint("such as 10.0.0.5:4222")
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() || number == 0 && !isLoopback(host) {
		return fault.New("eventbus.New", fault.Invalid,
			"the option bus.listen is wrong: the other replicas cannot connect to "+listen).
			Hint("name the address of this machine and a port, such as 10.0.0.5:4222")
	}
	return nil
}

// embedded is a NATS server inside this process, without storage and monitoring. It has a certificate and credentials
// that nobody had before, so those of an earlier server open nothing.
type embedded struct {
	server      *nats.Server
	address     string
	certificate []byte
	credentials []byte // sealed
}

// start starts a server for the processes of the installation.
func (s *Service) start() (*embedded, error) {
	const op = "eventbus.start"
	internal := func(err error) error {
		return fault.Wrap(op, fault.Internal, err).Say("the server of the event bus cannot start")
	}
	host, port := "127.0.0.1", nats.RANDOM_PORT
	if s.cfg.Listen != "" {
		var text string
		host, text, _ = net.SplitHostPort(s.cfg.Listen) // checkListen checked it
		if n, _ := strconv.Atoi(text); n != 0 {
			port = n
		}
	}
	pair, err := newCertificate()
	if err != nil {
		return nil, internal(err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, internal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		return nil, internal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, internal(err)
	}
	e := &embedded{certificate: pair.Certificate[0]}
	if e.credentials, err = s.cfg.Key.Seal(seed, SealContext(s.cfg.Installation, e.certificate)); err != nil {
		return nil, internal(err)
	}
	subjects := &nats.SubjectPermission{Allow: []string{"ordain." + s.cfg.Installation.String() + ".>"}}
	log := &serverLog{log: s.cfg.Logger}
	e.server, err = nats.NewServer(&nats.Options{
		ServerName: serverName, Host: host, Port: port, NoSigs: true, NoSystemAccount: true,
		Nkeys: []*nats.NkeyUser{{
			Nkey: public, Permissions: &nats.Permissions{Publish: subjects, Subscribe: subjects},
		}},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		TLSHandshakeFirst: true, TLSTimeout: handshakeTime, AuthTimeout: handshakeTime + 2,
		MaxConn: maxConnections, MaxPayload: bus.MaxAnswer + 64<<10, MaxPending: maxPending,
		WriteDeadline: writeDeadline, PingInterval: 10 * time.Second, MaxPingsOut: 2,
	})
	if err != nil {
		return nil, internal(err)
	}
	e.server.SetLoggerV2(log, false, false, false)
	e.server.Start()
	for began := time.Now(); !e.server.ReadyForConnections(100 * time.Millisecond); {
		if log.reason() == "" && time.Since(began) < readyTime {
			continue
		}
		e.stop()
		return nil, fault.New(op, fault.Unavailable,
			"the server of the event bus cannot listen on "+net.JoinHostPort(host, strconv.Itoa(max(port, 0)))+
				log.reason()).Hint("choose another address: [bus] listen")
	}
	listening, ok := e.server.Addr().(*net.TCPAddr)
	if !ok {
		e.stop()
		return nil, internal(fmt.Errorf("it listens on %v", e.server.Addr()))
	}
	e.address = net.JoinHostPort(host, strconv.Itoa(listening.Port))
	return e, nil
}

// record returns what the other replicas need to connect.
func (e *embedded) record(machine string) intent.BusServer {
	return intent.BusServer{
		Address: e.address, Host: machine, Certificate: e.certificate, Credentials: e.credentials,
	}
}

func (e *embedded) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// SealContext binds sealed credentials to the server that they are for.
func SealContext(installation uuid.UUID, certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return "bus/" + installation.String() + "/" + hex.EncodeToString(sum[:])
}

// newCertificate makes a certificate and its key. The key never leaves this process. Clients compare the certificate,
// so it holds however wrong their clocks are.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// serverLog writes what the server logs to our log. Refused log-ins are among it, so strangers must not fill the log.
type serverLog struct {
	log    *slog.Logger
	errors atomic.Int64

	mu   sync.Mutex
	last string // of what kept it from starting
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("bus: " + fmt.Sprintf(format, v...))
}
func (l *serverLog) Warnf(format string, v ...any) { l.log.Debug("bus: " + fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(string, ...any)         {}
func (l *serverLog) Tracef(string, ...any)         {}

// Errorf logs the first error and then fewer and fewer of them.
func (l *serverLog) Errorf(format string, v ...any) {
	if n := l.errors.Add(1); n&(n-1) == 0 {
		l.log.Warn("the server of the event bus complains", "error", fmt.Sprintf(format, v...), "so far", n)
	}
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Sprintf(format, v...)
}

// reason returns what kept the server from starting.
func (l *serverLog) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return ""
	}
	return " (" + l.last + ")"
}
