package eventbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"

	"ordain.dev/ordain/internal/bus/natsbus"
	"ordain.dev/ordain/internal/fault"
)

// Cluster is a cluster of NATS that the operator runs.
type Cluster struct {
	Servers         []string // nats://host:port or tls://host:port
	CA              string   // file with the authorities of the servers' certificates; empty: those of the machine
	Cert, Key       string   // files with a certificate of our own; empty: none
	User, Password  string
	CredentialsFile string
}

func (c Cluster) isExternal() bool { return len(c.Servers) > 0 }

// target reads the files, each time anew, so that a renewed certificate needs no restart. TLS is demanded unless all
// servers are on this machine.
func (c Cluster) target() (natsbus.Target, error) {
	bad := func(err error, option string) error {
		return fault.Wrap("eventbus.target", fault.Invalid, err).Say("the option " + option + " is wrong")
	}
	t := natsbus.Target{
		Servers: c.Servers, User: c.User, Password: c.Password, Credentials: c.CredentialsFile,
	}
	secure := c.CA != "" || c.Cert != ""
	for _, server := range c.Servers {
		u, err := url.Parse(server)
		if err != nil {
			return t, bad(err, "bus.url")
		}
		secure = secure || u.Scheme == "tls" || !isLoopback(u.Hostname())
	}
	if c.CredentialsFile != "" {
		if _, err := os.Stat(c.CredentialsFile); err != nil {
			return t, bad(err, "bus.credentials-file")
		}
	}
	if !secure {
		return t, nil
	}
	t.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return t, bad(err, "bus.tls-ca")
		}
		t.TLS.RootCAs = x509.NewCertPool()
		if !t.TLS.RootCAs.AppendCertsFromPEM(text) {
			return t, fault.New("eventbus.target", fault.Invalid,
				"the option bus.tls-ca is wrong: "+c.CA+" holds no certificate in PEM")
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return t, bad(err, "bus.tls-cert")
		}
		t.TLS.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// find returns the server to connect to.
func (s *Service) find(ctx context.Context) (natsbus.Target, error) {
	if s.cfg.Cluster.isExternal() {
		return s.cfg.Cluster.target()
	}
	const op = "eventbus.find"
	b, err := s.cfg.Record.BusServer(ctx)
	if err != nil {
		return natsbus.Target{}, err
	}
	if b.Address == "" {
		return natsbus.Target{}, fault.New(op, fault.Unavailable, "no replica runs the server of the bus yet")
	}
	t := natsbus.Target{Servers: []string{"tls://" + b.Address}, Embedded: true}
	if host, _, err := net.SplitHostPort(b.Address); err == nil && isLoopback(host) && b.Host != s.machine {
		return t, fault.New(op, fault.Unavailable, "the server of the bus runs on "+b.Host+
			", and only replicas on that machine reach it").
			Hint("set [bus] listen of each replica to an address that the others reach, or [bus] url to a NATS cluster")
	}
	certificate, err := x509.ParseCertificate(b.Certificate)
	if err != nil {
		return t, fault.Wrap(op, fault.Internal, err).Say("the recorded certificate of the bus is damaged")
	}
	if t.Seed, err = s.cfg.Key.Open(b.Credentials, SealContext(s.cfg.Installation, b.Certificate)); err != nil {
		return t, fault.Wrap(op, fault.Unauthorized, err).
			Say("the credentials of the bus were sealed with another key than this replica's").
			Hint("all replicas need the same key file: [server] secret-key-file")
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	t.TLS = &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS13}
	s.mu.Lock()
	s.using = b
	s.mu.Unlock()
	return t, nil
}
