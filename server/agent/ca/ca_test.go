package ca_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/agent/ca"
)

var now = time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC)

func authority(t *testing.T) *ca.Authority {
	t.Helper()
	certificate, key, err := ca.Make(now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sign(t *testing.T, a *ca.Authority, who ca.Identity) *x509.Certificate {
	t.Helper()
	request, _, err := ca.Request()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := a.SignAgent(request, who, now, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(issued.PEM))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An agent is who its certificate says, whatever its name looks like, until the certificate expires.
func TestIdentity(t *testing.T) {
	t.Parallel()
	a := authority(t)
	env := uuid.New()
	for _, name := range []string{"router1", "a/b", "../..", ".", "für élise 100%", "x?y#z", strings.Repeat("n", 300)} {
		who := ca.Identity{Environment: env, Agent: name}
		c := sign(t, a, who)
		got, serial, err := a.Identify(c, now.Add(29*24*time.Hour))
		if err != nil || got != who || serial == "" {
			t.Errorf("%q is read as %v, %v", name, got, err)
		}
	}
	c := sign(t, a, ca.Identity{Environment: env, Agent: "a"})
	if _, _, err := a.Identify(c, now.Add(31*24*time.Hour)); !errors.Is(err, ca.ErrExpired) {
		t.Errorf("an expired certificate: %v", err)
	}
	if _, _, err := a.Identify(c, now.Add(-time.Hour)); err == nil {
		t.Error("a certificate was valid before it was made")
	}
	if _, _, err := authority(t).Identify(c, now); err == nil || errors.Is(err, ca.ErrExpired) {
		t.Errorf("a certificate of another authority: %v", err)
	}
	if _, _, err := authority(t).Identify(c, now.Add(31*24*time.Hour)); errors.Is(err, ca.ErrExpired) {
		t.Error("an expired certificate of another authority counts as one of ours")
	}
}

// The certificates of agents and of servers cannot stand in for each other, and those of agents sign nothing.
func TestUsages(t *testing.T) {
	t.Parallel()
	a := authority(t)
	server, err := a.SignServer([]string{"agents.example.org", "127.0.0.1", "::1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(server.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Identify(leaf, now); err == nil {
		t.Error("the server's certificate counts as an agent's")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.PEM()))
	agent := sign(t, a, ca.Identity{Environment: uuid.New(), Agent: "agents.example.org"})
	if _, err := agent.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("an agent's certificate counts as a server's")
	}
	if agent.IsCA || agent.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("an agent's certificate signs others")
	}
	for _, clock := range []time.Time{now, now.Add(-365 * 24 * time.Hour), now.Add(366 * 24 * time.Hour)} {
		for _, name := range []string{"agents.example.org", "127.0.0.1", "::1"} {
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: clock, DNSName: name}); err != nil {
				t.Errorf("%s at %s: %v", name, clock, err)
			}
		}
	}
}

// Requests that are broken, or have another kind of key, are refused.
func TestRequests(t *testing.T) {
	t.Parallel()
	a := authority(t)
	request, _, err := ca.Request()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(request))
	block.Bytes[len(block.Bytes)-1] ^= 1
	forged := string(pem.EncodeToMemory(block))
	for _, text := range []string{"", "x", a.PEM(), request[:100], forged} {
		if _, err := a.SignAgent(text, ca.Identity{Environment: uuid.New(), Agent: "a"}, now, time.Hour); err == nil {
			t.Errorf("%.40q was signed", text)
		}
	}
}

// An agent and a server shake hands with certificates of the authority.
func TestHandshake(t *testing.T) {
	t.Parallel()
	certificate, key, err := ca.Make(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.Hash(certificate) != a.Hash() {
		t.Error("the hash of the certificate is another one")
	}
	server, err := a.SignServer([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	request, private, err := ca.Request()
	if err != nil {
		t.Fatal(err)
	}
	who := ca.Identity{Environment: uuid.New(), Agent: "a/b"}
	issued, err := a.SignAgent(request, who, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(issued.PEM), []byte(private))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.PEM()))
	dialled := make(chan error, 1)
	go func() {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		dialled <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	got, _, err := a.Identify(c.(*tls.Conn).ConnectionState().PeerCertificates[0], time.Now())
	if err != nil || got != who {
		t.Errorf("the server sees %v, %v", got, err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := <-dialled; err != nil {
		t.Error(err)
	}
}

// A provisioner is who its certificate says. The certificates of agents and provisioners cannot stand in for each
// other, also when their names say otherwise.
func TestProvisioners(t *testing.T) {
	t.Parallel()
	a := authority(t)
	project := uuid.New()
	request, _, err := ca.Request()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"building-7", "a/b", "../..", "für élise 100%", "x?y#z", "//agent/" + project.String(),
	} {
		who := ca.Provisioner{Project: project, Name: name}
		issued, err := a.SignProvisioner(request, who, "0123ab", now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode([]byte(issued.PEM))
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		got, serial, after, err := a.IdentifyProvisioner(c, now)
		if err != nil || got != who || serial != issued.Serial || after != "0123ab" {
			t.Errorf("%q is read as %v %s %s, %v", name, got, serial, after, err)
		}
		if who, _, err := a.Identify(c, now); err == nil || who != (ca.Identity{}) {
			t.Errorf("the provisioner %q counts as %v, %v", name, who, err)
		}
		if _, _, _, err := a.IdentifyProvisioner(c, now.Add(2*time.Hour)); !errors.Is(err, ca.ErrExpired) {
			t.Errorf("an expired certificate: %v", err)
		}
		if _, _, _, err := authority(t).IdentifyProvisioner(c, now); err == nil {
			t.Error("a certificate of another authority counts")
		}
		agent := sign(t, a, ca.Identity{Environment: project, Agent: name})
		for _, at := range []time.Time{now, now.Add(31 * 24 * time.Hour)} {
			if who, _, _, err := a.IdentifyProvisioner(agent, at); err == nil || errors.Is(err, ca.ErrExpired) {
				t.Errorf("the agent %q counts as %v, %v", name, who, err)
			}
		}
	}
}
